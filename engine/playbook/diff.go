package playbook

import (
	"slices"
	"strings"
)

// Difference is what became of the bullets of one playbook in another. Added and Changed
// are in the order of the newer, Removed in that of the older; Same counts the bullets
// that are equal in both.
type Difference struct {
	Added   []Bullet `json:"added"`
	Removed []Bullet `json:"removed"`
	Changed []Change `json:"changed"`
	Same    int      `json:"same"`
}

// Change is a bullet that is in both playbooks and not the same. Words holds the hunks of
// the content where that differs. From is the id that it had, where that was another one:
// files number their bullets anew, the content tells which is which.
type Change struct {
	ID      string `json:"id"`
	From    string `json:"from,omitempty"`
	Before  Bullet `json:"before"`
	After   Bullet `json:"after"`
	Content bool   `json:"content"`
	Counts  bool   `json:"counts"`
	Moved   bool   `json:"moved"` // to another section
	Words   []Hunk `json:"words,omitempty"`
}

// Empty tells that there is no difference.
func (d *Difference) Empty() bool { return len(d.Added)+len(d.Removed)+len(d.Changed) == 0 }

// Diff compares any two playbooks. Bullets are paired by id, and those that then are left
// over by section and content, where that is in each of them once.
func Diff(a, b *Playbook) *Difference {
	d := &Difference{Added: []Bullet{}, Removed: []Bullet{}, Changed: []Change{}}
	old := pairs(a, b)
	taken := make([]bool, len(a.Bullets))
	for _, after := range b.Bullets {
		i, ok := old[after.ID]
		if !ok {
			d.Added = append(d.Added, after)
			continue
		}
		taken[i] = true
		if before := a.Bullets[i]; before == after {
			d.Same++
		} else {
			d.Changed = append(d.Changed, changeOf(before, after))
		}
	}
	for i, gone := range a.Bullets {
		if !taken[i] {
			d.Removed = append(d.Removed, gone)
		}
	}
	return d
}

func changeOf(before, after Bullet) Change {
	c := Change{ID: after.ID, Before: before, After: after, Content: before.Content != after.Content,
		Counts: before.Helpful != after.Helpful || before.Harmful != after.Harmful || before.Neutral != after.Neutral,
		Moved:  before.Section != after.Section}
	if before.ID != after.ID {
		c.From = before.ID
	}
	if c.Content {
		c.Words = Words(before.Content, after.Content)
	}
	return c
}

// pairs is, by the id of a bullet of b, the index of the bullet of a that it was.
func pairs(a, b *Playbook) map[string]int {
	place := make(map[string]int, len(a.Bullets))
	for i := range a.Bullets {
		place[a.Bullets[i].ID] = i
	}
	newer := make(map[string]bool, len(b.Bullets))
	for i := range b.Bullets {
		newer[b.Bullets[i].ID] = true
	}
	said := map[saying][]int{} // what is left over in a
	for i := range a.Bullets {
		if x := &a.Bullets[i]; !newer[x.ID] {
			key := saying{x.Section, folded(x.Content)}
			said[key] = append(said[key], i)
		}
	}
	if len(said) == 0 {
		return place
	}
	left := map[saying][]string{} // the same of b
	for i := range b.Bullets {
		x := &b.Bullets[i]
		if _, ok := place[x.ID]; !ok {
			key := saying{x.Section, folded(x.Content)}
			left[key] = append(left[key], x.ID)
		}
	}
	for key, ids := range left {
		if from := said[key]; len(from) == 1 && len(ids) == 1 {
			place[ids[0]] = from[0]
		}
	}
	return place
}

// HunkKind says in which of two texts a hunk stands.
type HunkKind string

// Kinds of hunks.
const (
	HunkSame    HunkKind = "same"
	HunkAdded   HunkKind = "added"
	HunkRemoved HunkKind = "removed"
)

// Hunk is a run of words of two texts. The hunks that are not added make up the older
// text, those that are not removed the newer one.
type Hunk struct {
	Kind HunkKind `json:"kind"`
	Text string   `json:"text"`
}

// maxEdits bounds the search for a short edit; texts that are further apart are shown as
// one replaced by the other, which reads better too.
const maxEdits = 600

