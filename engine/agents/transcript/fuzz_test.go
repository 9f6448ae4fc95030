package transcript

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"unicode/utf8"

	"acescope/engine/agents/price"
)

func seeds(f *testing.F) (lines [][]byte) {
	for _, name := range []string{"session.jsonl", "odd.jsonl"} {
		lines = append(lines, linesOf(f, filepath.Join("testdata", name))...)
	}
	return lines
}

// FuzzLine checks for any line that the summary is bounded and valid and that a JSON object is
// readable.
func FuzzLine(f *testing.F) {
	for _, l := range seeds(f) {
		f.Add(l)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		fold := NewFold(price.Shipped())
		fold.Add(raw)
		fold.Add(raw)
		s := fold.Summary()
		if s.Lines != 2 {
			t.Errorf("%d lines", s.Lines)
		}
		if json.Valid(raw) && s.Unreadable > 0 && bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) {
			t.Errorf("object is unreadable: %q", raw)
		}
		if s.Tokens.Total() < 0 || s.CostUSD < 0 || len(s.Prompt) > 4*maxPrompt || s.Calls < s.Failed+s.Denied {
			t.Errorf("%+v", s)
		}
		if utf8.Valid(raw) && !utf8.ValidString(s.Prompt+s.Title) {
			t.Errorf("text is cut inside a character: %q", s.Prompt)
		}
		if _, err := json.Marshal(s); err != nil {
			t.Error(err)
		}
		if len(Events(raw)) == 0 {
			t.Error("a line without an event")
		}
	})
}

// FuzzReader checks that a file gives the same summary read at once or as it grows.
func FuzzReader(f *testing.F) {
	for _, name := range []string{"session.jsonl", "odd.jsonl"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint16(300))
	}
	f.Add([]byte("{\"type\":\"user\",\"uuid\":\"1\"}{\"x\":1}\n"), uint16(27))
	f.Fuzz(func(t *testing.T, data []byte, at uint16) {
		path := filepath.Join(t.TempDir(), "s.jsonl")
		cut := min(int(at), len(data))
		write(t, path, data)
		whole := newTail(path)
		whole.read(t, 0)
		grown := newTail(path)
		write(t, path, data[:cut])
		grown.read(t, 0)
		write(t, path, data)
		grown.read(t, 0)
		if bytes.HasSuffix(data[:cut], []byte("}")) && cut < len(data) && data[cut] != '\n' && data[cut] != '\r' {
			return // a complete line that then continued
		}
		if a, b := whole.fold.Summary(), grown.fold.Summary(); !reflect.DeepEqual(a, b) {
			t.Errorf("at once %+v\nin two %+v", a, b)
		}
	})
}
