package filed

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"acescope/engine/ace"
	"acescope/engine/history"
	"acescope/engine/playbook"
)

// merged is what a task's history tells of its merge into a line of playbooks.
type merged struct {
	seq   int
	state *ace.State
	done  []ace.Operation // those that had an effect, or where none had, all
	run   *run
	at    time.Time
}

// Books makes the lines of playbooks anew in a store, from what the tasks did to them. A
// line is made as far as every merge from the empty playbook on is in the files and gives
// the very version, by its hash, that the task recorded; why it is not made further is said
// for each line in short.
func (f *Files) Books(ctx context.Context, store *playbook.Store) (short []string, err error) {
	lines := f.merges()
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		list := lines[name]
		slices.SortFunc(list, func(a, b merged) int { return cmp.Compare(a.seq, b.seq) })
		why, err := makeLine(ctx, store, name, list)
		if err != nil {
			return short, err
		}
		if why != "" {
			short = append(short, fmt.Sprintf("playbook %s: %s", name, why))
		}
	}
	return short, nil
}

// merges are those of all tasks, by the line that they merged into.
func (f *Files) merges() map[string][]merged {
	f.mu.Lock()
	runs := slices.Collect(maps.Values(f.runs))
	f.mu.Unlock()
	lines := map[string][]merged{}
	for _, r := range runs {
		if r.info.GetType().GetName() != ace.TaskWorkflow {
			continue
		}
		if m := mergeOf(r); m.seq > 0 && m.state.Input.Branch != "" {
			lines[m.state.Input.Branch] = append(lines[m.state.Input.Branch], m)
		}
	}
	return lines
}

// mergeOf folds a task's history as far as its merge; seq is 0 where it made none.
func mergeOf(r *run) merged {
	m := merged{state: &ace.State{}, run: r}
	var decoder history.Decoder
	for _, e := range r.events {
		fact, ok, err := decoder.Fact(e)
		if err != nil {
			return merged{}
		}
		if !ok {
			continue
		}
		if m.state.Apply(fact); m.state.PlaybookSeq > 0 {
			m.seq, m.at = m.state.PlaybookSeq, e.GetEventTime().AsTime()
			m.done = slices.DeleteFunc(slices.Clone(m.state.Operations), func(o ace.Operation) bool { return o.Fate != ace.FateAccepted })
			if len(m.done) == 0 && m.state.PlaybookBefore == m.state.PlaybookAfter {
				m.done = m.state.Operations // refused again, which is a version too
			}
			return m
		}
	}
	return m
}

// makeLine merges again what can be merged, and says why it is not all.
func makeLine(ctx context.Context, store *playbook.Store, name string, list []merged) (why string, err error) {
	book := &playbook.Playbook{}
	head := book.Hash()
	if first := list[0]; first.seq != 1 || first.state.PlaybookBefore != head {
		return fmt.Sprintf("it cannot be made again: it does not begin empty with a task in the files (the first there made version %d)", first.seq), nil
	}
	if _, err := store.Start(ctx, name, ""); err != nil {
		return "", err
	}
	last := 0
	for len(list) > 0 {
		m, rest := next(list, last, head)
		if list = rest; m == nil {
			continue
		}
		if m.seq != last+1 || m.state.PlaybookBefore != head {
			return fmt.Sprintf("shown up to version %d: the history of the task that made version %d is not in the files", last, last+1), nil
		}
		after, _ := playbook.Apply(book, m.done)
		if after.Hash() != m.state.PlaybookAfter {
			return fmt.Sprintf("shown up to version %d: what the task of version %d did gives another playbook today than it recorded", last, m.seq), nil
		}
		_, err := store.Merge(ctx, playbook.MergeRequest{Branch: name, DeltaID: m.run.runID(), Operations: m.done, At: m.at,
			TaskID: m.state.Input.TaskID, WorkflowID: m.run.workflowID(), RunID: m.run.runID(), Rationale: m.state.Rationale})
		if err != nil {
			return "", err
		}
		book, head, last = after, m.state.PlaybookAfter, m.seq
	}
	return "", nil
}

// next takes the tasks of the lowest version off the list and gives the one that made it,
// nil where that version is there: a task that had nothing to merge records the version
// that it found.
func next(list []merged, last int, head string) (m *merged, rest []merged) {
	n := 1
	for n < len(list) && list[n].seq == list[0].seq {
		n++
	}
	if list[0].seq <= last {
		return nil, list[n:]
	}
	m = &list[0]
	for i := range list[:n] {
		if list[i].state.PlaybookBefore == head && len(list[i].done) > 0 {
			m = &list[i]
		}
	}
	return m, list[n:]
}
