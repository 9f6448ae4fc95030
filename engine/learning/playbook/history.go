package playbook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"acescope/engine/ace"
)

// Bounds of a [History].
const (
	// MaxTouches is the number of changes that a history keeps of one bullet: the first and
	// the newest.
	MaxTouches = 64
	// maxWhy is the number of bytes of a rationale that a Source keeps.
	maxWhy = 400
	// maxAncestors is the number of branches to follow back from the start of a branch.
	maxAncestors = 16
)

// BulletChange is one change of one bullet. Content is the content after an ADD, UPDATE or MERGE, Before
// the content before an UPDATE, MERGE or REMOVE. The counters are the amounts that an ADD, TAG or
// MERGE added. Merged lists the bullets that a MERGE merged into this one; Into is the bullet that this one
// was merged into. A returned BulletChange is never modified.
type BulletChange struct {
	*Source
	Type    ace.OperationType `json:"operation"`
	Content string            `json:"content,omitempty"`
	Before  string            `json:"before,omitempty"`
	Helpful int               `json:"helpful,omitempty"`
	Harmful int               `json:"harmful,omitempty"`
	Neutral int               `json:"neutral,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	Merged  []MergedBullet    `json:"merged,omitempty"`
	Into    string            `json:"into,omitempty"`
}

// MergedBullet is a bullet that was merged into another one, as it was then. Added is nil if the bullet was
// part of the first playbook of the branch.
type MergedBullet struct {
	Bullet
	Added *Source `json:"added,omitempty"`
}

// BulletHistory is the history of one bullet, oldest change first. Added is nil if the bullet was
// part of the first playbook of the branch. Dropped counts changes that were not kept; Tags
// and Edits count all changes.
type BulletHistory struct {
	Bullet  Bullet         `json:"bullet"` // its current or last state
	Gone    bool           `json:"gone,omitempty"`
	Added   *Source        `json:"added,omitempty"`
	Touches []BulletChange `json:"touches"`
	Dropped int            `json:"dropped,omitempty"`
	Tags    int            `json:"tags"`
	Edits   int            `json:"edits"`
	Counts  Counts         `json:"-"`
}

// Last returns the newest change, or nil.
func (l *BulletHistory) Last() *BulletChange {
	if len(l.Touches) == 0 {
		return nil
	}
	return &l.Touches[len(l.Touches)-1]
}

// Totals counts the merged operations by outcome.
type Totals struct {
	Merges  int `json:"merges"`
	Added   int `json:"added"`
	Updated int `json:"updated"`
	Removed int `json:"removed"`
	Tagged  int `json:"tagged"`
	Merged  int `json:"merged,omitempty"`
	Refused int `json:"refused"`
}

// History is what the merges of a branch did to each bullet; see [Store.Read]. It covers the
// current bullets, with bounded memory for each, and removed bullets that are watched. It is
// not safe for concurrent use. Values that its methods return are never modified.
type History struct {
	Branch string
	Seq    int // merges read of the branch itself

	watch   map[string]bool // bullets that are kept completely, even after their removal
	start   string
	head    string
	lives   map[string]*BulletHistory
	totals  Totals
	size    sizeSeries
	shrinks shrinkDetector
	since   int     // bullets added since the last edit
	edit    *Source // the last update or removal
}

// NewHistory returns an empty history of a branch. It keeps all changes of the watched
// bullets, also after their removal.
func NewHistory(branch string, watch ...string) *History {
	h := &History{Branch: branch, watch: map[string]bool{}}
	for _, id := range watch {
		h.watch[id] = true
	}
	return h
}

// Read extends a history up to merge number to of its branch, or to the newest merge if to is
// negative. It does not read merges again. On an error, the history keeps what was read. A
// branch that starts at a version of another branch includes the history of that branch.
func (s *Store) Read(ctx context.Context, h *History, to int) error {
	x, err := s.logs.of(h.Branch)
	if err != nil {
		return err
	}
	if to < 0 {
		to = len(x.entries)
	}
	if to > len(x.entries) {
		return fmt.Errorf("%w: branch %q has versions 0 to %d, not %d", ErrNotFound, h.Branch, len(x.entries),
			to)
	}
	if h.lives == nil || h.start != x.header.Start || h.Seq > to || x.at(h.Seq) != h.head {
		if err := s.begin(ctx, h, x, maxAncestors); err != nil {
			return err
		}
	}
	return s.fold(ctx, h, x, h.Seq, to)
}

// fold adds the merges of a branch after the first from, up to the first to.
func (s *Store) fold(ctx context.Context, h *History, x *branchLog, from, to int) (err error) {
	readErr := x.each(ctx, from, to, func(v *Version) {
		var snapshot *Playbook
		if v.Imported != nil && err == nil {
			snapshot, err = s.books.rebuild(ctx, x, v.Seq)
		}
		if err == nil {
			h.add(v, snapshot)
			h.Seq = v.Seq
		}
	})
	return cmp.Or(err, readErr)
}

// begin resets the history to the branch's first playbook and the history of that playbook.
func (s *Store) begin(ctx context.Context, h *History, x *branchLog, depth int) error {
	start := x.header.Start
	*h = History{Branch: h.Branch, watch: h.watch, start: start, head: start,
		lives: map[string]*BulletHistory{}}
	book, err := s.Get(ctx, start)
	if err != nil {
		return fmt.Errorf("playbook branch %q: start: %w", h.Branch, err)
	}
	past := &History{watch: h.watch}
	from, n, err := s.locate(start)
	// A corrupt ancestor must not make this branch unreadable.
	if err != nil && !errors.Is(err, ErrCorrupt) {
		return err
	}
	if from != nil && from.path != x.path && depth > 0 {
		past.Branch = from.header.Branch
		if err := s.begin(ctx, past, from, depth-1); err != nil {
			return err
		}
		if err := s.fold(ctx, past, from, 0, n); err != nil {
			return err
		}
	}
	for id, l := range past.lives {
		if l.Gone {
			h.lives[id] = l
		}
	}
	for _, b := range book.Bullets {
		l := past.lives[b.ID]
		l = cmp.Or(l, &BulletHistory{})
		l.Bullet = b
		l.Counts = startCounts(b)
		h.lives[b.ID] = l
	}
	h.size.begin(x.header.At, h.lives)
	return nil
}

// add folds one version into the history. snapshot is the playbook of an imported version, nil for a
// merge.
func (h *History) add(v *Version, snapshot *Playbook) {
	h.totals.Merges++
	h.head = v.Hash
	by := v.Source
	by.Rationale = strings.ToValidUTF8(ace.Head(by.Rationale, maxWhy), "")
	before := h.size.now
	for i := range v.Operations {
		if op := &v.Operations[i]; op.Outcome == ace.OutcomeAccepted {
			h.apply(&by, op)
		} else {
			h.totals.Refused++
		}
	}
	if snapshot != nil {
		h.settle(&by, snapshot)
	}
	h.size.add(v.Seq, v.At)
	h.shrinks.add(&by, before, h.size.now)
}

// settle sets the bullets to those of an imported version, whose operations may lack changes: counters may
// have decreased.
func (h *History) settle(by *Source, book *Playbook) {
	h.size.now = Size{}
	for _, b := range book.Bullets {
		l := h.lives[b.ID]
		if l == nil || l.Gone {
			l = &BulletHistory{Bullet: b, Added: by}
			h.lives[b.ID] = l
		}
		if l.Bullet.counts() != b.counts() {
			l.Counts = l.Counts.with(Count{by.Seq, b.Helpful, b.Harmful})
		}
		l.Bullet = b
		h.size.count(&b, 1)
	}
}

func (h *History) apply(by *Source, op *ace.Operation) {
	t := BulletChange{Source: by, Type: op.Type, Reason: op.Reason}
	counts, _ := counters(op.Metadata)
	l := h.lives[op.BulletID]
	if op.Type == ace.OpAdd {
		h.totals.Added++
		h.since++
		l = &BulletHistory{Bullet: Bullet{ID: op.BulletID, Section: op.Section}, Added: by}
		h.lives[op.BulletID] = l
		t.Content = op.Content
	}
	if l == nil || l.Gone {
		return // a store does not merge such an operation
	}
	if op.Type != ace.OpAdd {
		h.size.count(&l.Bullet, -1)
	}
	switch op.Type {
	case ace.OpAdd, ace.OpTag:
		t.Helpful, t.Harmful, t.Neutral = counts.helpful, counts.harmful, counts.neutral
		l.Bullet.count(counts)
		if op.Type == ace.OpTag {
			h.totals.Tagged++
			l.Tags++
		} else {
			l.Bullet.Content = op.Content
		}
		l.Counts = l.Counts.with(Count{by.Seq, l.Bullet.Helpful, l.Bullet.Harmful})
	case ace.OpUpdate:
		h.totals.Updated++
		h.since, h.edit = 0, by
		l.Edits++
		t.Before, t.Content = l.Bullet.Content, op.Content
		l.Bullet.Content = op.Content
	case ace.OpRemove:
		h.totals.Removed++
		h.since, h.edit = 0, by
		t.Before = l.Bullet.Content
		h.end(l)
	case ace.OpMerge:
		h.totals.Merged++
		h.since, h.edit = 0, by
		l.Edits++
		t.Helpful, t.Harmful, t.Neutral = counts.helpful, counts.harmful, counts.neutral
		l.Bullet.count(counts)
		l.Counts = l.Counts.with(Count{by.Seq, l.Bullet.Helpful, l.Bullet.Harmful})
		if op.Content != "" {
			t.Before, t.Content = l.Bullet.Content, op.Content
			l.Bullet.Content = op.Content
		}
		t.Merged = h.mergeSources(by, op)
	}
	if op.Type != ace.OpRemove {
		h.size.count(&l.Bullet, 1)
	}
	l.add(t, h.watch[op.BulletID])
}

// end marks a bullet as removed, and forgets it unless it is watched.
func (h *History) end(l *BulletHistory) {
	l.Gone = true
	if id := l.Bullet.ID; !h.watch[id] {
		delete(h.lives, id)
	}
}

// mergeSources ends the bullets that a MERGE removes and returns them.
func (h *History) mergeSources(by *Source, op *ace.Operation) (merged []MergedBullet) {
	for _, id := range op.SourceIDs {
		l := h.lives[id]
		if l == nil || l.Gone {
			continue
		}
		h.size.count(&l.Bullet, -1)
		merged = append(merged, MergedBullet{l.Bullet, l.Added})
		l.add(BulletChange{Source: by, Type: op.Type, Before: l.Bullet.Content, Into: op.BulletID},
			h.watch[id])
		h.end(l)
	}
	return merged
}

// add appends a change. Unless all are to be kept, it drops old changes if there are too
// many, but never the first, which says who wrote the bullet.
func (l *BulletHistory) add(t BulletChange, all bool) {
	if len(l.Touches) < MaxTouches || all {
		l.Touches = append(l.Touches, t)
		return
	}
	l.Dropped += MaxTouches / 4
	kept := make([]BulletChange, 0, MaxTouches)
	kept = append(kept, l.Touches[0])
	kept = append(kept, l.Touches[1+MaxTouches/4:]...)
	l.Touches = append(kept, t)
}

// Bullet returns the history of a bullet. It returns false if the bullet never existed, or was
// removed and not watched.
func (h *History) Bullet(id string) (BulletHistory, bool) {
	l := h.lives[id]
	if l == nil {
		return BulletHistory{}, false
	}
	return *l, true
}

// Blame returns the histories of a playbook's bullets in its order.
func (h *History) Blame(book *Playbook) []BulletHistory {
	lives := make([]BulletHistory, len(book.Bullets))
	for i, b := range book.Bullets {
		if l := h.lives[b.ID]; l != nil {
			lives[i] = *l
		}
		lives[i].Bullet = b
	}
	return lives
}

// Totals returns the number of operations of the branch by outcome.
func (h *History) Totals() Totals { return h.totals }

// Head returns the last version that the history has read.
func (h *History) Head() string { return h.head }

// Sizes returns the size of the playbook after the merges of the branch.
func (h *History) Sizes() Sizes { return h.size.list() }

// Bounds of a series. A full series drops every other point, and new points that are closer
// together than its resolution replace one another.
const (
	maxCounts = 64
	maxSizes  = 1024
)

// Count is the counters of a bullet from one merge on.
type Count struct {
	Seq     int `json:"seq"`
	Helpful int `json:"helpful"`
	Harmful int `json:"harmful"`
}

// Counts is the counters of a bullet over the merges of a branch, oldest first. It holds at
// most maxCounts changes: older ones are thinned out. Values are never modified.
type Counts []Count

func (c Counts) with(now Count) Counts {
	n := len(c)
	if n > 0 && c[n-1].Seq == now.Seq || n > 1 && now.Seq-c[n-2].Seq < (now.Seq-c[0].Seq)/maxCounts {
		c = slices.Clone(c[:n-1]) // replace the last point
	}
	if len(c) >= maxCounts {
		c = thin(c)
	}
	return append(c, now)
}

// startCounts returns the counters at the start of a branch.
func startCounts(b Bullet) Counts { return Counts{{0, b.Helpful, b.Harmful}} }

// thin returns a new slice with every other element, the first and the last.
func thin[T any](all []T) []T {
	kept := make([]T, 0, len(all))
	for i := 0; i < len(all)-1; i += 2 {
		kept = append(kept, all[i])
	}
	return append(kept, all[len(all)-1])
}

// At returns the counters after a merge, zero before the first.
func (c Counts) At(seq int) Count {
	i := sort.Search(len(c), func(i int) bool { return c[i].Seq > seq })
	if i == 0 {
		return Count{Seq: seq}
	}
	return c[i-1]
}

// Sample returns the counters at n merges, spaced evenly from the first merge to the given one.
func (c Counts) Sample(to, n int) (helpful, harmful []float64) {
	if len(c) == 0 || n < 1 {
		return nil, nil
	}
	from := c[0].Seq
	for i := range n {
		at := c.At(from + (to-from)*(i+1)/n)
		helpful = append(helpful, float64(at.Helpful))
		harmful = append(harmful, float64(at.Harmful))
	}
	return helpful, harmful
}

// Size is the size of a playbook after a merge: its bullets, the bytes of their contents, and
// the sums of their counters.
type Size struct {
	Seq     int       `json:"seq"`
	At      time.Time `json:"at"`
	Bullets int       `json:"bullets"`
	Bytes   int       `json:"bytes"`
	Helpful int       `json:"helpful"`
	Harmful int       `json:"harmful"`
}

// Sizes is the size of a playbook over the merges of a branch, oldest first: at most maxSizes
// points, including the start and the newest. Values are never modified.
type Sizes []Size

// before returns the size at a time, which is that of the last merge not later than it.
func (s Sizes) before(at time.Time) Size {
	i := sort.Search(len(s), func(i int) bool { return s[i].At.After(at) })
	return s[max(i-1, 0)]
}

type sizeSeries struct {
	now Size
	all Sizes // without the newest, if it is too close to the previous point
}

// list returns the sizes including the newest.
func (s *sizeSeries) list() Sizes {
	if n := len(s.all); n == 0 || s.all[n-1].Seq == s.now.Seq {
		return s.all
	}
	return append(slices.Clip(s.all), s.now)
}

func (s *sizeSeries) begin(at time.Time, lives map[string]*BulletHistory) {
	s.now = Size{At: at}
	for _, l := range lives {
		if !l.Gone {
			s.count(&l.Bullet, 1)
		}
	}
	s.all = Sizes{s.now}
}

// count adds a bullet to the size (sign 1) or removes it (sign -1).
func (s *sizeSeries) count(b *Bullet, sign int) {
	s.now.Bullets += sign
	s.now.Bytes += sign * len(b.Content)
	s.now.Helpful += sign * b.Helpful
	s.now.Harmful += sign * b.Harmful
}

func (s *sizeSeries) add(seq int, at time.Time) {
	s.now.Seq, s.now.At = seq, at
	if seq-s.all[len(s.all)-1].Seq < seq/maxSizes {
		return
	}
	if len(s.all) >= maxSizes {
		s.all = thin(s.all)
	}
	s.all = append(s.all, s.now)
}
