package playbook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"acescope/engine/ace"
)

// Bounds of a [History].
const (
	// MaxTouches is how many changes are kept of one bullet: the first and the newest.
	// Others are counted.
	MaxTouches = 64
	// maxWhy is how many bytes of a rationale a touch keeps; the [Version] has all of it.
	maxWhy = 400
	// maxAncestors is how many branches are followed back from a branch's start.
	maxAncestors = 16
)

// Source is the merge that a change came with, and the run that asked for it.
type Source struct {
	Branch     string    `json:"branch"`
	Seq        int       `json:"seq"` // the number of the merge in its branch, from 1
	Version    string    `json:"version"`
	At         time.Time `json:"at"`
	TaskID     string    `json:"task_id,omitempty"`
	WorkflowID string    `json:"workflow_id,omitempty"`
	RunID      string    `json:"run_id,omitempty"`
	Rationale  string    `json:"rationale,omitempty"` // its beginning
}

// Touch is one change of one bullet. Content is what an ADD or UPDATE made it say, Before
// what it said until an UPDATE or REMOVE; the counters are what an ADD brought or a TAG
// added. What was handed out is never changed.
type Touch struct {
	*Source
	Type    ace.OperationType `json:"operation"`
	Content string            `json:"content,omitempty"`
	Before  string            `json:"before,omitempty"`
	Helpful int               `json:"helpful,omitempty"`
	Harmful int               `json:"harmful,omitempty"`
	Neutral int               `json:"neutral,omitempty"`
	Reason  string            `json:"reason,omitempty"`
}

// Life is all that became of one bullet, oldest change first. Added is nil where the
// bullet came with a playbook that was not made by merges. Dropped counts changes that
// were not kept, Tags and Edits all of them.
type Life struct {
	Bullet  Bullet  `json:"bullet"` // as it is, or was when it was removed
	Gone    bool    `json:"gone,omitempty"`
	Added   *Source `json:"added,omitempty"`
	Touches []Touch `json:"touches"`
	Dropped int     `json:"dropped,omitempty"`
	Tags    int     `json:"tags"`
	Edits   int     `json:"edits"`
	Counts  Counts  `json:"-"`
}

// Last is the newest change, nil where there was none.
func (l *Life) Last() *Touch {
	if len(l.Touches) == 0 {
		return nil
	}
	return &l.Touches[len(l.Touches)-1]
}

// Totals counts the operations that were merged, by what became of them.
type Totals struct {
	Merges  int `json:"merges"`
	Added   int `json:"added"`
	Updated int `json:"updated"`
	Removed int `json:"removed"`
	Tagged  int `json:"tagged"`
	Refused int `json:"refused"`
}

// History is what the merges of a branch did, bullet by bullet, as far as it has been
// read: see [Store.Read]. It holds the bullets there are, with bounded memories of each,
// and those that went, if it was told to watch them. It is for one goroutine; what its
// methods give is not changed afterwards.
type History struct {
	Branch string
	Seq    int // merges read of the branch itself

	watch  map[string]bool // bullets whose memory is not bounded and outlives them
	start  string
	head   string
	lives  map[string]*Life
	totals Totals
	size   sizes
	falls  falls
	since  int // bullets added since the last edit
	edit   *Source
}

// NewHistory begins a history of a branch. The bullets that are named are remembered with
// all their changes, and after they were removed.
func NewHistory(branch string, watch ...string) *History {
	h := &History{Branch: branch, watch: map[string]bool{}}
	for _, id := range watch {
		h.watch[id] = true
	}
	return h
}

// Read brings a history up to a merge of its branch, the newest where to is negative. What
// was read before is not read again; on an error, or when ctx ends, what was read so far
// stays. A branch that begins at a version of another one begins with that one's history.
func (s *Store) Read(ctx context.Context, h *History, to int) error {
	b, err := s.branch(h.Branch)
	if err == nil {
		err = b.refresh()
	}
	if err != nil {
		return err
	}
	d := b.describe()
	if to < 0 {
		to = d.Versions
	}
	if to > d.Versions {
		return fmt.Errorf("%w: branch %q has the versions 0 to %d, not %d", ErrNotFound, h.Branch, d.Versions, to)
	}
	if h.lives == nil || !h.of(b, d) || h.Seq > to {
		if err := s.begin(ctx, h, d, maxAncestors); err != nil {
			return err
		}
	}
	return b.each(ctx, h.Seq, to, func(seq int, v *Version) {
		h.take(h.Branch, seq, v)
		h.Seq = seq
	})
}

// of tells whether the branch still goes on from where the history has come to.
func (h *History) of(b *branch, d Branch) bool {
	if h.start != d.Start || h.Seq > d.Versions {
		return false
	}
	last := b.span(h.Seq-1, h.Seq)
	return h.Seq == 0 || len(last) == 1 && last[0].hash == h.head
}