// Words is the difference of two texts word by word. What was removed stands before what
// was added in its place.
func Words(before, after string) []Hunk {
	a, b := words(before), words(after)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	h := &hunks{}
	h.add(HunkSame, a[:head]...)
	h.edit(a[head:len(a)-tail], b[head:len(b)-tail])
	h.add(HunkSame, a[len(a)-tail:]...)
	return h.list()
}

// hunks gathers hunks; removed and added wait until something of both texts follows.
type hunks struct {
	done           []Hunk
	removed, added string
}

func (h *hunks) add(kind HunkKind, words ...string) {
	text := strings.Join(words, "")
	switch kind {
	case HunkRemoved:
		h.removed += text
	case HunkAdded:
		h.added += text
	default:
		if text == "" {
			return
		}
		h.flush()
		if n := len(h.done); n > 0 && h.done[n-1].Kind == HunkSame {
			h.done[n-1].Text += text
		} else {
			h.done = append(h.done, Hunk{HunkSame, text})
		}
	}
}

func (h *hunks) flush() {
	if h.removed != "" {
		h.done = append(h.done, Hunk{HunkRemoved, h.removed})
	}
	if h.added != "" {
		h.done = append(h.done, Hunk{HunkAdded, h.added})
	}
	h.removed, h.added = "", ""
}

// list is the hunks. White space alone between two changes is made part of them, since
// words that change side by side read as one change.
func (h *hunks) list() []Hunk {
	h.flush()
	out := &hunks{}
	for i, k := range h.done {
		between := i > 0 && i < len(h.done)-1
		if k.Kind == HunkSame && between && blank(k.Text) {
			out.removed, out.added = out.removed+k.Text, out.added+k.Text
			continue
		}
		out.add(k.Kind, k.Text)
	}
	out.flush()
	return out.done
}

func blank(s string) bool {
	for _, r := range s {
		if classOf(r) != spaceClass {
			return false
		}
	}
	return true
}

// edit adds the shortest edit of one run of words into another, after Myers; where that
// is longer than maxEdits, all of the one and then all of the other.
func (h *hunks) edit(a, b []string) {
	trace := search(a, b)
	if trace == nil {
		h.add(HunkRemoved, a...)
		h.add(HunkAdded, b...)
		return
	}
	type step struct {
		kind HunkKind
		word string
	}
	var steps []step // from the end
	x, y := len(a), len(b)
	for d := len(trace) - 1; d >= 0; d-- {
		k := trace[d].from(x-y, d)
		px := trace[d].at(k)
		py := px - k
		for ; x > px && y > py; x, y = x-1, y-1 {
			steps = append(steps, step{HunkSame, a[x-1]})
		}
		switch {
		case d == 0:
		case x == px:
			steps = append(steps, step{HunkAdded, b[py]})
		default:
			steps = append(steps, step{HunkRemoved, a[px]})
		}
		x, y = px, py
	}
	for _, s := range slices.Backward(steps) {
		h.add(s.kind, s.word)
	}
}

// front is how far into the older text each diagonal comes before an edit of d words is
// tried: those from -d-1 to d+1.
type front []int

func (f front) at(k int) int { return f[k+len(f)/2] }

// from is the diagonal from which diagonal k is reached with the d-th edit.
func (f front) from(k, d int) int {
	if k == -d || k != d && f.at(k-1) < f.at(k+1) {
		return k + 1
	}
	return k - 1
}

// search is the front before each edit of the shortest, nil where that is longer than
// maxEdits.
func search(a, b []string) []front {
	limit := min(len(a)+len(b), maxEdits)
	reach := make([]int, 2*limit+3)
	zero := limit + 1
	var trace []front
	for d := 0; d <= limit; d++ {
		f := front(slices.Clone(reach[zero-d-1 : zero+d+2]))
		trace = append(trace, f)
		for k := -d; k <= d; k += 2 {
			from := f.from(k, d)
			x := f.at(from)
			if from < k {
				x++
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			reach[zero+k] = x
			if x >= len(a) && x-k >= len(b) {
				return trace
			}
		}
	}
	return nil
}
