package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"acescope/tui/text"
)

// written returns what an output writes to its file for the parts of a text, which may end within a
// character.
func written(t testing.TB, asJSON bool, parts ...string) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := NewOutput(f, &asJSON)
	for _, p := range parts {
		if n, err := out.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatalf("wrote %d of %d bytes: %v", n, len(p), err)
		}
	}
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestOutputHidesControlCharacters(t *testing.T) {
	hostile := "type X\x1b]0;PWN\x07 \u009b31m \u202egnp\u200b\x7f\r\ttab\nä€😀"
	if got, want := written(t, false, hostile), "type X]0;PWN 31m gnp\ttab\nä€😀"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
	if got, want := written(t, false, "\xe2", "\x82", "\xac \xf0\x9f", "\x98\x80", "\xff."),
		"€ 😀\uFFFD."; got != want {
		t.Errorf("characters in parts: %q, want %q", got, want)
	}
	long := strings.Repeat("ä\x1b", 10_000)
	if got := written(t, false, long); got != strings.Repeat("ä", 10_000) {
		t.Errorf("a long text became %d bytes", len(got))
	}
}

// JSON keeps its values: what a terminal must not see is escaped.
func TestJSONOutputKeepsItsValues(t *testing.T) {
	value := "DEL \x7f, C1 \u009b, bidi \u202e, tag \U000e0041, joiner 👩\u200d🚀"
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	got := written(t, true, string(data)+"\n")
	var back string
	if err := json.Unmarshal([]byte(got), &back); err != nil || back != value {
		t.Errorf("%q was read as %q, %v", got, back, err)
	}
	if i := strings.IndexFunc(strings.TrimSuffix(got, "\n"), text.Hidden); i >= 0 {
		t.Errorf("hidden character at %d of %q", i, got)
	}
}

func FuzzOutput(f *testing.F) {
	f.Add("plain", "text")
	f.Add("\x1b[3", "1m\xe2\x82")
	f.Add("\\", "\x7f")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, asJSON := range []bool{false, true} {
			got := written(t, asJSON, a, b)
			if i := strings.IndexFunc(got, func(r rune) bool {
				return text.Hidden(r) && r != '\n' && r != '\t'
			}); i >= 0 {
				t.Errorf("hidden character at %d of %q", i, got)
			}
		}
	})
}
