package redact

import (
	"bytes"
	"cmp"
	"slices"
)

// anchor is a text by which a secret is noticed.
type anchor struct {
	text string
	kind string
	// match is where the secret is, given the text and where the anchor stands in it. from ==
	// to says that there is none.
	match func(b []byte, at int) (from, to int)
	known bool // a value rather than a shape
	pair  int  // the place in text of its rarest two bytes
}

// hit is a secret in a text.
type hit struct {
	from, to int
	kind     string
	shape    bool // found by a shape
}

// finder finds anchors: by a table of pairs of bytes, of which most pairs of a text are not
// in.
type finder struct {
	table   [1 << 16]uint8 // of a pair, the number of its bucket; 0 for none
	buckets [][]anchor
}

func (f *finder) build(anchors []anchor) {
	f.buckets = [][]anchor{nil}
	for _, a := range anchors {
		a.pair = rarest(a.text)
		p := pair(a.text[a.pair], a.text[a.pair+1])
		if f.table[p] == 0 {
			if len(f.buckets) > 255 {
				f.table[p] = 255 // shared: the anchors are compared anyway
			} else {
				f.table[p] = uint8(len(f.buckets))
				f.buckets = append(f.buckets, nil)
			}
		}
		n := f.table[p]
		f.buckets[n] = append(f.buckets[n], a)
	}
	for _, b := range f.buckets {
		slices.SortStableFunc(b, func(x, y anchor) int { return cmp.Compare(len(y.text), len(x.text)) })
	}
}

func pair(a, b byte) uint16 { return uint16(a) | uint16(b)<<8 }

// rarest is where in a text two bytes stand that are rare in others.
func rarest(text string) int {
	best, score := 0, 1<<30
	for i := range len(text) - 1 {
		if s := common(text[i]) * common(text[i+1]); s < score {
			best, score = i, s
		}
	}
	return best
}

// common is how frequent a byte is, roughly.
func common(c byte) int {
	switch {
	case c == ' ' || c == 'e' || c == 't' || c == 'a' || c == '"' || c == '-' || c == '/':
		return 12
	case 'a' <= c && c <= 'z':
		return 8
	case '0' <= c && c <= '9':
		return 5
	case c == '\\' || c == ':' || c == '_':
		return 4
	}
	return 2
}

// find is the first secret that begins at the place or after it.
func (f *finder) find(b []byte, at int) (first hit, ok bool) {
	// An anchor may stand behind where its secret begins, and in a longer secret: what is
	// noticed first need not begin first. Among those that touch the first, the one that
	// begins first counts, and of those the longest.
	last := len(b) - 1
	for i := at; i < last; i++ {
		n := f.table[pair(b[i], b[i+1])]
		if n == 0 {
			continue
		}
		if ok && i >= first.to {
			break
		}
		for k := range f.buckets[n] {
			a := &f.buckets[n][k]
			start := i - a.pair
			if ok && first.shape && !a.known {
				continue // a shape within a shape ends where that does, and looking would take its time again
			}
			if start < at || start+len(a.text) > len(b) || string(b[start:start+len(a.text)]) != a.text {
				continue
			}
			from, to := a.match(b, start)
			if from < at || from >= to || to > len(b) {
				continue
			}
			first, ok = earlier(first, ok, hit{from, to, a.kind, !a.known}), true
		}
	}
	return first, ok
}

// earlier is the hit that comes first; of two that overlap, what they cover together.
func earlier(a hit, ok bool, b hit) hit {
	switch {
	case !ok || b.to <= a.from:
		return b
	case a.to <= b.from:
		return a
	}
	both := a
	if b.to-b.from > a.to-a.from {
		both.kind = b.kind
	}
	both.shape = a.shape || b.shape
	both.from, both.to = min(a.from, b.from), max(a.to, b.to)
	return both
}

// whole is a match of the anchor itself.
func whole(n int) func([]byte, int) (int, int) {
	return func(_ []byte, at int) (int, int) { return at, at + n }
}

func index(b []byte, from, to int, sub string) int {
	to = min(to, len(b))
	if from >= to {
		return -1
	}
	if at := bytes.Index(b[from:to], []byte(sub)); at >= 0 {
		return from + at
	}
	return -1
}
