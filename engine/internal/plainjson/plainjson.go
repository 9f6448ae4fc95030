// Package plainjson encodes JSON for users to read. Every package may import it.
package plainjson

import (
	"bytes"
	"encoding/json"
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
