package redact

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzLine plants a secret in a text, plain and in JSON, and checks that it is removed, that JSON
// stays valid and otherwise unchanged, and that redacting again changes nothing.
func FuzzLine(f *testing.F) {
	for kind, secret := range madeUp {
		f.Add("before ", " after", secret, kind)
	}
	f.Add("a\\", "\"b", "p\"a\\s<s>/w\u00f6rd\n1", "x")
	f.Add("{\"api_key\":\"", "\"}", "hunter2hunter2", "")
	f.Add("Authorization: Bearer ", "://a:b@c", "12345678", "DB")
	f.Fuzz(func(t *testing.T, before, after, secret, kind string) {
		if len(strings.TrimSpace(secret)) < MinLength || strings.ToValidUTF8(secret, "") != secret {
			return
		}
		if strings.Contains("[redacted:"+markKind(kind)+"]", secret) || overlapsMark(secret) {
			return // a mark or a part of it is not a secret
		}
		r := New(Secret{kind, secret})
		text := before + secret + after
		if out := r.String(text); strings.Contains(out, secret) {
			t.Errorf("%q is in %q", secret, out)
		}
		line, err := json.Marshal(map[string]any{"a": text, "b": []any{1, nil, text}, text: "c"})
		if err != nil {
			t.Fatal(err)
		}
		double, err := json.Marshal(map[string]any{"nested": string(line)})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range [][]byte{line, double} {
			out := r.Line(l)
			if !json.Valid(out) {
				t.Fatalf("%s became %s", l, out)
			}
			if bytes.Contains(out, []byte(secret)) || inside(t, out, secret) {
				t.Errorf("%q is in %s", secret, out)
			}
		}
		if raw := r.Line([]byte(text)); bytes.Contains(raw, []byte(secret)) && !json.Valid([]byte(text)) {
			t.Errorf("%q is in %q", secret, raw)
		} else if json.Valid([]byte(text)) && !json.Valid(raw) {
			t.Errorf("%s became %s", text, raw)
		}
		r.Truncated([]byte(text))
	})
}

// overlapsMark reports whether a secret starts or ends like a mark, so that a mark and the text
// beside it could contain it.
func overlapsMark(secret string) bool {
	return strings.HasPrefix(secret, "]") || strings.HasSuffix(secret, "[") ||
		strings.Contains(secret, "redacted") ||
		strings.Contains(secret, "[r") || strings.Contains("[redacted:", secret)
}

// inside reports whether the text is in a decoded string of JSON.
func inside(t *testing.T, line []byte, text string) bool {
	var v any
	if err := json.Unmarshal(line, &v); err != nil {
		t.Fatal(err)
	}
	return within(v, text)
}

func within(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, text)
	case []any:
		for _, e := range v {
			if within(e, text) {
				return true
			}
		}
	case map[string]any:
		for k, e := range v {
			if strings.Contains(k, text) || within(e, text) {
				return true
			}
		}
	}
	return false
}
