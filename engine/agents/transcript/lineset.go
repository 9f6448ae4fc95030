package transcript

import (
	"context"
	"slices"
	"time"

	"acescope/engine/agents/price"
)

// MaxLines bounds the lines of a transcript that are compared with others, and MaxCompared the
// transcripts that are compared.
const (
	MaxLines    = 1 << 20
	MaxCompared = 32
)

// LineSet holds the uuids of a transcript, to find forks: a fork copies lines with their uuids,
// under a new session ID.
type LineSet struct {
	Path  string
	lines []lineID
	set   map[uint64]struct{}
}

type lineID struct {
	id uint64
	at time.Time
}

// ReadLineSet reads the uuids of a transcript.
func ReadLineSet(ctx context.Context, path string) (*LineSet, error) {
	k := &LineSet{Path: path, set: map[uint64]struct{}{}}
	var l line
	_, err := NewReader(path).Read(ctx, 0, nil, func(raw []byte, _ int64) {
		if len(k.lines) < MaxLines && l.parse(raw) && len(l.bare("uuid")) > 0 {
			id := idHash(l.bare("uuid"))
			k.lines = append(k.lines, lineID{id, l.time()})
			k.set[id] = struct{}{}
		}
	})
	return k, err
}

// Has reports whether the transcript contains a line.
func (k *LineSet) Has(uuid uint64) bool { _, ok := k.set[uuid]; return ok }

// Parent returns the transcript that k was forked from and the number of shared lines, or nil. It is, of the
// transcripts that diverged earlier than k, the one that shares most lines with k. others does not contain k;
// its first elements, up to first, count as earlier if they diverged at the same time.
func (k *LineSet) Parent(others []*LineSet, first int) (parent *LineSet, shared int) {
	for i, o := range others {
		n, mine := k.divergence(o)
		_, theirs := o.divergence(k)
		if n == 0 || !earlier(theirs, mine, i < first) {
			continue
		}
		if parent == nil || n > shared {
			parent, shared = o, n
		}
	}
	return parent, shared
}

// Diverged reports whether k has a line that o lacks, for each o that it shares lines with.
func (k *LineSet) Diverged(others []*LineSet) bool {
	return !slices.ContainsFunc(others, func(o *LineSet) bool {
		shared, own := k.divergence(o)
		return shared > 0 && own == nil
	})
}

// divergence returns the number of lines that k shares with o, and the time of k's first line
// that o lacks, or nil.
func (k *LineSet) divergence(o *LineSet) (shared int, own *time.Time) {
	for i := range k.lines {
		if o.Has(k.lines[i].id) {
			shared++
		} else if own == nil {
			own = &k.lines[i].at
		}
	}
	return shared, own
}

// earlier reports whether divergence a comes before b. nil, which means that the other
// transcript is a fork of the whole file, comes first. tie decides between equals.
func earlier(a, b *time.Time, tie bool) bool {
	switch {
	case a == nil && b == nil:
		return tie
	case a == nil || b == nil:
		return a == nil
	case a.Equal(*b):
		return tie
	}
	return a.Before(*b)
}

// Inherited folds the lines that k shares with its parent.
func (k *LineSet) Inherited(ctx context.Context, parent *LineSet, prices *price.Prices) (Summary, error) {
	f := NewFold(prices)
	f.only = parent.Has
	return f.readAll(ctx, NewReader(k.Path))
}
