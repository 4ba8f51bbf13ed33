package token

import (
	"bytes"
	"encoding/json"
	"strings"
)

// jsonScan finds the end of a JSON object or array in growing text without
// looking at any byte twice.
type jsonScan struct {
	pos     int
	depth   int
	quoted  bool
	escaped bool
	done    int // where the value ended
}

// end returns where the value that s begins with ends, or unread, or notCall
// when brackets close that were not open.
func (j *jsonScan) end(s string) int {
	if j.done > 0 {
		return j.done
	}
	for ; j.pos < len(s); j.pos++ {
		c := s[j.pos]
		switch {
		case j.escaped:
			j.escaped = false
		case j.quoted:
			j.escaped = c == '\\'
			j.quoted = c != '"'
		case c == '"':
			j.quoted = true
		case c == '{' || c == '[':
			j.depth++
		case c == '}' || c == ']':
			if j.depth--; j.depth == 0 {
				j.done = j.pos + 1
				return j.done
			}
			if j.depth < 0 {
				return notCall
			}
		}
	}
	return unread
}

// readJSON reads one call or an array of calls at the start of s. Without
// loose, a call must have its arguments.
func (r *Reply) readJSON(s string, end, loose bool) ([]ToolCall, int) {
	stop := r.scan.end(s)
	if stop < 0 {
		return nil, stop
	}
	raw := []byte(s[:stop])
	var list []json.RawMessage
	if raw[0] == '[' {
		if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
			return nil, notCall
		}
	} else {
		list = []json.RawMessage{raw}
	}
	var calls []ToolCall
	for _, item := range list {
		c, ok := callOf(item, loose)
		if !ok {
			return nil, notCall
		}
		calls = append(calls, c)
	}
	return calls, stop
}

// callOf reads one call object in the shapes that models use.
func callOf(raw json.RawMessage, loose bool) (ToolCall, bool) {
	var o struct {
		ID         any             `json:"id"`
		Name       string          `json:"name"`
		Function   json.RawMessage `json:"function"`
		Arguments  json.RawMessage `json:"arguments"`
		Parameters json.RawMessage `json:"parameters"`
	}
	if json.Unmarshal(raw, &o) != nil {
		return ToolCall{}, false
	}
	if len(o.Function) > 0 && o.Name == "" {
		if o.Function[0] == '{' {
			c, ok := callOf(o.Function, loose)
			if id, isText := o.ID.(string); isText && c.ID == "" {
				c.ID = id
			}
			return c, ok
		}
		if json.Unmarshal(o.Function, &o.Name) != nil {
			return ToolCall{}, false
		}
	}
	c := ToolCall{Name: strings.TrimSpace(o.Name), Arguments: o.Arguments}
	if id, ok := o.ID.(string); ok {
		c.ID = id
	}
	if len(c.Arguments) == 0 {
		c.Arguments = o.Parameters
	}
	if !isName(c.Name) || len(c.Arguments) == 0 && !loose {
		return c, false
	}
	// Arguments may come as JSON in a string.
	var text string
	if len(c.Arguments) > 0 && c.Arguments[0] == '"' && json.Unmarshal(c.Arguments, &text) == nil {
		if text = strings.TrimSpace(text); strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
			c.Arguments = json.RawMessage(text)
		}
	}
	if len(c.Arguments) == 0 || string(c.Arguments) == "null" {
		c.Arguments = json.RawMessage("{}")
	}
	return c, c.Arguments[0] == '{'
}

// schema says which type each parameter of a tool has, "" for unknown.
type schema map[string]string

// schemas reads the parameter types of all tools of a request by name.
func schemas(tools []json.RawMessage) map[string]schema {
	all := map[string]schema{}
	for _, raw := range tools {
		var t struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
			Function   struct {
				Name       string          `json:"name"`
				Parameters json.RawMessage `json:"parameters"`
			} `json:"function"`
		}
		if json.Unmarshal(raw, &t) != nil {
			continue
		}
		name, params := t.Function.Name, t.Function.Parameters
		if name == "" {
			name, params = t.Name, t.Parameters
		}
		var p struct {
			Properties map[string]struct {
				Type any `json:"type"`
			} `json:"properties"`
		}
		s := schema{}
		if json.Unmarshal(params, &p) == nil {
			for key, v := range p.Properties {
				s[key], _ = v.Type.(string)
			}
		}
		all[name] = s
	}
	return all
}

// arguments builds a JSON object from values that came as text.
type arguments struct {
	types schema
	b     bytes.Buffer
}

func newArguments(types schema) *arguments { return &arguments{types: types} }

// add adds a value: as JSON where the tool's schema wants other than a string
// and the text is JSON, else as a string. One line break on either side
// belongs to the tags.
func (a *arguments) add(key, text string) {
	text = strings.TrimPrefix(strings.TrimPrefix(text, "\r"), "\n")
	text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	if a.b.Len() > 0 {
		a.b.WriteByte(',')
	}
	a.b.Write(quote(key))
	a.b.WriteByte(':')
	typ := a.types[key]
	bare := strings.TrimSpace(text)
	switch {
	case typ == "string":
	case typ == "boolean" && strings.EqualFold(bare, "true"), typ == "boolean" && strings.EqualFold(bare, "false"):
		a.b.WriteString(strings.ToLower(bare))
		return
	case strings.EqualFold(bare, "none") && typ != "":
		a.b.WriteString("null")
		return
	case bare != "" && bare[0] != '"' && json.Valid([]byte(bare)):
		a.b.WriteString(bare)
		return
	}
	a.b.Write(quote(text))
}

func (a *arguments) json() json.RawMessage {
	return json.RawMessage("{" + a.b.String() + "}")
}

// quote writes a JSON string and leaves < > & as they are.
func quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(s) // a string always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
