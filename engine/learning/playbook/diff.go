package playbook

import (
	"strings"
	"unicode"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// Difference is the difference between two playbooks. Added and Changed are in the order of
// the newer playbook, Removed in that of the older. Same counts equal bullets.
type Difference struct {
	Added   []Bullet `json:"added"`
	Removed []Bullet `json:"removed"`
	Changed []Change `json:"changed"`
	Same    int      `json:"same"`
}

// Change is a bullet that differs between two playbooks. Words is the difference of the
// contents, if they differ. Extra reports whether the extra fields differ. From is the ID in the older
// playbook, if it differs: files may renumber their bullets, so bullets are also matched by content.
type Change struct {
	ID      string `json:"id"`
	From    string `json:"from,omitempty"`
	Before  Bullet `json:"before"`
	After   Bullet `json:"after"`
	Content bool   `json:"content"`
	Counts  bool   `json:"counts"`
	Moved   bool   `json:"moved"` // to another section
	Extra   bool   `json:"extra,omitempty"`
	Words   []Hunk `json:"words,omitempty"`
}

// Empty reports whether the playbooks are equal.
func (d *Difference) Empty() bool { return len(d.Added)+len(d.Removed)+len(d.Changed) == 0 }

// Diff compares two playbooks. It matches bullets by ID, and the remaining ones by section and
// content if those are unique in both.
func Diff(a, b *Playbook) *Difference {
	d := &Difference{Added: []Bullet{}, Removed: []Bullet{}, Changed: []Change{}}
	matches := matchBullets(a, b)
	matched := make([]bool, len(a.Bullets))
	for _, after := range b.Bullets {
		i, ok := matches[after.ID]
		if !ok {
			d.Added = append(d.Added, after)
			continue
		}
		matched[i] = true
		if before := a.Bullets[i]; before == after {
			d.Same++
		} else {
			d.Changed = append(d.Changed, newChange(before, after))
		}
	}
	for i, b := range a.Bullets {
		if !matched[i] {
			d.Removed = append(d.Removed, b)
		}
	}
	return d
}

func newChange(before, after Bullet) Change {
	c := Change{ID: after.ID, Before: before, After: after, Content: before.Content != after.Content,
		Counts: before.counts() != after.counts(), Moved: before.Section != after.Section,
		Extra: before.Extra != after.Extra}
	if before.ID != after.ID {
		c.From = before.ID
	}
	if c.Content {
		c.Words = Words(before.Content, after.Content)
	}
	return c
}

// statement identifies what a bullet says. Bullets with equal statements are duplicates.
type statement struct{ section, content string }

func (b *Bullet) statement() statement { return statement{b.Section, folded(b.Content)} }

// matchBullets returns, by the ID of each matched bullet of b, its index in a.
func matchBullets(a, b *Playbook) map[string]int {
	matches := make(map[string]int, len(a.Bullets))
	for i := range a.Bullets {
		matches[a.Bullets[i].ID] = i
	}
	inB := make(map[string]bool, len(b.Bullets))
	for i := range b.Bullets {
		inB[b.Bullets[i].ID] = true
	}
	restA := map[statement][]int{}
	for i := range a.Bullets {
		if x := &a.Bullets[i]; !inB[x.ID] {
			restA[x.statement()] = append(restA[x.statement()], i)
		}
	}
	restB := map[statement][]string{}
	for i := range b.Bullets {
		x := &b.Bullets[i]
		if _, ok := matches[x.ID]; !ok && len(restA) > 0 {
			restB[x.statement()] = append(restB[x.statement()], x.ID)
		}
	}
	for key, ids := range restB {
		if from := restA[key]; len(from) == 1 && len(ids) == 1 {
			matches[ids[0]] = from[0]
		}
	}
	return matches
}

// HunkKind says which of two texts contain a hunk.
type HunkKind string

// Kinds of hunks.
const (
	HunkSame    HunkKind = "same"
	HunkAdded   HunkKind = "added"
	HunkRemoved HunkKind = "removed"
)

// Hunk is a sequence of words of two texts. The hunks that are not added form the older text,
// those that are not removed the newer.
type Hunk struct {
	Kind HunkKind `json:"kind"`
	Text string   `json:"text"`
}

// Words returns the difference of two texts word by word. Removed words precede the words that
// replace them. White space between two changes becomes part of them, so that changes of
// adjacent words read as one change. For texts with many changes the difference need not be the
// shortest.
func Words(before, after string) []Hunk {
	a, b := words().FindAllString(before, -1), words().FindAllString(after, -1)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	var hunks []Hunk
	add := func(kind HunkKind, text string) {
		if text != "" {
			hunks = append(hunks, Hunk{kind, text})
		}
	}
	var removed, added string
	add(HunkSame, strings.Join(a[:head], ""))
	a, b = a[head:], b[head:]
	end := 0 // of the previous change in a
	for i, d := range lcs.DiffLines(a, b) {
		same := strings.Join(a[end:d.Start], "")
		if i > 0 && strings.TrimFunc(same, unicode.IsSpace) == "" {
			removed += same
			added += same
		} else {
			add(HunkRemoved, removed)
			add(HunkAdded, added)
			add(HunkSame, same)
			removed, added = "", ""
		}
		removed += strings.Join(a[d.Start:d.End], "")
		added += strings.Join(b[d.ReplStart:d.ReplEnd], "")
		end = d.End
	}
	add(HunkRemoved, removed)
	add(HunkAdded, added)
	add(HunkSame, strings.Join(a[end:], ""))
	return hunks
}
