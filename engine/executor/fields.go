package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// fields are the members of an object.
type fields struct {
	at   string // the object's path
	list map[string]json.RawMessage
}

// members reads one object and nothing after it. A null member is as good as none.
func members(data []byte) (fields, error) {
	f := fields{at: "$", list: map[string]json.RawMessage{}}
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	switch {
	case len(data) > MaxInvocation:
		return f, wrong("$", "it is longer than %d bytes", MaxInvocation)
	case len(data) == 0:
		return f, wrong("$", "there is nothing; give one JSON object")
	case data[0] != '{':
		return f, wrong("$", "not a JSON object")
	case !utf8.Valid(data):
		return f, wrong("$", "it is not valid UTF-8")
	}
	if err := json.Unmarshal(data, &f.list); err != nil {
		return f, wrong("$", "%s", jsonTrouble(err))
	}
	for name, v := range f.list {
		if string(v) == "null" {
			delete(f.list, name)
		}
	}
	return f, nil
}

func jsonTrouble(err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("at byte %d: %v", syntax.Offset, err)
	}
	return err.Error()
}

func (f fields) has(name string) bool { return f.list[name] != nil }

// required decodes a member that must be there.
func (f fields) required(name string, into any) error {
	if !f.has(name) {
		return wrong(f.at+"."+name, "it is missing")
	}
	return f.optional(name, into)
}

// optional decodes a member, where it is there.
func (f fields) optional(name string, into any) error {
	if !f.has(name) {
		return nil
	}
	err := json.Unmarshal(f.list[name], into)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		path := f.at + "." + name
		if kind.Field != "" {
			path += "." + kind.Field
		}
		return wrong(path, "%s is no %s", kind.Value, kindWord(kind.Type.Kind().String()))
	case err != nil:
		return wrong(f.at+"."+name, "%s", jsonTrouble(err))
	}
	return nil
}

// kindWord is what JSON calls a kind of Go's.
func kindWord(kind string) string {
	switch kind {
	case "struct", "map":
		return "object"
	case "slice", "array":
		return "list"
	case "bool":
		return "boolean"
	case "int", "int64", "float64":
		return "number of that kind"
	}
	return kind
}

// object takes a member that must be an object, as it is.
func (f fields) object(name string, into *json.RawMessage) error {
	v := f.list[name]
	if v != nil && v[0] != '{' {
		return wrong(f.at+"."+name, "not an object")
	}
	*into = v
	return nil
}

// clip is text for an error.
func clip(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	n := most
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
