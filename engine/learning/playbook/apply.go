package playbook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"acescope/engine/ace"
)

// Bounds of a merge.
const (
	MaxContent    = 4096 // bytes of one bullet's content
	MaxOperations = 1000
	maxSources    = 100 // of a rejected MERGE in its record
	maxReason     = 300 // bytes of the reason of an accepted operation
)

// Apply returns the playbook that results from applying the operations to p, and the
// operations with their outcomes in the same order. It does not change p and is
// deterministic.
//
// A returned operation says what was done: content without control characters, the section
// as the playbook spells it, and for an ADD the ID of the new bullet. An ADD appends to its
// section and may set counters in Metadata. An UPDATE changes only the content. A TAG adds to
// counters. DELETE is REMOVE. A MERGE leaves one bullet, BulletID or else the first of SourceIDs, with
// the counters of all; sources that do not exist are left out. An accepted operation keeps its
// reason unless a part of it was left out. The text of rejected operations is cut to the bounds of a record.
func Apply(p *Playbook, ops []ace.Operation) (*Playbook, []ace.Operation) {
	return ApplyWithin(p, ops, 0)
}

// ApplyWithin is like [Apply], but rejects an ADD or UPDATE that enlarges the playbook beyond a number of
// tokens, see [Playbook.Tokens]. 0 is no bound.
func ApplyWithin(p *Playbook, ops []ace.Operation, tokens int) (*Playbook, []ace.Operation) {
	e := newEditor(p)
	e.tokens = tokens
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

// opDelete is the name that some curators give to REMOVE.
const opDelete ace.OperationType = "DELETE"

func (e *editor) apply(op ace.Operation) ace.Operation {
	op.Type = ace.OperationType(strings.ToUpper(strings.TrimSpace(string(op.Type))))
	proposed := ace.Cut(cleanContent(ace.Head(op.Reason, MaxContent)), maxReason)
	op.Outcome = ace.OutcomeAccepted
	op.Reason = ""
	if op.Type == opDelete {
		op.Type = ace.OpRemove
	}
	if op.Type != ace.OpMerge {
		op.SourceIDs = nil
	}
	var outcome ace.Outcome
	var reason string
	switch op.Type {
	case ace.OpAdd:
		outcome, reason = e.tryAdd(&op)
	case ace.OpUpdate:
		outcome, reason = e.tryUpdate(&op)
	case ace.OpTag:
		outcome, reason = e.tryTag(&op)
	case ace.OpRemove:
		outcome, reason = e.tryRemove(&op)
	case ace.OpMerge:
		outcome, reason = e.tryMerge(&op)
	case "":
		outcome, reason = ace.OutcomeUnparsable, "the operation has no type"
	default:
		outcome, reason = ace.OutcomeUnparsable, fmt.Sprintf("unknown operation type %.40q", op.Type)
	}
	if outcome != ace.OutcomeAccepted {
		return rejected(op, outcome, reason)
	}
	e.perform(&op)
	op.Reason = cmp.Or(reason, proposed)
	return op
}

// The methods below complete an operation, which they do not perform, and return its outcome with a reason.

func (e *editor) tryAdd(op *ace.Operation) (ace.Outcome, string) {
	if reason := cleanOperation(op); reason != "" {
		return ace.OutcomeRejected, reason
	}
	counts, reason := counters(op.Metadata)
	if reason != "" {
		return ace.OutcomeRejected, reason
	}
	op.Section = e.section(cmp.Or(cleanSection(op.Section), defaultSection))
	if id, dup := e.duplicate(op.Section, op.Content); dup {
		return ace.OutcomeRejected, "exact duplicate of " + id
	}
	number := (&Playbook{Bullets: e.bullets, NextID: e.nextID}).nextNumber()
	op.BulletID = formatID(Slug(op.Section), number)
	if reason := e.tooLarge(&Bullet{}, &Bullet{ID: op.BulletID, Content: op.Content}); reason != "" {
		return ace.OutcomeRejected, reason
	}
	op.Metadata = counts.metadata()
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
	if reason := e.tooLarge(b, &Bullet{ID: b.ID, Content: op.Content}); reason != "" {
		return ace.OutcomeRejected, reason
	}
	if len(op.Metadata) > 0 {
		reason = "only TAG changes counters"
	}
	op.Section, op.Metadata = b.Section, nil
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
	return ace.OutcomeAccepted, ""
}

func (e *editor) tryRemove(op *ace.Operation) (ace.Outcome, string) {
	b, reason := e.target(op.BulletID)
	if reason != "" {
		return ace.OutcomeRejected, reason
	}
	op.Section, op.Content, op.Metadata = b.Section, b.Content, nil
	return ace.OutcomeAccepted, ""
}

func (e *editor) tryMerge(op *ace.Operation) (ace.Outcome, string) {
	sources := slices.Clone(op.SourceIDs)
	if op.BulletID == "" && len(sources) > 0 {
		op.BulletID, sources = sources[0], sources[1:]
	}
	b, reason := e.target(op.BulletID)
	if reason == "" && op.Content != "" {
		reason = cleanOperation(op)
	}
	if reason != "" {
		return ace.OutcomeRejected, reason
	}
	sum := *b
	counts := tally{}
	missing := ""
	op.SourceIDs = nil
	for _, id := range sources {
		if id == b.ID || slices.Contains(op.SourceIDs, id) {
			continue
		}
		source, reason := e.target(id)
		if reason != "" {
			missing = cmp.Or(missing, reason)
			continue
		}
		op.SourceIDs = append(op.SourceIDs, id)
		counts.add(source.counts())
	}
	sum.count(counts)
	switch {
	case len(op.SourceIDs) == 0:
		return ace.OutcomeRejected, cmp.Or(missing, "the operation names no other bullet to merge")
	case !sum.counts().valid():
		return ace.OutcomeRejected, "a counter would leave its range"
	}
	if op.Content != "" {
		id, dup := e.duplicate(b.Section, op.Content)
		if dup && id != b.ID && !slices.Contains(op.SourceIDs, id) {
			return ace.OutcomeRejected, "exact duplicate of " + id
		}
	}
	op.Section, op.Metadata = b.Section, counts.metadata()
	return ace.OutcomeAccepted, missing
}

// target returns the bullet with that ID, or the reason why the operation cannot apply.
func (e *editor) target(id string) (*Bullet, string) {
	if id == "" {
		return nil, "the operation names no bullet"
	}
	if b := e.find(id); b != nil {
		return b, ""
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
		return fmt.Sprintf("the content has %d bytes, at most %d are allowed", n, MaxContent)
	case n == 0:
		return "the content is empty"
	}
	return ""
}

// rejected returns the record of an operation that changed nothing.
func rejected(op ace.Operation, outcome ace.Outcome, reason string) ace.Operation {
	op.Type = ace.OperationType(strings.ToValidUTF8(ace.Head(string(op.Type), 40), "�"))
	op.Section = cleanSection(op.Section)
	op.Content = ace.Head(cleanContent(ace.Head(op.Content, MaxContent)), MaxContent)
	op.BulletID = strings.ToValidUTF8(ace.Head(op.BulletID, maxID), "�")
	if op.Type == ace.OpAdd {
		op.BulletID = "" // a rejected ADD assigns no ID
	}
	op.SourceIDs = slices.Clone(op.SourceIDs[:min(len(op.SourceIDs), maxSources)])
	for i, id := range op.SourceIDs {
		op.SourceIDs[i] = strings.ToValidUTF8(ace.Head(id, maxID), "�")
	}
	if _, problem := counters(op.Metadata); problem != "" && len(op.Metadata) > 3 {
		op.Metadata = nil
	}
	op.Outcome, op.Reason = outcome, reason
	return op
}

// editor is a playbook that operations are changing.
type editor struct {
	bullets []Bullet
	nextID  int
	removed map[string]bool

	sections []string
	tokens   int // the most that the playbook may have, 0 for any number
}

func newEditor(p *Playbook) *editor {
	return &editor{bullets: slices.Clone(p.Bullets), nextID: p.NextID, removed: map[string]bool{},
		sections: p.Sections}
}

// tooLarge returns why a bullet may not replace another one, or "". The other one is empty if the bullet is
// new.
func (e *editor) tooLarge(before, after *Bullet) string {
	more := after.tokens()
	if before.ID != "" {
		more -= before.tokens()
	}
	if e.tokens == 0 || more <= 0 {
		return ""
	}
	if size := (&Playbook{Bullets: e.bullets}).Tokens() + more; size > e.tokens {
		return fmt.Sprintf("the playbook would have %d tokens, at most %d are allowed", size, e.tokens)
	}
	return ""
}

func (e *editor) playbook() *Playbook {
	bullets := grouped(e.bullets, e.sections)
	return &Playbook{Bullets: bullets, NextID: e.nextID, Sections: keptSections(bullets, e.sections)}
}

func (e *editor) find(id string) *Bullet {
	for i := range e.bullets {
		if e.bullets[i].ID == id {
			return &e.bullets[i]
		}
	}
	return nil
}

func (e *editor) remove(id string) {
	e.removed[id] = true
	e.nextID = max(e.nextID, idNumber(id)+1) // never reuse the ID
	e.bullets = slices.DeleteFunc(e.bullets, func(b Bullet) bool { return b.ID == id })
}

// section returns the playbook's spelling of a section, or the well-known spelling, or name.
func (e *editor) section(name string) string {
	key := sectionKey(name)
	last := ""
	for i := range e.bullets {
		if s := e.bullets[i].Section; s != last {
			if sectionKey(s) == key {
				return s
			}
			last = s
		}
	}
	for _, s := range slices.Concat(e.sections, wellKnown) {
		if sectionKey(s) == key {
			return s
		}
	}
	return name
}

// duplicate finds the first bullet of the section with that content, up to white space.
func (e *editor) duplicate(section, content string) (id string, ok bool) {
	content = folded(content)
	for i := range e.bullets {
		b := &e.bullets[i]
		if b.Section == section && folded(b.Content) == content {
			return b.ID, true
		}
	}
	return "", false
}

// replay applies the recorded operations of a version again. It makes no decisions, so a
// version recorded under other merge rules is reproduced exactly.
func replay(p *Playbook, done []ace.Operation) *Playbook {
	e := newEditor(p)
	for i := range done {
		if done[i].Outcome == ace.OutcomeAccepted {
			e.perform(&done[i])
		}
	}
	return e.playbook()
}

// perform changes the playbook as an accepted operation says. An operation on a missing bullet, which only a
// damaged record has, changes nothing: the hash of the version then differs.
func (e *editor) perform(op *ace.Operation) {
	counts, _ := counters(op.Metadata)
	if op.Type == ace.OpAdd {
		b := Bullet{ID: op.BulletID, Section: op.Section, Content: op.Content}
		b.count(counts)
		e.bullets = append(e.bullets, b)
		e.nextID = idNumber(op.BulletID) + 1
		return
	}
	b := e.find(op.BulletID)
	if b == nil {
		return
	}
	switch op.Type {
	case ace.OpUpdate:
		b.Content = op.Content
	case ace.OpTag:
		b.count(counts)
	case ace.OpRemove:
		e.remove(b.ID)
	case ace.OpMerge:
		b.count(counts)
		b.Content = cmp.Or(op.Content, b.Content)
		for _, id := range op.SourceIDs {
			e.remove(id)
		}
	}
}
