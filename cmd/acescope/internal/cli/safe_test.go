package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"acescope/tui/text"
)

// written returns what an output writes to its file for the parts of a text, which may end within a
// character.
func written(t testing.TB, asJSON bool, parts ...string) string {
	t.Helper()
	return writtenBy(t, &asJSON, func(out *Output) {
		for _, p := range parts {
			if n, err := out.Write([]byte(p)); n != len(p) || err != nil {
				t.Fatalf("wrote %d of %d bytes: %v", n, len(p), err)
			}
		}
	})
}

// writtenBy returns what an output to a file writes.
func writtenBy(t testing.TB, isJSON *bool, write func(*Output)) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write(NewOutput(f, isJSON))
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

// TestEveryWayToWriteIsSafe checks the ways to write that a writer may have besides Write, also for output
// that a file gets unchanged.
func TestEveryWayToWriteIsSafe(t *testing.T) {
	const hostile, want = "\x1b[38;5;201mA\x1b]0;T\x07\u009b31m\u202eB\r\xe2", "[38;5;201mA]0;T31mB"
	tty, terminal := openPTY(t)
	out := NewOutput(terminal, new(bool))
	ways := map[string]func(io.Writer) error{
		"WriteString": func(w io.Writer) error { _, err := io.WriteString(w, hostile+"\n"); return err },
		"Copy": func(w io.Writer) error {
			_, err := io.Copy(w, struct{ io.Reader }{strings.NewReader(hostile + "\n")})
			return err
		},
		"Fprintln": func(w io.Writer) error { _, err := fmt.Fprintln(w, hostile); return err },
		"bufio": func(w io.Writer) error {
			b := bufio.NewWriter(w)
			_, err := b.ReadFrom(strings.NewReader(hostile + "\n"))
			return errors.Join(err, b.Flush())
		},
	}
	lines := bufio.NewReader(tty)
	for name, way := range ways {
		for kind, w := range map[string]io.Writer{"output": out, "exact": Exact(out)} {
			if err := way(w); err != nil {
				t.Fatal(err)
			}
			if got, err := lines.ReadString('\n'); err != nil || strings.TrimRight(got,
				"\r\n\uFFFD") != want {
				t.Errorf("%s, %s: %q, %v", name, kind, got, err)
			}
		}
	}
	if got := writtenBy(t, nil, func(out *Output) { _ = ways["Copy"](Exact(out)) }); got != hostile+"\n" {
		t.Errorf("the exact bytes in a file: %q", got)
	}
}

// TestPaintedKeepsColorsOnly checks that painted text sets colors and controls the terminal in no other way.
func TestPaintedKeepsColorsOnly(t *testing.T) {
	long := strings.Repeat("\x1b[1mé\x1b[m", 2000)
	for text, want := range map[string]string{
		"\x1b[1;38:2:1:2:3mbold\x1b[m and \x1b[0m\n":   "\x1b[1;38:2:1:2:3mbold\x1b[m and \x1b[0m\n",
		"\x1b[2J\x1b[31\x1b]0;T\x07\u009b1m\u202e\x1b": "[2J[31]0;T1m", long: long,
	} {
		if got := writtenBy(t, nil, func(out *Output) {
			_, _ = io.WriteString(painted(out), text)
		}); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// openPTY returns both ends of a terminal.
func openPTY(t *testing.T) (tty, terminal *os.File) {
	t.Helper()
	tty, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = tty.Close(), terminal.Close() })
	return tty, terminal
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
