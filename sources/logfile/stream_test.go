package logfile

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestLastLines(t *testing.T) {
	big := strings.Repeat(strings.Repeat("x", 999)+"\n", 300)
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"", 3, ""}, {"a\n", 0, ""}, {"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc", 2, "b\nc"}, {"a\n", 5, "a\n"},
		{"\n\n\n", 2, "\n\n"}, {big, 100, big[200*1000:]}, {big, 300, big}, {big, 299, big[1000:]},
	} {
		at, err := lastLines(strings.NewReader(c.text), int64(len(c.text)), c.n)
		if err != nil || c.text[at:] != c.want {
			t.Errorf("last %d of %.20q: %.20q, %v", c.n, c.text, c.text[at:], err)
		}
	}
	if n, err := countLines(strings.NewReader(big), int64(len(big))); n != 300 || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
}

// FuzzSplitter checks that lines do not depend on how a stream is cut into pieces.
func FuzzSplitter(f *testing.F) {
	f.Add([]byte("a\nbb\r\n\nccc"), uint8(2), uint8(3))
	f.Add([]byte("\n\n"), uint8(1), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, piece, limit uint8) {
		step, maxLine := int(piece)+1, int(limit)+1
		s := splitter{max: maxLine, number: 1}
		var got []string
		note := func(l Line) {
			got = append(got, fmt.Sprintf("%d %d %d %q", l.Offset, l.Number, l.Cut, l.Text))
		}
		for rest := data; len(rest) > 0; {
			n := min(step, len(rest))
			chunk := bytes.Clone(rest[:n])
			for _, l := range s.feed(chunk, nil) {
				note(l)
			}
			clear(chunk)
			rest = rest[n:]
		}
		if l, ok := s.unfinished(); ok {
			note(l)
		}
		if want := plainSplit(data, maxLine); strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func plainSplit(data []byte, maxLine int) (all []string) {
	offset := 0
	for i, l := range bytes.SplitAfter(data, []byte("\n")) {
		if len(l) == 0 {
			continue
		}
		text := bytes.TrimSuffix(l, []byte("\n"))
		cut := max(len(text)-maxLine, 0)
		text = text[:len(text)-cut]
		if cut == 0 {
			text = bytes.TrimSuffix(text, []byte("\r"))
		}
		all = append(all, fmt.Sprintf("%d %d %d %q", offset, i+1, cut, text))
		offset += len(l)
	}
	return all
}
