package playbook

import (
	"fmt"
	"strings"

	"acescope/engine/ace"
)

// Bounds of a merge.
const (
	MaxContent    = 4096 // bytes of one bullet's content
	MaxOperations = 1000
)

// Apply gives the playbook that the operations make of p, and each operation with what
// became of it, in the same order. It never changes p, and the same arguments always
// give the same result.
//
// What comes back of an operation is what was done: content cleaned of control
// characters, the section as the playbook spells it, and for an ADD the id that the
// bullet was given. An ADD goes to the end of its section and may bring counters in
// Metadata. An UPDATE changes content only. A TAG adds to counters. MERGE is rejected.
// Text of refused operations is cut to what a record can bear.
func Apply(p *Playbook, ops []ace.Operation) (*Playbook, []ace.Operation) {
	e := newEditor(p)
	fates := make([]ace.Operation, len(ops))
	for i, op := range ops {
		if i < MaxOperations {
			fates[i] = e.apply(op)
		} else {
			fates[i] = refused(op, ace.FateRejected, fmt.Sprintf("more than %d operations in one delta", MaxOperations))
		}
	}
	return e.playbook(), fates
}

func (e *editor) apply(op ace.Operation) ace.Operation {
	op.Type = ace.OperationType(strings.ToUpper(strings.TrimSpace(string(op.Type))))
	op.Fate, op.Reason = ace.FateAccepted, ""
	var fate ace.Fate
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
		fate, reason = ace.FateRejected, "MERGE is not applied; use UPDATE and REMOVE"
	case "":
		fate, reason = ace.FateUnparsable, "the operation has no type"
	default:
		fate, reason = ace.FateUnparsable, fmt.Sprintf("unknown operation type %.40q", op.Type)
	}
	if fate != ace.FateAccepted {
		return refused(op, fate, reason)
	}
	op.Reason = reason
	return op
}

func (e *editor) tryAdd(op *ace.Operation) (ace.Fate, string) {
	if reason := cleanOperation(op); reason != "" {
		return ace.FateRejected, reason
	}
	counts, reason := counters(op.Metadata)
	if reason != "" {
		return ace.FateRejected, reason
	}
	section := cleanSection(op.Section)
	if section == "" {
		section = defaultSection
	}
	op.Section = e.section(section)
	if id, dup := e.duplicate(op.Section, op.Content); dup {
		return ace.FateRejected, "exact duplicate of " + id
	}
	op.BulletID = e.mint(op.Section)
	op.Metadata = counts.metadata()
	e.add(Bullet{ID: op.BulletID, Section: op.Section, Content: op.Content,
		Helpful: counts.helpful, Harmful: counts.harmful, Neutral: counts.neutral})
	return ace.FateAccepted, ""
}

func (e *editor) tryUpdate(op *ace.Operation) (ace.Fate, string) {
	b, reason := e.target(op.BulletID)
	if reason == "" {
		reason = cleanOperation(op)
	}
	if reason != "" {
		return ace.FateRejected, reason
	}
	if b.Content == op.Content {
		return ace.FateIgnored, "the content is the same already"
	}
	if id, dup := e.duplicate(b.Section, op.Content); dup && id != b.ID {
		return ace.FateRejected, "exact duplicate of " + id
	}
	if len(op.Metadata) > 0 {
		reason = "counters are changed by TAG only"
	}
	op.Section, op.Metadata = b.Section, nil
	e.update(b, op.Content)
	return ace.FateAccepted, reason
}

func (e *editor) tryTag(op *ace.Operation) (ace.Fate, string) {
	b, reason := e.target(op.BulletID)
	if reason != "" {
		return ace.FateRejected, reason
	}
	counts, reason := counters(op.Metadata)
	if reason != "" {
		return ace.FateRejected, reason
	}
	if counts == (tally{}) {
		return ace.FateIgnored, "no counter to change"
	}
	if !validCount(b.Helpful+counts.helpful) || !validCount(b.Harmful+counts.harmful) || !validCount(b.Neutral+counts.neutral) {
		return ace.FateRejected, "a counter would leave its range"
	}
	op.Section, op.Content, op.Metadata = b.Section, "", counts.metadata()
	b.count(counts)
	return ace.FateAccepted, ""
}

func (e *editor) tryRemove(op *ace.Operation) (ace.Fate, string) {
	b, reason := e.target(op.BulletID)
	if reason != "" {
		return ace.FateRejected, reason
	}
	op.Section, op.Content, op.Metadata = b.Section, b.Content, nil
	e.remove(b)
	return ace.FateAccepted, ""
}

// target finds the bullet that an operation names, or says why there is none.
func (e *editor) target(id string) (*Bullet, string) {
	if id == "" {
		return nil, "the operation names no bullet"
	}
	if i, ok := e.index[id]; ok {
		return &e.bullets[i], ""
	}
	if e.gone[id] {
		return nil, fmt.Sprintf("bullet %.80q was removed by an earlier operation", id)
	}
	return nil, fmt.Sprintf("no bullet %.80q: it never was, or was removed meanwhile", id)
}

// cleanOperation cleans the content and says what is wrong with it.
func cleanOperation(op *ace.Operation) string {
	if n := len(op.Content); n > MaxContent {
		return fmt.Sprintf("content has %d bytes, at most %d are allowed", n, MaxContent)
	}
	op.Content = cleanContent(op.Content)
	if op.Content == "" {
		return "the content is empty"
	}
	if n := len(op.Content); n > MaxContent {
		return fmt.Sprintf("content has %d bytes, at most %d are allowed", n, MaxContent)
	}
	return ""
}

// refused is the record of an operation that changed nothing.
func refused(op ace.Operation, fate ace.Fate, reason string) ace.Operation {
	op.Type = ace.OperationType(strings.ToValidUTF8(cut(string(op.Type), 40), "�"))
	op.Section = cleanSection(op.Section)
	op.Content = cut(cleanContent(cut(op.Content, MaxContent)), MaxContent)
	op.BulletID = strings.ToValidUTF8(cut(op.BulletID, maxID), "�")
	if op.Type == ace.OpAdd {
		op.BulletID = "" // it was given none
	}
	if _, wrong := counters(op.Metadata); wrong != "" && len(op.Metadata) > 3 {
		op.Metadata = nil
	}
	op.Fate, op.Reason = fate, reason
	return op
}
