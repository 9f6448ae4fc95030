package playbook

import (
	"fmt"
	"slices"
	"strings"

	"acescope/engine/ace"
)

// Bounds of a merge.
const (
	MaxContent    = 4096 // bytes of one bullet's content
	MaxOperations = 1000
)

// Apply returns the playbook that results from applying the operations to p, and the
// operations with their outcomes in the same order. It does not change p and is
// deterministic.
//
// A returned operation says what was done: content without control characters, the section
// as the playbook spells it, and for an ADD the ID of the new bullet. An ADD appends to its
// section and may set counters in Metadata. An UPDATE changes only the content. A TAG adds to
// counters. MERGE is rejected. The text of rejected operations is cut to the bounds of a
// record.
func Apply(p *Playbook, ops []ace.Operation) (*Playbook, []ace.Operation) {
	e := newEditor(p)
	done := make([]ace.Operation, len(ops))
	for i, op := range ops {
		if i < MaxOperations {
			done[i] = e.apply(op)
		} else {
			reason := fmt.Sprintf("more than %d operations in one delta", MaxOperations)
			done[i] = rejected(op, ace.OutcomeRejected, reason)
		}
	}
	return e.playbook(), done
}

func (e *editor) apply(op ace.Operation) ace.Operation {
	op.Type = ace.OperationType(strings.ToUpper(strings.TrimSpace(string(op.Type))))
	op.Outcome, op.Reason = ace.OutcomeAccepted, ""
	var fate ace.Outcome
	var reason string
	switch op.Type {
	case ace.OpAdd:
		fate, reason = e.tryAdd(&op)
	case ace.OpUpdate:
		fate, reason = e.tryUpdate(&op)
	case ace.OpTag:
		fate, reason = e.tryTag(&op)
	case ace.OpRemove:
		fate, reason = e.tryRemove(&op)
	case ace.OpMerge:
		fate, reason = ace.OutcomeRejected, "MERGE is not applied; use UPDATE and REMOVE"
	case "":
		fate, reason = ace.OutcomeUnparsable, "the operation has no type"
	default:
		fate, reason = ace.OutcomeUnparsable, fmt.Sprintf("unknown operation type %.40q", op.Type)
	}
	if fate != ace.OutcomeAccepted {
		return rejected(op, fate, reason)
	}
	op.Reason = reason
	return op
}

func (e *editor) tryAdd(op *ace.Operation) (ace.Outcome, string) {
	if reason := cleanOperation(op); reason != "" {
		return ace.OutcomeRejected, reason
	}
	counts, reason := counters(op.Metadata)
	if reason != "" {
		return ace.OutcomeRejected, reason
	}
	section := cleanSection(op.Section)
	if section == "" {
		section = defaultSection
	}
	op.Section = e.section(section)
	if id, dup := e.duplicate(op.Section, op.Content); dup {
		return ace.OutcomeRejected, "exact duplicate of " + id
	}
	op.BulletID = e.newID(op.Section)
	op.Metadata = counts.metadata()
	e.add(op, counts)
	return ace.OutcomeAccepted, ""
}

func (e *editor) tryUpdate(op *ace.Operation) (ace.Outcome, string) {
	b, reason := e.target(op.BulletID)
	if reason == "" {
		reason = cleanOperation(op)
	}
	if reason != "" {
		return ace.OutcomeRejected, reason
	}
	if b.Content == op.Content {
		return ace.OutcomeIgnored, "the content is already the same"
	}
	if id, dup := e.duplicate(b.Section, op.Content); dup && id != b.ID {
		return ace.OutcomeRejected, "exact duplicate of " + id
	}
	if len(op.Metadata) > 0 {
		reason = "only TAG changes counters"
	}
	op.Section, op.Metadata = b.Section, nil
	e.update(b, op.Content)
	return ace.OutcomeAccepted, reason
}

func (e *editor) tryTag(op *ace.Operation) (ace.Outcome, string) {
	b, reason := e.target(op.BulletID)
	if reason != "" {
		return ace.OutcomeRejected, reason
	}
	counts, reason := counters(op.Metadata)
	if reason != "" {
		return ace.OutcomeRejected, reason
	}
	if counts == (tally{}) {
		return ace.OutcomeIgnored, "no counter to change"
	}
	sum := *b
	sum.count(counts)
	if !sum.counts().valid() {
		return ace.OutcomeRejected, "a counter would leave its range"
	}
	op.Section, op.Content, op.Metadata = b.Section, "", counts.metadata()
	*b = sum
	return ace.OutcomeAccepted, ""
}

func (e *editor) tryRemove(op *ace.Operation) (ace.Outcome, string) {
	b, reason := e.target(op.BulletID)
	if reason != "" {
		return ace.OutcomeRejected, reason
	}
	op.Section, op.Content, op.Metadata = b.Section, b.Content, nil
	e.remove(b)
	return ace.OutcomeAccepted, ""
}

// target returns the bullet with that ID, or the reason why the operation cannot apply.
func (e *editor) target(id string) (*Bullet, string) {
	if id == "" {
		return nil, "the operation names no bullet"
	}
	if i, ok := e.index[id]; ok {
		return &e.bullets[i], ""
	}
	if e.removed[id] {
		return nil, fmt.Sprintf("bullet %.80q was removed by an earlier operation", id)
	}
	return nil, fmt.Sprintf("bullet %.80q not found: it never existed or was removed meanwhile", id)
}

// cleanOperation cleans the content. If the content is invalid, it returns the reason.
func cleanOperation(op *ace.Operation) string {
	n := len(op.Content)
	if n <= MaxContent {
		op.Content = cleanContent(op.Content)
		n = len(op.Content)
	}
	switch {
	case n > MaxContent:
		return fmt.Sprintf("content has %d bytes, at most %d are allowed", n, MaxContent)
	case n == 0:
		return "the content is empty"
	}
	return ""
}

