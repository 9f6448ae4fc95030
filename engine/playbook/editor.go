package playbook

import (
	"slices"

	"acescope/engine/ace"
)

// editor is a playbook while operations change it. A removed bullet keeps its place,
// with its id emptied, until the end; so each operation costs the same however many
// bullets there are.
type editor struct {
	bullets []Bullet
	nextID  int
	index   map[string]int // place of each bullet by id
	gone    map[string]bool
	minted  bool // nextID is above every number in use

	sections map[string]string   // spelling by section key; nil until an ADD
	said     map[saying]string   // an id by what it says; nil until content is compared
	too      map[saying][]string // the other ids that say it
}

type saying struct{ section, content string }

func newEditor(p *Playbook) *editor {
	e := &editor{bullets: slices.Clone(p.Bullets), nextID: p.NextID,
		index: make(map[string]int, len(p.Bullets)), gone: map[string]bool{}}
	for i := range e.bullets {
		e.index[e.bullets[i].ID] = i
	}
	return e
}

func (e *editor) playbook() *Playbook {
	bullets := e.bullets
	if len(e.gone) > 0 {
		bullets = slices.DeleteFunc(bullets, func(b Bullet) bool { return b.ID == "" })
	}
	return &Playbook{Bullets: grouped(bullets), NextID: e.nextID}
}

// mint gives a new id.
func (e *editor) mint(section string) string {
	if !e.minted {
		e.nextID = (&Playbook{Bullets: e.bullets, NextID: e.nextID}).nextNumber()
		e.minted = true
	}
	id := formatID(Slug(section), e.nextID)
	e.nextID++
	return id
}

func (e *editor) add(b Bullet) {
	e.index[b.ID] = len(e.bullets)
	e.bullets = append(e.bullets, b)
	e.say(&b)
}

func (e *editor) update(b *Bullet, content string) {
	e.unsay(b)
	b.Content = content
	e.say(b)
}

func (e *editor) remove(b *Bullet) {
	e.unsay(b)
	e.gone[b.ID] = true
	e.nextID = max(e.nextID, idNumber(b.ID)+1) // a removed id is not given again
	delete(e.index, b.ID)
	b.ID = ""
}

// section is the spelling that the playbook has for a section, else the well-known
// spelling, else the given one.
func (e *editor) section(name string) string {
	if e.sections == nil {
		e.sections = map[string]string{}
		last := ""
		for i := range e.bullets {
			if s := e.bullets[i].Section; s != last {
				last = s
				e.spell(s)
			}
		}
		for _, s := range wellKnown {
			e.spell(s)
		}
	}
	e.spell(name)
	return e.sections[sectionKey(name)]
}

func (e *editor) spell(name string) {
	key := sectionKey(name)
	if _, ok := e.sections[key]; !ok {
		e.sections[key] = name
	}
}

// duplicate finds the bullet that says the same in the same section.
func (e *editor) duplicate(section, content string) (id string, ok bool) {
	if e.said == nil {
		e.said = make(map[saying]string, len(e.bullets)+1)
		e.too = map[saying][]string{}
		for i := range e.bullets {
			if e.bullets[i].ID != "" {
				e.say(&e.bullets[i])
			}
		}
	}
	id, ok = e.said[saying{section, folded(content)}]
	return id, ok
}

func (e *editor) say(b *Bullet) {
	if e.said == nil {
		return
	}
	key := saying{b.Section, folded(b.Content)}
	if _, ok := e.said[key]; ok {
		e.too[key] = append(e.too[key], b.ID)
	} else {
		e.said[key] = b.ID
	}
}

func (e *editor) unsay(b *Bullet) {
	if e.said == nil {
		return
	}
	key := saying{b.Section, folded(b.Content)}
	too := slices.DeleteFunc(e.too[key], func(id string) bool { return id == b.ID })
	if e.said[key] == b.ID {
		delete(e.said, key)
		if len(too) > 0 {
			e.said[key], too = too[0], too[1:]
		}
	}
	if e.too[key] != nil {
		e.too[key] = too
	}
}

// replay does again what a record says was done. It decides nothing anew, so a version
// that was written under other merge rules comes out as it was.
func replay(p *Playbook, done []ace.Operation) *Playbook {
	e := newEditor(p)
	for _, op := range done {
		if op.Fate != ace.FateAccepted {
			continue
		}
		if op.Type == ace.OpAdd {
			t, _ := counters(op.Metadata)
			e.add(Bullet{ID: op.BulletID, Section: op.Section, Content: op.Content,
				Helpful: t.helpful, Harmful: t.harmful, Neutral: t.neutral})
			e.nextID = idNumber(op.BulletID) + 1
			continue
		}
		i, ok := e.index[op.BulletID]
		if !ok {
			continue // the hash that is checked at the end will not match
		}
		b := &e.bullets[i]
		switch op.Type {
		case ace.OpUpdate:
			e.update(b, op.Content)
		case ace.OpTag:
			t, _ := counters(op.Metadata)
			b.count(t)
		case ace.OpRemove:
			e.remove(b)
		}
	}
	return e.playbook()
}
