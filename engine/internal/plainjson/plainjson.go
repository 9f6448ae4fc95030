// Package plainjson encodes JSON for users to read, and decodes it without loss. Every package may import it.
package plainjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Marshal is like [json.Marshal], but does not escape <, > and &.
func Marshal(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// Unmarshal is like [json.Unmarshal], but numbers in interfaces keep their digits, as [json.Number].
func Unmarshal(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one JSON value")
	}
	return nil
}

// Canonical returns a value without white space and with sorted keys. Numbers keep their spelling.
func Canonical(data []byte) (json.RawMessage, error) {
	var v any
	if err := Unmarshal(data, &v); err != nil {
		return nil, err
	}
	return Marshal(v)
}
