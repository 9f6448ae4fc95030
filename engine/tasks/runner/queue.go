package runner

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// wait is a waiting run.
type wait struct {
	req   Request
	seq   int64
	since time.Time
	group *group
}

// group is what waiting runs with equal requirements that avoid the same queues have in common.
type group struct {
	key          string
	requirements Requirements
	avoid        []string
	waiting      int   // number of its runs
	blocked      int64 // the last call of Match that found no free runner
}

func (g *group) matches(r *row) bool {
	return !r.Gone && r.offer.Meets(g.requirements) && !slices.Contains(g.avoid, r.Queue)
}

// groupKey identifies a group. Its parts contain no control characters.
func groupKey(r Requirements, avoid []string) string {
	return strings.Join([]string{r.Hostname, r.ProjectDir, r.ExecutorType,
		strings.Join(r.Tags, "\x01"), strings.Join(avoid, "\x01")}, "\x00")
}

// avoided returns the last valid queues that a run avoids, sorted.
func avoided(queues []string) []string {
	recent := slices.Clone(queues[max(0, len(queues)-maxAvoid):])
	return sortedSet(slices.DeleteFunc(recent, func(q string) bool { return !isName(q, maxPath) }))
}

// wait appends a waiting run. It returns false if there is no room for another group.
func (t *Table) wait(req Request, seq int64, since time.Time) bool {
	avoid := avoided(req.Avoid)
	key := groupKey(req.Requirements, avoid)
	g := t.groups[key]
	if g == nil {
		if t.keyBytes+len(key) > maxBytes {
			return false
		}
		g = &group{key: key, requirements: req.Requirements, avoid: avoid}
		t.groups[key] = g
		t.keyBytes += len(key)
	}
	g.waiting++
	w := &wait{req: req, seq: seq, since: since, group: g}
	t.waits = append(t.waits, w)
	t.waiting[req.RunID] = w
	return true
}

// withdraw removes a run, if it waits.
func (t *Table) withdraw(run string) {
	w := t.waiting[run]
	if w == nil {
		return
	}
	bySeq := func(w *wait, seq int64) int { return cmp.Compare(w.seq, seq) }
	i, _ := slices.BinarySearchFunc(t.waits, w.seq, bySeq)
	t.waits = slices.Delete(t.waits, i, i+1)
	t.forget(w)
}

// removeWaits removes the waiting runs for which remove returns true.
func (t *Table) removeWaits(remove func(*wait) bool) {
	t.waits = slices.DeleteFunc(t.waits, func(w *wait) bool {
		if !remove(w) {
			return false
		}
		t.forget(w)
		return true
	})
}

// forget removes what refers to a run that waits no more.
func (t *Table) forget(w *wait) {
	delete(t.waiting, w.req.RunID)
	g := w.group
	g.waiting--
	if g.waiting == 0 {
		delete(t.groups, g.key)
		t.keyBytes -= len(g.key)
	}
}
