package widget

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"acescope/tui/text"
)

func TestWhatAPayloadIs(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a":1}`: "JSON", `[1,2]`: "JSON", `12.5`: "JSON", `null`: "JSON", `"plain"`: "text",
		`"{\"a\":1}"`: "JSON in a string", `not json`: "text, not JSON", "\x00\x01\x02": "binary",
		`"\u0000\u0001"`: "binary in a string", ``: "nothing",
		`"` + strings.Repeat("AAECAwQFBgcICQ", 6) + `"`:                              "base64",
		`{"metadata":{"encoding":"YmluYXJ5L2VuY3J5cHRlZA=="},"data":"AAECAwQFBg=="}`: "binary/encrypted, not readable here without its codec",
		`{"metadata":"mine"}`: "JSON",
	} {
		var p Payloads
		if got := p.Of([]byte(raw)); got.Kind != want {
			t.Errorf("%.60s is %q, not %q", raw, got.Kind, want)
		}
	}
}

func TestPayloadsAreMadeReadyOnce(t *testing.T) {
	var p Payloads
	raw := []byte(`{"a":1}`)
	if p.Of(raw) != p.Of(raw) {
		t.Error("made ready twice")
	}
	for i := range 3 * maxPayloads {
		p.Of([]byte{byte('0' + i%10)})
	}
	if len(p.ready) > maxPayloads {
		t.Errorf("%d are kept", len(p.ready))
	}
}

func TestBigPayloadsAreBounded(t *testing.T) {
	for _, raw := range []string{`["` + strings.Repeat("財", 700_000) + `"]`,
		`"` + strings.Repeat("word ", 400_000) + `"`,
		`{"a":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `,"b":"` +
			strings.Repeat("x", 2<<20) + `"}`} {
		p := Show([]byte(raw))
		shown := 0
		for _, l := range p.Lines {
			shown += len(l)
		}
		if p.Rest <= 0 || shown > 2*MaxPayload || shown == 0 {
			t.Errorf("%.30s: %d bytes are shown, %d are left out", raw, shown, p.Rest)
		}
	}
}

func FuzzShow(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":null}],"c":"\u001b[2J"}`, `"\u202e"`, "\x1b]0;x\x07", `{"a":`,
		`[[[`, `{"a" "b"}`, "\xff", `"{"`, `}{`} {
		f.Add([]byte(s), 20)
	}
	f.Fuzz(func(t *testing.T, raw []byte, width int) {
		width = min(max(width, 1), 200)
		for _, l := range Show(raw).Lines {
			for _, line := range text.Wrap(l, width) {
				if text.Width(line) > max(width, 2) {
					t.Fatalf("%q is wider than %d", line, width)
				}
				for _, r := range line {
					if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
						t.Fatalf("%q holds %U", line, r)
					}
				}
			}
		}
	})
}

func FuzzIndent(f *testing.F) {
	f.Add([]byte(`{"a":[1,2,{"b":"c\"d"}],"e":{}, "f" : [ ]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		out, used := Indent(raw, 1<<20)
		if !json.Valid(raw) || used != len(raw) {
			return
		}
		var a, b any
		if json.Unmarshal(raw, &a) != nil {
			return
		}
		if err := json.Unmarshal(out, &b); err != nil {
			t.Fatalf("%q became %q: %v", raw, out, err)
		}
		x, _ := json.Marshal(a)
		if y, _ := json.Marshal(b); string(x) != string(y) {
			t.Fatalf("%q became %q", x, y)
		}
	})
}