// begin starts anew at the branch's first playbook, with what is known of its making.
func (s *Store) begin(ctx context.Context, h *History, d Branch, depth int) error {
	*h = History{Branch: h.Branch, watch: h.watch, start: d.Start, head: d.Start, lives: map[string]*Life{}}
	book, err := s.Get(d.Start)
	if err != nil {
		return fmt.Errorf("playbook branch %q: its start: %w", h.Branch, err)
	}
	from, err := s.ancestor(d)
	if err != nil && !errors.Is(err, ErrCorrupt) {
		return err // another branch that is damaged is no reason not to show this one
	}
	if from != nil && depth > 0 {
		past := &History{Branch: from.branch.name, watch: h.watch}
		if err := s.begin(ctx, past, from.branch.describe(), depth-1); err != nil {
			return err
		}
		err := from.branch.each(ctx, 0, from.entry.index+1, func(seq int, v *Version) { past.take(past.Branch, seq, v) })
		if err != nil {
			return err
		}
		h.lives = past.lives
	}
	lives := make(map[string]*Life, len(book.Bullets))
	for _, now := range book.Bullets {
		l := h.lives[now.ID]
		if l == nil {
			l = &Life{}
		}
		l.Bullet = now
		l.Counts = l.Counts.restart(now)
		lives[now.ID] = l
	}
	for id, l := range h.lives {
		if l.Gone {
			lives[id] = l
		}
	}
	h.lives = lives
	h.size.begin(d.At, lives)
	return nil
}

// ancestor is the merge of another branch that made what a branch begins with.
func (s *Store) ancestor(d Branch) (*place, error) {
	found, err := s.locate(d.Start)
	if found == nil || found.branch.name == d.Name {
		return nil, err
	}
	return found, nil
}

// take folds one merge.
func (h *History) take(branch string, seq int, v *Version) {
	h.totals.Merges++
	h.head = v.Hash
	by := &Source{Branch: branch, Seq: seq, Version: v.Hash, At: v.At, TaskID: v.TaskID, WorkflowID: v.WorkflowID, RunID: v.RunID,
		Rationale: strings.ToValidUTF8(cut(v.Rationale, maxWhy), "")}
	for i := range v.Operations {
		if op := &v.Operations[i]; op.Fate == ace.FateAccepted {
			h.operation(by, op)
		} else {
			h.totals.Refused++
		}
	}
	h.size.note(seq, v.At)
	h.falls.note(by, h.size.now)
}

func (h *History) operation(by *Source, op *ace.Operation) {
	t := Touch{Source: by, Type: op.Type, Reason: op.Reason}
	counts, _ := counters(op.Metadata)
	l := h.lives[op.BulletID]
	if op.Type == ace.OpAdd {
		h.totals.Added++
		h.since++
		l = &Life{Bullet: Bullet{ID: op.BulletID, Section: op.Section}, Added: by}
		h.lives[op.BulletID] = l
		t.Content = op.Content
	}
	if l == nil || l.Gone {
		return // the store would not have merged it
	}
	h.size.less(&l.Bullet, op.Type)
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
		l.Counts = l.Counts.put(Count{by.Seq, l.Bullet.Helpful, l.Bullet.Harmful})
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
		l.Gone = true
		if !h.watch[op.BulletID] {
			delete(h.lives, op.BulletID)
		}
	}
	h.size.more(&l.Bullet, op.Type)
	l.touch(t, h.watch[op.BulletID])
}

// touch notes a change. Where there are too many, the second oldest makes room, so that
// the first always says who wrote the bullet.
func (l *Life) touch(t Touch, all bool) {
	if len(l.Touches) < MaxTouches || all {
		l.Touches = append(l.Touches, t)
		return
	}
	l.Dropped += MaxTouches / 4
	kept := make([]Touch, 0, MaxTouches)
	kept = append(kept, l.Touches[0])
	kept = append(kept, l.Touches[1+MaxTouches/4:]...)
	l.Touches = append(kept, t)
}

// Life is what became of one bullet; false where there is none of that id, or none any
// more and it was not watched.
func (h *History) Life(id string) (Life, bool) {
	l := h.lives[id]
	if l == nil {
		return Life{}, false
	}
	return *l, true
}

// Blame is the lives of a playbook's bullets, in its order.
func (h *History) Blame(book *Playbook) []Life {
	lives := make([]Life, len(book.Bullets))
	for i, b := range book.Bullets {
		if l := h.lives[b.ID]; l != nil {
			lives[i] = *l
		}
		lives[i].Bullet = b
	}
	return lives
}

// Totals counts the operations of the branch so far.
func (h *History) Totals() Totals { return h.totals }

// Head is the version that the history has come to.
func (h *History) Head() string { return h.head }

// Sizes is the size of the playbook over the merges of the branch.
func (h *History) Sizes() Sizes { return h.size.list() }
