package ace

import (
	"cmp"
	"slices"
)

// DeltaState holds the changes that a run makes to its playbook.
type DeltaState struct {
	PlaybookBefore  string
	PlaybookAfter   string
	PlaybookSeq     int         // of PlaybookAfter in its branch
	Bullets         int         // in PlaybookAfter
	Operations      []Operation // the curator's proposals with their latest outcome
	Rationale       string
	FollowUpActions []string
}

// propose sets the operations of the curator with their outcomes, accepted ones first.
func (d *DeltaState) propose(r *CuratorResult) {
	d.Rationale = r.Rationale
	d.FollowUpActions = r.FollowUpActions
	d.Operations = slices.Concat(r.Accepted, r.Rejected)
	for i := range d.Operations {
		op := &d.Operations[i]
		if i < len(r.Accepted) {
			op.Outcome = OutcomeAccepted
		} else if op.Outcome == "" || op.Outcome == OutcomeAccepted {
			op.Outcome = OutcomeRejected
		}
	}
}

// merge replaces the accepted operations of the proposal with the outcome of the merge.
func (d *DeltaState) merge(r *PersistResult) {
	d.PlaybookBefore = cmp.Or(r.PlaybookBefore, d.PlaybookBefore)
	d.PlaybookAfter = r.PlaybookAfter
	d.PlaybookSeq = r.Seq
	d.Bullets = r.Bullets
	if r.Operations == nil {
		return
	}
	merged := slices.Clone(r.Operations)
	for _, op := range d.Operations {
		if op.Outcome != OutcomeAccepted {
			merged = append(merged, op)
		}
	}
	d.Operations = merged
}

// notMerged returns a copy in which another outcome replaces accepted and proposed.
func notMerged(ops []Operation, outcome Outcome) []Operation {
	ops = slices.Clone(ops)
	for i := range ops {
		if ops[i].Outcome == OutcomeAccepted || ops[i].Outcome == OutcomeProposed {
			ops[i].Outcome = outcome
		}
	}
	return ops
}

// Approved returns the operations of a curator's result that are to be merged.
func (s *State) Approved(accepted []Operation) []Operation {
	if s.Review.Status == "" {
		return accepted
	}
	approved := []Operation{}
	for i, op := range accepted {
		if s.Delta.Operations[i].Outcome == OutcomeAccepted {
			approved = append(approved, op)
		}
	}
	return approved
}

// counted returns the operations with the outcomes that the summary of the run counts. Revisions below 5
// count accepted operations before they are merged, and revisions below 4 also while they wait for review.
func (s *State) counted() []Operation {
	switch r, waits := s.Input.Revision, s.Review.Status == ReviewWaiting; {
	case waits && r < 4:
		return s.Review.proposed
	case waits && r == 4:
		return nil
	case r > 4 && !s.merged():
		return notMerged(s.Delta.Operations, OutcomeProposed)
	}
	return s.Delta.Operations
}

// merged reports whether the outcomes are final. In an observed run they always are, because an observer may
// report no merge.
func (s *State) merged() bool {
	st := s.step(PhasePersist)
	return s.Input.Observed || st != nil && st.Status == StatusDone
}

// count adds the outcomes of operations to a summary.
func (sum *Summary) count(ops []Operation) {
	for _, op := range ops {
		switch {
		case op.Outcome == OutcomeRejected, op.Outcome == OutcomeUnparsable:
			sum.Rejected++
		case op.Outcome != OutcomeAccepted:
		case op.Type == OpAdd:
			sum.Added++
		case op.Type == OpUpdate:
			sum.Updated++
		case op.Type == OpRemove:
			sum.Removed++
		case op.Type == OpTag:
			sum.Tagged++
		case op.Type == OpMerge:
			sum.Merged++
		}
	}
}
