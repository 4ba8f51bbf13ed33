package token

import (
	"encoding/json"
	"strings"
)

// callForm is one way in which models write calls of tools. read takes what
// follows the opening tag and returns the calls and how many bytes they take;
// unread asks for more text, notCall says that it is no call.
type callForm struct {
	open string
	read func(r *Reply, body string, end bool) (calls []ToolCall, used int)
}

const (
	unread  = -1
	notCall = -2
)

// callForms lists the forms that begin with a tag.
var callForms = []callForm{
	{"<tool_call>", readToolCall},                                              // Hermes, Qwen, Qwen Coder, GLM
	{"<function=", readFunction},                                               // Qwen Coder, when it leaves the outer tag out
	{"[TOOL_CALLS]", readMistral},                                              // Mistral
	{"<|python_tag|>", readTaggedJSON},                                         // Llama 3
	{"<|tool_call|>", readTaggedJSON},                                          // Granite
	{"<｜tool▁call▁begin｜>", readDeepSeek},                                      // DeepSeek
	{"<｜tool▁calls▁begin｜>", readNothing}, {"<｜tool▁calls▁end｜>", readNothing}, // its frame
}

// replyTags lists the tags of all forms and of reasoning.
func replyTags() []string {
	names := []string{"</tool_call>", "[ARGS]", "[CALL_ID]", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"}
	for i := range callForms {
		names = append(names, callForms[i].open)
	}
	for _, pair := range thinkTags {
		names = append(names, pair[0], pair[1])
	}
	return names
}

// bareCall is the form without a tag: the reply begins with JSON.
var bareCall = callForm{"", readBare}

func readNothing(*Reply, string, bool) ([]ToolCall, int) { return nil, 0 }

// skipBlanks counts the white space at the start of s.
func skipBlanks(s string) int { return len(s) - len(strings.TrimLeft(s, blanks)) }

// closing consumes white space and a closing tag at the start of s, if it is
// there. more says that the text ends in the middle of it.
func closing(s, tag string, end bool) (n int, more bool) {
	k := skipBlanks(s)
	rest := s[k:]
	switch {
	case strings.HasPrefix(rest, tag):
		return k + len(tag), false
	case !end && strings.HasPrefix(tag, rest):
		return 0, true
	}
	return 0, false
}

// readToolCall reads what follows <tool_call>.
func readToolCall(r *Reply, body string, end bool) ([]ToolCall, int) {
	const tag = "</tool_call>"
	start := skipBlanks(body)
	rest := body[start:]
	var calls []ToolCall
	var used int
	switch {
	case rest == "":
		return nil, unread
	case rest[0] == '{' || rest[0] == '[':
		calls, used = r.readJSON(rest, end, true)
	case strings.HasPrefix(rest, "<function="):
		calls, used = readFunction(r, rest[len("<function="):], end)
		if used >= 0 {
			used += len("<function=")
		}
	case strings.HasPrefix("<function=", rest):
		return nil, unread
	default:
		return readGLM(r, body)
	}
	if used < 0 {
		return nil, used
	}
	n, more := closing(rest[used:], tag, end)
	if more {
		return nil, unread
	}
	return calls, start + used + n
}

// readGLM reads NAME and pairs of <arg_key> and <arg_value>, up to </tool_call>.
func readGLM(r *Reply, body string) ([]ToolCall, int) {
	const tag = "</tool_call>"
	// Prose that mentions the tag must not be held until it ends.
	head := strings.TrimLeft(body, blanks)
	if k := strings.IndexFunc(head, func(c rune) bool { return !isName(string(c)) }); k == 0 || k > 0 && !strings.ContainsRune("\r\n<", rune(head[k])) {
		return nil, notCall
	}
	// A value may quote the closing tag: it counts after </arg_value> or the name alone.
	for at := r.scan.pos; ; {
		k := strings.Index(body[at:], tag)
		if k < 0 {
			r.scan.pos = max(at, len(body)-len(tag))
			return nil, unread
		}
		at += k + len(tag)
		inner := strings.TrimSpace(body[:at-len(tag)])
		if strings.Contains(inner, "<arg_key>") && !strings.HasSuffix(inner, "</arg_value>") {
			continue
		}
		name, rest, _ := strings.Cut(inner, "<arg_key>")
		name = strings.TrimSpace(name)
		if !isName(name) {
			return nil, notCall
		}
		args := newArguments(r.names[name])
		for rest != "" {
			key, after, ok := strings.Cut(rest, "</arg_key>")
			_, value, ok2 := strings.Cut(after, "<arg_value>")
			if !ok || !ok2 {
				return nil, notCall
			}
			end := strings.Index(value, "</arg_value>\n<arg_key>")
			next := ""
			if end < 0 {
				if end = strings.Index(value, "</arg_value><arg_key>"); end >= 0 {
					next = value[end+len("</arg_value><arg_key>"):]
				} else if end = strings.LastIndex(value, "</arg_value>"); end < 0 {
					return nil, notCall
				}
			} else {
				next = value[end+len("</arg_value>\n<arg_key>"):]
			}
			args.add(strings.TrimSpace(key), value[:end])
			rest = next
		}
		return []ToolCall{{Name: name, Arguments: args.json()}}, at
	}
}

// readFunction reads what follows <function=: NAME>, parameters, </function>.
func readFunction(r *Reply, body string, end bool) ([]ToolCall, int) {
	const tag = "</function>"
	head := strings.IndexByte(body, '>')
	if head < 0 {
		if len(body) > 256 || strings.ContainsAny(body, "\n<") {
			return nil, notCall
		}
		return nil, unread
	}
	name := strings.Trim(strings.TrimSpace(body[:head]), `"'`)
	if !isName(name) {
		return nil, notCall
	}
	first := strings.TrimLeft(body[head+1:], blanks)
	if !overlaps(first, "<parameter=") && !overlaps(first, tag) {
		return nil, notCall
	}
	for at := max(r.scan.pos, head+1); ; {
		k := strings.Index(body[at:], tag)
		if k < 0 {
			r.scan.pos = max(at, len(body)-len(tag))
			return nil, unread
		}
		at += k + len(tag)
		inner := strings.TrimSpace(body[head+1 : at-len(tag)])
		// A value may quote the tag: it counts after a parameter only.
		if inner != "" && !strings.HasSuffix(inner, "</parameter>") {
			continue
		}
		args := newArguments(r.names[name])
		for inner != "" {
			var ok bool
			if inner, ok = strings.CutPrefix(inner, "<parameter="); !ok {
				return nil, notCall
			}
			key, value, ok := strings.Cut(inner, ">")
			if !ok {
				return nil, notCall
			}
			stop, next := endOfParameter(value)
			if stop < 0 {
				return nil, notCall
			}
			args.add(strings.Trim(strings.TrimSpace(key), `"'`), value[:stop])
			inner = strings.TrimSpace(value[next:])
		}
		return []ToolCall{{Name: name, Arguments: args.json()}}, at
	}
}

// overlaps says whether s begins with tag or is the start of it.
func overlaps(s, tag string) bool { return strings.HasPrefix(s, tag) || strings.HasPrefix(tag, s) }

// endOfParameter finds the </parameter> that another parameter or nothing
// follows: others are part of the value.
func endOfParameter(s string) (stop, next int) {
	const tag = "</parameter>"
	for at := 0; ; {
		k := strings.Index(s[at:], tag)
		if k < 0 {
			return -1, -1
		}
		stop, next = at+k, at+k+len(tag)
		if rest := strings.TrimLeft(s[next:], blanks); rest == "" || strings.HasPrefix(rest, "<parameter=") {
			return stop, next
		}
		at = next
	}
}

// readMistral reads what follows [TOOL_CALLS]: a JSON array, or
// NAME[ARGS]{...} with [CALL_ID]ID before [ARGS] perhaps.
func readMistral(r *Reply, body string, end bool) ([]ToolCall, int) {
	start := skipBlanks(body)
	rest := body[start:]
	if rest == "" {
		return nil, unread
	}
	if rest[0] == '[' || rest[0] == '{' {
		calls, used := r.readJSON(rest, end, true)
		if used < 0 {
			return nil, used
		}
		return calls, start + used
	}
	brace := strings.IndexByte(rest, '{')
	if brace < 0 {
		if len(rest) > 512 {
			return nil, notCall
		}
		return nil, unread
	}
	name := strings.TrimSuffix(strings.TrimSpace(rest[:brace]), "[ARGS]")
	name, id, _ := strings.Cut(name, "[CALL_ID]")
	if name = strings.TrimSpace(name); !isName(name) {
		return nil, notCall
	}
	stop := r.scan.end(rest[brace:])
	if stop < 0 {
		return nil, stop
	}
	args := rest[brace : brace+stop]
	if !json.Valid([]byte(args)) {
		return nil, notCall
	}
	return []ToolCall{{ID: strings.TrimSpace(id), Name: name, Arguments: json.RawMessage(args)}}, start + brace + stop
}

// readTaggedJSON reads calls as JSON after a tag that says that they come.
func readTaggedJSON(r *Reply, body string, end bool) ([]ToolCall, int) {
	start := skipBlanks(body)
	if start == len(body) {
		return nil, unread
	}
	if body[start] != '{' && body[start] != '[' {
		return nil, notCall
	}
	calls, used := r.readJSON(body[start:], end, true)
	if used < 0 {
		return nil, used
	}
	r.first = true // another one may follow without a tag
	return calls, start + used
}

// readBare reads a reply that is JSON from its first character. As an answer
// may be JSON as well, only calls of tools that exist count, and the first key
// decides whether to wait for the rest.
func readBare(r *Reply, body string, end bool) ([]ToolCall, int) {
	if !mayBeCall(body) {
		return nil, notCall
	}
	calls, used := r.readJSON(body, end, false)
	if used < 0 {
		return nil, used
	}
	for _, c := range calls {
		if _, ok := r.names[c.Name]; !ok {
			return nil, notCall
		}
	}
	r.first = true // another one may follow
	return calls, used
}

// mayBeCall looks at the start of JSON: an object, or an array of them, whose
// first key is one that calls begin with. It says yes while the key is not known.
func mayBeCall(s string) bool {
	s = strings.TrimLeft(s, "["+blanks)
	if s == "" {
		return true
	}
	if s[0] != '{' {
		return false
	}
	if s = strings.TrimLeft(s[1:], blanks); s == "" {
		return true
	}
	if s[0] != '"' {
		return false
	}
	for _, key := range []string{`"name"`, `"type"`, `"function"`, `"id"`, `"arguments"`, `"parameters"`} {
		if strings.HasPrefix(s, key) || strings.HasPrefix(key, s) {
			return true
		}
	}
	return false
}

// readDeepSeek reads what follows <｜tool▁call▁begin｜>: NAME<｜tool▁sep｜>{...},
// or function<｜tool▁sep｜>NAME and the JSON in a fence.
func readDeepSeek(r *Reply, body string, end bool) ([]ToolCall, int) {
	const sep, tag = "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
	k := strings.Index(body[r.scan.pos:], tag)
	if k < 0 {
		r.scan.pos = max(r.scan.pos, len(body)-len(tag))
		return nil, unread
	}
	stop := r.scan.pos + k
	name, args, ok := strings.Cut(body[:stop], sep)
	if !ok {
		return nil, notCall
	}
	if before, fenced, ok := strings.Cut(args, "```json"); ok {
		name = before
		args, _, _ = strings.Cut(fenced, "\n```")
	}
	name, args = strings.TrimSpace(name), strings.TrimSpace(args)
	if !isName(name) || !json.Valid([]byte(args)) {
		return nil, notCall
	}
	return []ToolCall{{Name: name, Arguments: json.RawMessage(args)}}, stop + len(tag)
}

// isName says whether s can be the name of a function.
func isName(s string) bool {
	if s == "" || len(s) > 256 {
		return false
	}
	for _, c := range []byte(s) {
		if !asciiLetter(c) && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' && c != ':' && c != '/' {
			return false
		}
	}
	return true
}
