package runner

import (
	"cmp"
	"container/heap"
	"container/list"
	"slices"
	"strings"
	"time"
)

// queue holds the waiting runs of a [Table], grouped by requirements.
type queue struct {
	roster *roster
	groups map[string]*group // by key
	order  []*group          // groups with waiting runs, by the oldest run
	idle   []*group          // groups that had no waiting run when they were added here
	waits  map[string]*wait  // by run id
	due    deadlines
	asked  int64 // number of requests so far, which orders the runs
	bytes  int   // total length of the keys
}

// wait is a waiting run.
type wait struct {
	req   Request
	seq   int64
	since time.Time
	group *group
	place *list.Element // in group.waits
	index int           // in queue.due
}

// group holds the waiting runs with equal requirements that avoid the same queues.
type group struct {
	key          string
	requirements Requirements
	avoid        []string
	able         []*row    // the runners that meet the requirements
	waits        list.List // of *wait, the oldest first
	listed       bool      // in queue.idle
}

// first returns the oldest waiting run. The group must have a waiting run.
func (g *group) first() *wait { return g.waits.Front().Value.(*wait) }

func (g *group) matches(r *row) bool {
	return !r.Gone && r.offer.meets(g.requirements) && !slices.Contains(g.avoid, r.Queue)
}

// compare adds a runner to the able runners if it matches, otherwise removes it.
func (g *group) compare(r *row) (able bool) {
	able = g.matches(r)
	g.able = slices.DeleteFunc(g.able, func(other *row) bool { return other == r })
	if able {
		g.able = append(g.able, r)
	}
	return able
}

// groupKey identifies a group. The separators are unique, because the parts contain no control characters.
func groupKey(r Requirements, avoid []string) string {
	return strings.Join([]string{r.Hostname, r.ProjectDir, r.ExecutorType,
		strings.Join(r.Tags, "\x01"), strings.Join(avoid, "\x01")}, "\x00")
}

// avoided returns the latest valid queues that a run avoids, at most maxAvoid, sorted.
func avoided(queues []string) []string {
	recent := slices.Clone(queues[max(0, len(queues)-maxAvoid):])
	return sortedSet(slices.DeleteFunc(recent, func(q string) bool { return !isName(q, maxPath) }))
}

// group returns the group of a request, or nil if there is no room for another group.
func (q *queue) group(req Request) *group {
	avoid := avoided(req.Avoid)
	key := groupKey(req.Requirements, avoid)
	if g := q.groups[key]; g != nil {
		return g
	}
	if q.bytes+len(key) > maxBytes {
		q.dropIdle()
	}
	if q.bytes+len(key) > maxBytes {
		return nil
	}
	g := &group{key: key, requirements: req.Requirements, avoid: avoid}
	for _, r := range q.roster.rows {
		if g.matches(r) {
			g.able = append(g.able, r)
		}
	}
	q.groups[key] = g
	q.bytes += len(key)
	q.addIdle(g)
	return g
}

// addIdle keeps a group without waiting runs, so that its matching runners need not be found again.
func (q *queue) addIdle(g *group) {
	if !g.listed {
		g.listed = true
		q.idle = append(q.idle, g)
	}
}

// dropIdle removes the groups without waiting runs.
func (q *queue) dropIdle() {
	for _, g := range q.idle {
		g.listed = false
		if g.waits.Len() == 0 {
			q.bytes -= len(g.key)
			delete(q.groups, g.key)
		}
	}
	q.idle = nil
}

// add appends a waiting run.
func (q *queue) add(w *wait) {
	g := w.group
	q.waits[w.req.RunID] = w
	heap.Push(&q.due, w)
	w.place = g.waits.PushBack(w)
	if g.waits.Len() == 1 {
		q.order = append(q.order, g) // w is the newest run
		q.want(g, 1)
	}
}

// withdraw removes a run, if it waits.
func (q *queue) withdraw(run string) {
	if w := q.waits[run]; w != nil {
		q.remove(w)
	}
}

func (q *queue) remove(w *wait) {
	g := w.group
	delete(q.waits, w.req.RunID)
	heap.Remove(&q.due, w.index)
	if g.first() != w {
		g.waits.Remove(w.place)
		return
	}
	i := position(q.order, w.seq)
	g.waits.Remove(w.place)
	q.reorder(g, i)
}

// position returns the index of the first group whose oldest run has the sequence number seq or a higher one.
func position(order []*group, seq int64) int {
	i, _ := slices.BinarySearchFunc(order, seq, func(g *group, seq int64) int {
		return cmp.Compare(g.first().seq, seq)
	})
	return i
}

// reorder moves the group at i, whose first run was removed, to its new position.
func (q *queue) reorder(g *group, i int) {
	if g.waits.Len() > 0 {
		rest := q.order[i+1:]
		n := position(rest, g.first().seq)
		copy(q.order[i:], rest[:n])
		q.order[i+n] = g
		return
	}
	q.order = slices.Delete(q.order, i, i+1)
	q.want(g, -1)
	q.addIdle(g)
	if len(q.idle) > maxIdle {
		q.dropIdle()
	}
}

// want adds n to the number of groups that wait for each of the matching runners.
func (q *queue) want(g *group, n int) {
	for _, r := range g.able {
		r.wanted += n
		q.roster.update(r)
	}
}

// compare updates the groups that a new or changed runner matches.
func (q *queue) compare(r *row) {
	r.wanted = 0
	for _, g := range q.order {
		if g.compare(r) {
			r.wanted++
		}
	}
	q.dropIdle()
}

// sorted returns the waiting runs, the oldest first.
func (q *queue) sorted() []*wait {
	return slices.SortedFunc(slices.Values(q.due), func(a, b *wait) int { return cmp.Compare(a.seq, b.seq) })
}

// deadlines is a heap of waiting runs by deadline.
type deadlines []*wait

func (d deadlines) Len() int { return len(d) }

func (d deadlines) Less(i, j int) bool {
	return cmp.Or(d[i].req.Deadline.Compare(d[j].req.Deadline), cmp.Compare(d[i].seq, d[j].seq)) < 0
}

func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

// Push implements [heap.Interface].
func (d *deadlines) Push(w any) {
	w.(*wait).index = len(*d)
	*d = append(*d, w.(*wait))
}

// Pop implements [heap.Interface].
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	w := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return w
}
