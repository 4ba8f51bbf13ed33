package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"

	"outcrop/engine"
	"outcrop/engine/wire"
)

// httpError is an error with the status it is answered with.
type httpError struct {
	status int
	e      wire.Error
}

func (h *httpError) Error() string { return h.e.Error() }

// fail makes an error; param is the field of the request that is wrong.
func fail(status int, code, param, format string, args ...any) *httpError {
	kind := "invalid_request_error"
	switch {
	case status == http.StatusUnauthorized:
		kind = "authentication_error"
	case status == http.StatusForbidden:
		kind = "permission_error"
	case status == http.StatusNotFound:
		kind = "not_found_error"
	case status >= 500:
		kind = "server_error"
	}
	return &httpError{status, wire.Error{Message: fmt.Sprintf(format, args...), Type: kind, Param: param, Code: code}}
}

// bad is a 400 about one field.
func bad(param, format string, args ...any) *httpError {
	return fail(http.StatusBadRequest, wire.CodeValue, param, format, args...)
}

// unsupported is a 400 about something that this engine does not do.
func unsupported(param, format string, args ...any) *httpError {
	return fail(http.StatusBadRequest, wire.CodeUnsupported, param, format, args...)
}

// fromEngine turns an error of the engine into one with a status.
func fromEngine(err error) *httpError {
	var h *httpError
	switch {
	case errors.As(err, &h):
		return h
	case errors.Is(err, engine.ErrContextFull):
		return fail(http.StatusBadRequest, wire.CodeContext, "messages", "%v", err)
	case errors.Is(err, engine.ErrNotFinite):
		h = fail(http.StatusInternalServerError, wire.CodeNotFinite, "", "%v", err)
		h.e.Next = "start the engine again; if it happens again, the pack or the device is faulty"
		return h
	case errors.Is(err, engine.ErrRepeating):
		h = fail(http.StatusInternalServerError, wire.CodeRepeating, "", "%v", err)
		h.e.Next = "ask again with a higher temperature, or check the pack"
		return h
	case errors.Is(err, engine.ErrCardLost):
		h = fail(http.StatusInternalServerError, wire.CodeCardLost, "", "%v", err)
		h.e.Next = "load the pack again without this card, or when the card works again"
		return h
	case errors.Is(err, errMemory):
		h = fail(http.StatusServiceUnavailable, wire.CodeMemory, "", "%v, so the answer was ended; its text so far is kept", err)
		h.e.Next = "close other programs, or use a smaller context or pack"
		return h
	case errors.Is(err, context.Canceled):
		return fail(http.StatusServiceUnavailable, wire.CodeStopping, "", "the answer was cancelled")
	}
	return fail(http.StatusInternalServerError, "engine_error", "", "%v", err)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status = http.StatusInternalServerError
		b = []byte(`{"error":{"message":"the answer cannot be written as JSON","type":"server_error"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(b, '\n'))
}

func writeError(w http.ResponseWriter, h *httpError) {
	if h.status == http.StatusServiceUnavailable || h.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "2")
	}
	writeJSON(w, h.status, wire.ErrorBody{Error: &h.e})
}

// refused lists fields that would change the meaning of an answer and that
// this engine cannot honour. They are refused instead of ignored
// (ggml-org/llama.cpp#19051: a constraint that silently does nothing is worse
// than an error).
var refused = map[string]string{
	"functions":     "use tools instead",
	"function_call": "use tool_choice instead",
	"grammar":       "answers cannot be constrained by a grammar",
	"json_schema":   "answers cannot be constrained by a schema",
	"guided_json":   "answers cannot be constrained by a schema",
	"guided_regex":  "answers cannot be constrained by a pattern",
	"audio":         "this engine writes text only",
	"prediction":    "predicted outputs are not used",
	"suffix":        "text cannot be filled in before a suffix",
}

// bodyLimit is how long a client may take to send its request.
const bodyLimit = time.Minute

// decode reads a JSON body into v and refuses what must not be ignored.
func decode(w http.ResponseWriter, r *http.Request, v any) *httpError {
	var raw json.RawMessage
	// The deadline is for the body only: past it, the server's own look-out for
	// a client that goes away must not run into it.
	rc := http.NewResponseController(w)
	rc.SetReadDeadline(time.Now().Add(bodyLimit))
	d := json.NewDecoder(r.Body)
	err := d.Decode(&raw)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("something follows the object")
		}
	}
	rc.SetReadDeadline(time.Time{})
	if err != nil {
		var big *tooLarge
		if errors.As(err, &big) {
			// What was not read would be taken for the next request.
			w.Header().Set("Connection", "close")
			return fail(http.StatusRequestEntityTooLarge, wire.CodeTooLarge, "", "%v", big)
		}
		return fail(http.StatusBadRequest, wire.CodeJSON, "", "the request is not valid JSON: %v", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return fail(http.StatusBadRequest, wire.CodeJSON, "", "the request must be a JSON object")
	}
	for name, why := range refused {
		if v, ok := fields[name]; ok && string(v) != "null" && string(v) != `""` {
			return unsupported(name, "%s is not supported: %s", name, why)
		}
	}
	if err := json.Unmarshal(raw, v); err != nil {
		var part *wire.UnsupportedPartError
		if errors.As(err, &part) {
			return unsupported("messages", "%v", part)
		}
		var te *json.UnmarshalTypeError
		if errors.As(err, &te) {
			name := strings.TrimPrefix(te.Field, "Sampling.") // a struct of ours, no field of the request
			if name == "" {
				return bad("", "the request cannot be read: got %s, want %s", te.Value, jsonWord(te.Type))
			}
			return bad(name, "%s: got %s, want %s", name, te.Value, jsonWord(te.Type))
		}
		return fail(http.StatusBadRequest, wire.CodeJSON, "", "the request cannot be read: %v", err)
	}
	return nil
}

// jsonWord is what a Go type is called in JSON.
func jsonWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return jsonWord(t.Elem())
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint32, reflect.Uint64:
		return "whole number"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		return "list"
	case reflect.Struct, reflect.Map:
		return "object"
	}
	return t.Kind().String()
}