// rejected returns the record of an operation that changed nothing.
func rejected(op ace.Operation, fate ace.Outcome, reason string) ace.Operation {
	op.Type = ace.OperationType(strings.ToValidUTF8(cut(string(op.Type), 40), "�"))
	op.Section = cleanSection(op.Section)
	op.Content = cut(cleanContent(cut(op.Content, MaxContent)), MaxContent)
	op.BulletID = strings.ToValidUTF8(cut(op.BulletID, maxID), "�")
	if op.Type == ace.OpAdd {
		op.BulletID = "" // a rejected ADD assigns no ID
	}
	if _, problem := counters(op.Metadata); problem != "" && len(op.Metadata) > 3 {
		op.Metadata = nil
	}
	op.Outcome, op.Reason = fate, reason
	return op
}

// editor is a playbook that operations are changing. A removed bullet keeps its place with
// an empty ID until the end, so the cost of an operation does not depend on the number of
// bullets.
type editor struct {
	bullets  []Bullet
	nextID   int
	index    map[string]int // by ID
	removed  map[string]bool
	idsReady bool // nextID is greater than every number in use

	sections map[string]string      // spelling by section key; nil until the first ADD
	ids      map[statement][]string // bullets by statement; nil until content is compared
}

// statement identifies what a bullet says. Bullets with equal statements are duplicates.
type statement struct{ section, content string }

func (b *Bullet) statement() statement { return statement{b.Section, folded(b.Content)} }

func newEditor(p *Playbook) *editor {
	e := &editor{bullets: slices.Clone(p.Bullets), nextID: p.NextID,
		index: make(map[string]int, len(p.Bullets)), removed: map[string]bool{}}
	for i := range e.bullets {
		e.index[e.bullets[i].ID] = i
	}
	return e
}

func (e *editor) playbook() *Playbook {
	bullets := e.bullets
	if len(e.removed) > 0 {
		bullets = slices.DeleteFunc(bullets, func(b Bullet) bool { return b.ID == "" })
	}
	return &Playbook{Bullets: grouped(bullets), NextID: e.nextID}
}

func (e *editor) newID(section string) string {
	if !e.idsReady {
		e.nextID = (&Playbook{Bullets: e.bullets, NextID: e.nextID}).nextNumber()
		e.idsReady = true
	}
	id := formatID(Slug(section), e.nextID)
	e.nextID++
	return id
}

func (e *editor) add(op *ace.Operation, counts tally) {
	b := Bullet{ID: op.BulletID, Section: op.Section, Content: op.Content}
	b.count(counts)
	e.index[b.ID] = len(e.bullets)
	e.bullets = append(e.bullets, b)
	e.addStatement(&b)
}

func (e *editor) update(b *Bullet, content string) {
	e.removeStatement(b)
	b.Content = content
	e.addStatement(b)
}

func (e *editor) remove(b *Bullet) {
	e.removeStatement(b)
	e.removed[b.ID] = true
	e.nextID = max(e.nextID, idNumber(b.ID)+1) // never reuse the ID
	delete(e.index, b.ID)
	b.ID = ""
}

// section returns the playbook's spelling of a section, or the well-known spelling, or name.
func (e *editor) section(name string) string {
	if e.sections == nil {
		e.sections = map[string]string{}
		last := ""
		for i := range e.bullets {
			if s := e.bullets[i].Section; s != last {
				last = s
				e.addSpelling(s)
			}
		}
		for _, s := range wellKnown {
			e.addSpelling(s)
		}
	}
	e.addSpelling(name)
	return e.sections[sectionKey(name)]
}

func (e *editor) addSpelling(name string) {
	key := sectionKey(name)
	if _, ok := e.sections[key]; !ok {
		e.sections[key] = name
	}
}

// duplicate finds the first bullet that says the same in the same section.
func (e *editor) duplicate(section, content string) (id string, ok bool) {
	if e.ids == nil {
		e.ids = make(map[statement][]string, len(e.bullets)+1)
		for i := range e.bullets {
			if e.bullets[i].ID != "" {
				e.addStatement(&e.bullets[i])
			}
		}
	}
	ids := e.ids[statement{section, folded(content)}]
	if len(ids) == 0 {
		return "", false
	}
	return ids[0], true
}

func (e *editor) addStatement(b *Bullet) {
	if e.ids != nil {
		key := b.statement()
		e.ids[key] = append(e.ids[key], b.ID)
	}
}

func (e *editor) removeStatement(b *Bullet) {
	if e.ids == nil {
		return
	}
	key := b.statement()
	ids := slices.DeleteFunc(e.ids[key], func(id string) bool { return id == b.ID })
	if len(ids) == 0 {
		delete(e.ids, key)
	} else {
		e.ids[key] = ids
	}
}

// replay applies the recorded operations of a version again. It makes no decisions, so a
// version recorded under other merge rules is reproduced exactly.
func replay(p *Playbook, done []ace.Operation) *Playbook {
	e := newEditor(p)
	for _, op := range done {
		if op.Outcome != ace.OutcomeAccepted {
			continue
		}
		if op.Type == ace.OpAdd {
			counts, _ := counters(op.Metadata)
			e.add(&op, counts)
			e.nextID = idNumber(op.BulletID) + 1
			continue
		}
		i, ok := e.index[op.BulletID]
		if !ok {
			continue // the hash check after the replay fails
		}
		b := &e.bullets[i]
		switch op.Type {
		case ace.OpUpdate:
			e.update(b, op.Content)
		case ace.OpTag:
			counts, _ := counters(op.Metadata)
			b.count(counts)
		case ace.OpRemove:
			e.remove(b)
		}
	}
	return e.playbook()
}
