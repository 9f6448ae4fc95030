package redact

import (
	"strings"
	"testing"
)

// TestStream checks that a text in fragments of any size is redacted like the whole text, although no
// fragment contains a secret.
func TestStream(t *testing.T) {
	r := New(Secret{"DB", "correct horse battery"})
	text := "I use correct horse battery, then\n"
	for _, secret := range madeUp {
		text += "some text " + secret + " and\nmore. "
	}
	text += `password = "a b c d e" Authorization: Bearer abc.def-123 {"api_key": "hunter2hunter2"} the end of it correct hor`
	want := string(r.Truncated([]byte(text)))
	for size := 1; size < 80; size++ {
		s := r.Stream()
		var out strings.Builder
		for rest := text; rest != ""; rest = rest[min(size, len(rest)):] {
			out.Write(s.Add([]byte(rest[:min(size, len(rest))])))
		}
		out.Write(s.Flush())
		if out.String() != want {
			t.Fatalf("size %d:\n%s\nwant\n%s", size, out.String(), want)
		}
	}
}

// TestStreamIsPrompt checks that ordinary text is returned word by word and that long text without
// spaces is not kept.
func TestStreamIsPrompt(t *testing.T) {
	s := New().Stream()
	got := string(s.Add([]byte("see https://example.com/x for mo")))
	if got != "see https://example.com/x for " {
		t.Errorf("%q", got)
	}
	if got := s.Add([]byte(strings.Repeat("x", 2*maxStream))); len(got) < maxStream {
		t.Errorf("%d bytes", len(got))
	}
}
