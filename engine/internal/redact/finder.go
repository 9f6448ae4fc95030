package redact

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// anchor is a text that indicates a secret.
type anchor struct {
	text string
	kind string
	// match returns the range of the secret, given the position of the anchor. An empty range
	// means that there is no secret.
	match func(b []byte, at int) (from, to int)
	known bool // the anchor is a known secret, not part of a shape
	// spaced is set if there may be spaces between the anchor and the end of the secret.
	spaced bool
	pair   int // index in text of its rarest pair of bytes
}

// hit is a secret in a text.
type hit struct {
	from, to int
	kind     string
	shape    bool // found by a shape
}

// finder finds anchors with a table of byte pairs that excludes most positions of a text.
type finder struct {
	table   [1 << 16]uint8 // bucket of a pair, or 0
	buckets [][]anchor
}

func (f *finder) build(anchors []anchor) {
	f.buckets = [][]anchor{nil}
	for _, a := range anchors {
		a.pair = rarest(a.text)
		p := pair(a.text[a.pair], a.text[a.pair+1])
		if f.table[p] == 0 {
			if len(f.buckets) > 255 {
				f.table[p] = 255 // shared bucket; find compares the anchors
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

// frequent lists the bytes of English prose, the most frequent first.
const frequent = " etaoinsrhldcumfpgwybvkxjqz"

// rarest returns the index of the pair of bytes in the text that is rarest in prose.
func rarest(text string) (index int) {
	rarity := func(c byte) int {
		if at := strings.IndexByte(frequent, c); at >= 0 {
			return at
		}
		return len(frequent)
	}
	most := -1
	for i := range len(text) - 1 {
		if r := rarity(text[i]) + rarity(text[i+1]); r > most {
			most, index = r, i
		}
	}
	return index
}

// find returns the first secret that starts at or after a position.
func (f *finder) find(b []byte, at int) (first hit, ok bool) {
	// An anchor may lie behind the start of its secret, and within a longer secret, so the first
	// anchor does not always belong to the first secret. Secrets that overlap the first one are
	// merged with it.
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
				continue // a shape within a shape ends at the same position; matching again would cost time
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
	end := len(b)
	if ok {
		end = first.from
	}
	if from, to := awsSecret(b, at, end); from < to {
		return earlier(first, ok, hit{from, to, "aws", true}), true
	}
	return first, ok
}

// earlier returns the hit that starts first, or the union of two that overlap.
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

// anchor returns the position of the first anchor of a secret with spaces at or after a position, or -1.
func (f *finder) anchor(b []byte, at int) int {
	for i := at; i < len(b)-1; i++ {
		n := f.table[pair(b[i], b[i+1])]
		if n == 0 {
			continue
		}
		for _, a := range f.buckets[n] {
			if start := i - a.pair; a.spaced && start >= at && bytes.HasPrefix(b[start:], []byte(a.text)) {
				return start
			}
		}
	}
	return -1
}
