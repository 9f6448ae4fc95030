package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// parameter is one of them, in the order in which they were written.
type parameter struct {
	name string
	raw  json.RawMessage // compact
}

// names are what a parameter may be called that becomes a flag or a variable. None of them
// begins with a dash.
var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

// parametersOf reads an object member by member, so that numbers stay as they were written.
func parametersOf(object json.RawMessage) ([]parameter, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("the parameters are not a JSON object")
	}
	var list []parameter
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("the parameters are not JSON: %s", jsonTrouble(err))
		}
		name, _ := t.(string)
		if seen[name] {
			return nil, fmt.Errorf("parameter %q is there twice", clip(name))
		}
		seen[name] = true
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, fmt.Errorf("parameter %q is not JSON: %s", clip(name), jsonTrouble(err))
		}
		list = append(list, parameter{name, compact(raw)})
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("the parameters are not JSON: %s", jsonTrouble(err))
	}
	if d.More() {
		return nil, errors.New("there is something after the parameters")
	}
	return list, nil
}

func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// check tells whether the parameter can be a flag or a variable.
func (p parameter) check() error {
	if !names.MatchString(p.name) {
		return fmt.Errorf("parameter %q: a name that becomes a flag or a variable is made of letters, digits, - and _, begins with a letter or digit, and has at most 100", clip(p.name))
	}
	return nil
}

// absent tells whether a value says that there is none.
func (p parameter) absent() bool { return string(p.raw) == "null" }

// items are the members of a list; ok is false of what is none.
func (p parameter) items() (list []json.RawMessage, ok bool) {
	if p.raw[0] != '[' {
		return nil, false
	}
	return list, json.Unmarshal(p.raw, &list) == nil
}

// textOf is a string as it is, and every other value as JSON. No program can be given a NUL
// in an argument or a variable.
func (p parameter) textOf(raw json.RawMessage) (string, error) {
	text := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", fmt.Errorf("parameter %q: %s", clip(p.name), jsonTrouble(err))
		}
	}
	if strings.ContainsRune(text, 0) {
		return "", fmt.Errorf("parameter %q: there is a NUL in it, which only the strategies stdin_json and file can carry", clip(p.name))
	}
	return text, nil
}
