package offline

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/temporal/history"
)

// merge is a task's merge into a branch of playbooks, as its history records it.
type merge struct {
	seq        int // the version that it made, 0 for none
	state      *ace.State
	operations []ace.Operation // the accepted ones, or all if none was
	run        *run
	at         time.Time
}

// Playbooks rebuilds the branches of playbooks in a store from the merges in the histories, beginning with
// the empty playbook. A branch ends before a merge that the files lack, or that gives another hash than its
// task recorded. incomplete says why for each branch that lacks later versions.
func (f *Files) Playbooks(ctx context.Context, store *playbook.Store) (incomplete []string, err error) {
	branches := f.merges()
	for _, name := range slices.Sorted(maps.Keys(branches)) {
		list := branches[name]
		slices.SortFunc(list, func(a, b merge) int { return cmp.Compare(a.seq, b.seq) })
		why, err := rebuild(ctx, store, name, list)
		if err != nil {
			return incomplete, err
		}
		if why != "" {
			incomplete = append(incomplete, fmt.Sprintf("playbook %s: %s", name, why))
		}
	}
	return incomplete, nil
}

func (f *Files) merges() map[string][]merge {
	f.mu.Lock()
	runs := slices.Collect(maps.Values(f.runs))
	f.mu.Unlock()
	branches := map[string][]merge{}
	for _, r := range runs {
		if r.info.GetType().GetName() != ace.TaskWorkflow {
			continue
		}
		if m := mergeOf(r); m.seq > 0 && m.state.Input.Branch != "" {
			branches[m.state.Input.Branch] = append(branches[m.state.Input.Branch], m)
		}
	}
	return branches
}

// mergeOf folds a task's history up to its merge.
func mergeOf(r *run) merge {
	m := merge{state: &ace.State{}, run: r}
	var decoder history.Decoder
	for _, e := range r.events {
		fact, ok, err := decoder.Fact(e)
		if err != nil {
			return merge{}
		}
		if !ok {
			continue
		}
		if m.state.Apply(fact); m.state.Delta.PlaybookSeq > 0 {
			m.seq, m.at = m.state.Delta.PlaybookSeq, e.GetEventTime().AsTime()
			for _, o := range m.state.Delta.Operations {
				if o.Outcome == ace.OutcomeAccepted {
					m.operations = append(m.operations, o)
				}
			}
			if len(m.operations) == 0 && m.state.Delta.PlaybookBefore == m.state.Delta.PlaybookAfter {
				m.operations = m.state.Delta.Operations // all are rejected again, which makes a version too
			}
			return m
		}
	}
	return m
}

// rebuild repeats the merges of a branch and says why it stopped before the last one.
func rebuild(ctx context.Context, store *playbook.Store, name string, list []merge) (why string, err error) {
	book := &playbook.Playbook{}
	head := book.Hash()
	if mergeInto(list, 1, head) == nil {
		return fmt.Sprintf("cannot be rebuilt: the files lack the history of the task that made version 1;"+
			" the first version in the files is %d", list[0].seq), nil
	}
	if _, err := store.Start(ctx, name, ""); err != nil {
		return "", err
	}
	for seq := 1; ; seq++ {
		m := mergeInto(list, seq, head)
		if m == nil && list[len(list)-1].seq < seq {
			return "", nil
		}
		if m == nil {
			return fmt.Sprintf("rebuilt up to version %d: the files lack the history of the task that made version %d",
				seq-1, seq), nil
		}
		after, _ := playbook.Apply(book, m.operations)
		if after.Hash() != m.state.Delta.PlaybookAfter {
			return fmt.Sprintf("rebuilt up to version %d: the operations of version %d do not give the recorded playbook",
				seq-1, seq), nil
		}
		_, err := store.Merge(ctx, playbook.Version{
			Source: playbook.Source{Branch: name, At: m.at, TaskID: m.state.Input.TaskID,
				WorkflowID: m.run.workflowID(), RunID: m.run.runID(), Rationale: m.state.Delta.Rationale},
			DeltaID: m.run.runID(), Operations: m.operations})
		if err != nil {
			return "", err
		}
		book, head = after, m.state.Delta.PlaybookAfter
	}
}

// mergeInto returns the merge that made a version from the previous playbook, or nil. A task that
// had nothing to merge records the version that it found.
func mergeInto(list []merge, seq int, head string) (found *merge) {
	for i := range list {
		m := &list[i]
		if m.seq == seq && m.state.Delta.PlaybookBefore == head && (found == nil || len(m.operations) > 0) {
			found = m
		}
	}
	return found
}
