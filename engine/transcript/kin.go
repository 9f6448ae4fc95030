package transcript

import (
	"context"
	"time"

	"acescope/engine/price"
)

// MaxKin bounds the lines of a transcript that are compared with others, and MaxFamily the
// transcripts that are compared.
const (
	MaxKin    = 1 << 20
	MaxFamily = 32
)

// Kin is what is needed to tell what a transcript has in common with others: a fork copies
// what was said under the same uuids, with a new session id.
type Kin struct {
	Path  string
	lines []kinLine
	set   map[uint64]struct{}
}

type kinLine struct {
	id uint64
	at time.Time
}

// ReadKin reads a transcript's uuids.
func ReadKin(ctx context.Context, path string, buf *Buffer) (*Kin, error) {
	k := &Kin{Path: path, set: map[uint64]struct{}{}}
	var l line
	_, err := NewReader(path, buf).Read(ctx, 0, nil, func(raw []byte, _ int64) {
		if len(k.lines) < MaxKin && l.parse(raw) && len(l.uuid) > 0 {
			id := idHash(l.uuid)
			k.lines = append(k.lines, kinLine{id, l.time()})
			k.set[id] = struct{}{}
		}
	})
	return k, err
}

// Has tells whether the transcript holds a line.
func (k *Kin) Has(uuid uint64) bool { _, ok := k.set[uuid]; return ok }

// Parent is the transcript among others that k was forked from, and how many lines k has
// from it: the one it shares most with, of those that went on before k did. Nil where k is
// the eldest. Of two that are the same, the one that comes first in others is the elder;
// k is not among them, and first tells how many of them stand before it.
func (k *Kin) Parent(others []*Kin, first int) (parent *Kin, shared int) {
	for i, o := range others {
		n, mine := k.beyond(o)
		_, theirs := o.beyond(k)
		if n == 0 || !elder(theirs, mine, i < first) {
			continue
		}
		if parent == nil || n > shared {
			parent, shared = o, n
		}
	}
	return parent, shared
}

// beyond is how many lines k shares with another, and when it first went on alone; nil
// where it never did.
func (k *Kin) beyond(o *Kin) (shared int, own *time.Time) {
	for i := range k.lines {
		if o.Has(k.lines[i].id) {
			shared++
		} else if own == nil {
			own = &k.lines[i].at
		}
	}
	return shared, own
}

// elder tells whether the one that went on alone at a is older than the one that did at b.
// What never went on was forked where it ended.
func elder(a, b *time.Time, first bool) bool {
	switch {
	case a == nil && b == nil:
		return first
	case a == nil || b == nil:
		return a == nil
	case a.Equal(*b):
		return first
	}
	return a.Before(*b)
}

// Own folds the lines that k has and its parent has not.
func (k *Kin) Own(ctx context.Context, parent *Kin, prices *price.Prices, buf *Buffer) (Summary, error) {
	f := NewFold(prices)
	f.skip = parent.Has
	p, err := NewReader(k.Path, buf).Read(ctx, 0, nil, func(raw []byte, _ int64) { f.Add(raw) })
	f.Oversize(p.Oversized)
	return f.Summary(), err
}
