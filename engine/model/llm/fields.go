package llm

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// fields is an object by its keys as they are compared: "finalAnswer", "Final Answer" and
// "final_answer" are one.
type fields map[string]json.RawMessage

// object reads an object, or a list as one with the only key "list". Where it is wrapped in
// another, in a list of one, or in a string, that is taken off. It is nil for anything else.
func object(data []byte) fields {
	for range 4 {
		var text string
		if json.Unmarshal(data, &text) == nil {
			data = []byte(text)
			continue
		}
		var list []json.RawMessage
		if json.Unmarshal(data, &list) == nil {
			if len(list) != 1 {
				return fields{"list": data}
			}
			f := object(list[0])
			if f != nil && f["type"] != nil {
				return fields{"list": data} // an operation, rather than a wrapped answer
			}
			return f
		}
		var raw map[string]json.RawMessage
		if json.Unmarshal(data, &raw) != nil || raw == nil {
			return nil
		}
		f := fields{}
		for k, v := range raw {
			f[key(k)] = v
		}
		if len(raw) == 1 && wraps(f) {
			for _, v := range raw {
				data = v
			}
			continue
		}
		return f
	}
	return nil
}

// wraps tells whether an object of one key holds the answer below it.
func wraps(f fields) bool {
	for k, v := range f {
		switch k {
		case "response", "output", "result", "answer", "json", "data", "generator", "reflector", "curator", "reflection":
			return bytes.HasPrefix(bytes.TrimSpace(v), []byte("{"))
		}
	}
	return false
}

func key(k string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(k))
}

// get is the value of the first of the keys that there is; null counts as none.
func (f fields) get(names ...string) json.RawMessage {
	for _, n := range names {
		if v := f[key(n)]; v != nil && string(v) != "null" {
			return v
		}
	}
	return nil
}

// text is the value of the first of the keys that there is as a text, whatever it is.
func (f fields) text(names ...string) string { return textOf(f.get(names...)) }

func textOf(v json.RawMessage) string {
	var s string
	if v == nil || json.Unmarshal(v, &s) == nil {
		return strings.TrimSpace(s)
	}
	var list []json.RawMessage
	if json.Unmarshal(v, &list) == nil {
		parts := make([]string, 0, len(list))
		for _, e := range list {
			parts = append(parts, textOf(e))
		}
		return strings.Join(parts, "\n")
	}
	var small bytes.Buffer
	if json.Compact(&small, v) != nil {
		return ""
	}
	return small.String() // a number as it is written, an object as it is
}

// texts is a value as a list of texts: of a list its elements, of a text what commas and
// white space separate.
func (f fields) texts(names ...string) []string {
	v := f.get(names...)
	var list []json.RawMessage
	if v == nil || json.Unmarshal(v, &list) != nil {
		return strings.FieldsFunc(textOf(v), func(r rune) bool { return strings.ContainsRune(",; \n\t[]\"", r) })
	}
	var out []string
	for _, e := range list {
		if inner := object(e); inner != nil && inner["list"] == nil {
			e = inner.get("id", "bullet_id")
		}
		if s := strings.Trim(textOf(e), "[] "); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// count is a value as a whole number, 0 where it is none.
func count(v json.RawMessage) int {
	n, err := strconv.ParseFloat(textOf(v), 64)
	if err != nil || n != n || n > 1e9 || n < -1e9 {
		return 0
	}
	return int(n)
}
