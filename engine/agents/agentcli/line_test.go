package agentcli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// lines reads all lines.
func lines(t *testing.T, r io.Reader) (list []Line) {
	t.Helper()
	lr := NewLineReader(r)
	for {
		line, err := lr.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		line.Bytes = bytes.Clone(line.Bytes)
		list = append(list, line)
	}
}

func TestLines(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       string
	}{
		{"empty", "", ""},
		{"blank", "\n \r\n\t\n", ""},
		{"plain", "a\nb\n", "1@0 a|2@2 b"},
		{"carriage returns", "a\r\nb\r\r\n", "1@0 a|2@3 b\r"},
		{"byte order mark", "\ufeffa\nb", "1@3 a|2@5 b torn"},
		{"only a byte order mark", "\ufeff", ""},
		{"half a byte order mark", "\xef\xbb", "1@0 \xef\xbb torn"},
		{"blank lines between", "a\n\n\nb\n", "1@0 a|2@4 b"},
		{"not an array of objects", "[warn] x\n[1]\n", "1@0 [warn] x|2@9 [1]"},
		{"one object", `{ "a":1}`, `1@0 { "a":1} torn`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.text),
				iotest.OneByteReader(strings.NewReader(c.text)),
				iotest.DataErrReader(strings.NewReader(c.text))} {
				var got []string
				for _, l := range lines(t, r) {
					s := fmt.Sprintf("%d@%d %s", l.Number, l.Offset, l.Bytes)
					if l.Torn {
						s += " torn"
					}
					got = append(got, s)
				}
				if strings.Join(got, "|") != c.want {
					t.Errorf("got %q, want %q", strings.Join(got, "|"), c.want)
				}
			}
		})
	}
}

// repeat reads n times the same letter.
func repeat(letter byte, n int64) io.Reader {
	return io.LimitReader(letters(letter), n)
}

type letters byte

func (l letters) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(l)
	}
	return len(b), nil
}

// TestLongLines checks that lines up to MaxLine are read whole, and that longer ones are
// reported, not held in memory, and do not affect the lines after them.
func TestLongLines(t *testing.T) {
	for _, size := range []int64{MaxLine - 1, MaxLine, MaxLine + 1, MaxLine + bufferSize, 50 << 20} {
		text := io.MultiReader(strings.NewReader("first\n"), repeat('x', size), strings.NewReader("\nlast\n"))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		list := lines(t, text)
		runtime.ReadMemStats(&after)
		if len(list) != 3 || string(list[0].Bytes) != "first" || string(list[2].Bytes) != "last" ||
			list[2].Offset != size+7 {
			t.Fatalf("%d bytes: %d lines", size, len(list))
		}
		long := list[1]
		if long.Size != size || long.TooLong() != (size > MaxLine) || long.TooLong() &&
			len(long.Bytes) != MaxText {
			t.Errorf("%d bytes: size %d, kept %d", size, long.Size, len(long.Bytes))
		}
		if size > 40<<20 && after.TotalAlloc-before.TotalAlloc > 20<<20 {
			t.Errorf("%d bytes: allocated %d", size, after.TotalAlloc-before.TotalAlloc)
		}
	}
	torn := lines(t, repeat('x', 9<<20))
	if len(torn) != 1 || !torn[0].Torn || !torn[0].TooLong() {
		t.Errorf("long line without an end: %d lines", len(torn))
	}
}

// TestMemory checks that a reader holds the same memory however long the stream is.
func TestMemory(t *testing.T) {
	line := []byte(`{"type":"not_yet_invented","session_id":"s"}` + "\n")
	held := func(n int) uint64 {
		data := bytes.Repeat(line, n)
		r := NewReader(bytes.NewReader(data), Claude)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		if err := r.All(func(Event) error { return nil }); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(r)
		runtime.KeepAlive(data)
		return after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc)
	}
	small, big := held(1_000), held(100_000)
	if big > small+64<<10 {
		t.Errorf("%d bytes after a thousand lines, %d after a hundred thousand", small, big)
	}
}

// TestFollow checks that an unfinished line waits for its rest.
func TestFollow(t *testing.T) {
	var file bytes.Buffer
	lr := NewLineReader(&file)
	lr.Follow = true
	r := NewLinesReader(lr, NewParser(Gemini))
	next := func() string {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return "no more"
		}
		if err != nil {
			t.Fatal(err)
		}
		return string(e.Kind) + " " + e.Text
	}
	for _, c := range []struct{ more, want string }{
		{"", "no more"},
		{`{"type":"message","role":"assistant","content":"par`, "no more"},
		{`t","delta":true}`, "no more"},
		{"\n", "delta part"},
		{"", "no more"},
		{"{\"type\":\"message\",\"role\":\"user\",\"content\":\"u\"}\n{", "text part"},
		{"", "user u"},
		{"", "no more"},
	} {
		file.WriteString(c.more)
		if got := next(); got != c.want {
			t.Errorf("after %q: %q, want %q", c.more, got, c.want)
		}
	}
	if lr.offset != int64(len(`{"type":"message","role":"assistant","content":"part","delta":true}`+
		"\n{\"type\":\"message\",\"role\":\"user\",\"content\":\"u\"}\n")) {
		t.Errorf("offset %d", lr.offset)
	}
}

// TestReadError checks that an error of the source comes after the data before it.
func TestReadError(t *testing.T) {
	broken := errors.New("disk failure")
	r := NewReader(io.MultiReader(strings.NewReader("no JSON\nmore"), iotest.ErrReader(broken)), Claude)
	var kinds []string
	for {
		e, err := r.Next()
		if err != nil {
			if !errors.Is(err, broken) {
				t.Errorf("%v", err)
			}
			break
		}
		kinds = append(kinds, e.Name)
	}
	if strings.Join(kinds, " ") != "text torn" {
		t.Errorf("%v", kinds)
	}
}

// TestDeep checks that deep nesting does not exhaust the stack.
func TestDeep(t *testing.T) {
	for _, text := range []string{strings.Repeat("[", 4<<20), strings.Repeat(`{"a":`, 1<<20)} {
		events := NewParser(Claude).Line([]byte(text))
		if len(events) != 1 || events[0].Kind != KindGarbage {
			t.Errorf("%d events", len(events))
		}
	}
	if events := NewParser(Claude).Line([]byte(`{"type":"x","y":"` + strings.Repeat("[", 1<<20) +
		`"}`)); events[0].Kind != KindOther {
		t.Errorf("brackets in a string: %+v", events)
	}
}
