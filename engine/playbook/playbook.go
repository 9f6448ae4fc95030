package playbook

import (
	"errors"
	"fmt"
	"slices"
)

// Bullet is one entry of a playbook. The counters say how often a reflector found it
// helpful, harmful or neutral.
type Bullet struct {
	ID      string `json:"id"`
	Section string `json:"section"`
	Content string `json:"content"`
	Helpful int    `json:"helpful"`
	Harmful int    `json:"harmful"`
	Neutral int    `json:"neutral"`
}

// Playbook is an ordered list of bullets. NextID is the number of the next bullet id;
// it never falls, so an id is never given twice in a line of versions. The zero value
// is the empty playbook. Values handed out by a [Store] are shared: do not change them.
type Playbook struct {
	Bullets []Bullet `json:"bullets"`
	NextID  int      `json:"next_id"`
}

// Clone is a copy that shares nothing which can change.
func (p *Playbook) Clone() *Playbook {
	return &Playbook{Bullets: slices.Clone(p.Bullets), NextID: p.NextID}
}

// Find is the bullet with that id, by value; false where there is none.
func (p *Playbook) Find(id string) (Bullet, bool) {
	for i := range p.Bullets {
		if p.Bullets[i].ID == id {
			return p.Bullets[i], true
		}
	}
	return Bullet{}, false
}

// Sections lists the section names in the order of their first bullet.
func (p *Playbook) Sections() []string {
	names := []string{}
	seen := map[string]bool{}
	for i := range p.Bullets {
		if name := p.Bullets[i].Section; !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// errInvalid is what a book is refused for that no parser or merge would make.
var errInvalid = errors.New("not a valid playbook")

// check finds what a canonical form could not hold without loss.
func (p *Playbook) check() error {
	seen := make(map[string]bool, len(p.Bullets))
	for i := range p.Bullets {
		b := &p.Bullets[i]
		var wrong string
		switch {
		case !validID(b.ID):
			wrong = "has a bad id"
		case seen[b.ID]:
			wrong = "has an id that an earlier one has"
		case b.Content == "" || b.Content != cleanContent(b.Content):
			wrong = "has content that is empty or holds control characters"
		case b.Section == "" || b.Section != cleanSection(b.Section):
			wrong = "has a bad section name"
		case !validCount(b.Helpful) || !validCount(b.Harmful) || !validCount(b.Neutral):
			wrong = "has a counter out of range"
		}
		if wrong != "" {
			return fmt.Errorf("%w: bullet %d (%.80q) %s", errInvalid, i+1, b.ID, wrong)
		}
		seen[b.ID] = true
	}
	return nil
}

// grouped is the bullets with those of one section together, sections in the order of
// their first bullet: the same slice where they are already.
func grouped(bullets []Bullet) []Bullet {
	rank := map[string]int{}
	last, split := "", false
	for i := range bullets {
		if i > 0 && bullets[i].Section == last {
			continue
		}
		last = bullets[i].Section
		if _, again := rank[last]; again {
			split = true
			continue
		}
		rank[last] = len(rank)
	}
	if !split {
		return bullets
	}
	sections := make([][]Bullet, len(rank))
	for _, b := range bullets {
		sections[rank[b.Section]] = append(sections[rank[b.Section]], b)
	}
	return slices.Concat(sections...)
}
