package operation

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
)

// errIsError tells of an error where a value should be: JSON makes "{}" of one, which
// loses what it says.
var errIsError = errors.New("an error does not survive JSON: give its text, or fail with it")

// encode is a value as canonical JSON: no white space, object keys sorted by their bytes,
// nothing escaped for HTML, digits as they were written.
func encode(v any) (json.RawMessage, error) {
	if holdsError(v) {
		return nil, errIsError
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return canonical(data)
}

func canonical(data []byte) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var plain any
	if err := dec.Decode(&plain); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("there is more than one JSON value")
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(plain); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// holdsError finds errors where they are usually put: at the top, or among the fields of
// a map or list made on the spot.
func holdsError(v any) bool {
	switch t := v.(type) {
	case json.Marshaler:
		return false
	case error:
		return true
	case map[string]any:
		return anyHoldsError(t)
	case []any:
		for _, one := range t {
			if holdsError(one) {
				return true
			}
		}
	}
	return false
}

// anyHoldsError asks all fields, so that their order does not matter.
func anyHoldsError(fields map[string]any) (found bool) {
	//workflowcheck:ignore
	for _, one := range fields {
		found = found || holdsError(one)
	}
	return found
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
