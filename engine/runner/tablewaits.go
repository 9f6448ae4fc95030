package runner

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"
)

// keyOf tells groups apart. What it is made of holds no control characters.
func keyOf(d Demands, avoid []string) string {
	return d.Hostname + "\x00" + d.ProjectDir + "\x00" + d.ExecutorType + "\x00" +
		strings.Join(d.Tags, "\x01") + "\x00" + strings.Join(avoid, "\x01")
}

// groupOf is the group that a run waits in, nil where there is no room for one more.
func (t *Table) groupOf(req Request) *group {
	avoid := avoided(req.Avoid)
	key := keyOf(req.Demands, avoid)
	if g := t.groups[key]; g != nil {
		return g
	}
	if t.bytes+len(key) > maxBytes {
		t.dropIdle()
	}
	if t.bytes+len(key) > maxBytes {
		return nil
	}
	g := &group{key: key, demands: req.Demands, avoid: avoid}
	for _, r := range t.rows {
		g.able.set(r.place, g.takes(r))
	}
	t.groups[key] = g
	t.bytes += len(key)
	t.list(g)
	return g
}

// avoided is which queues a run avoids: the last few, sorted.
func avoided(queues []string) (avoid []string) {
	for _, q := range queues[max(0, len(queues)-maxAvoid):] {
		if validName(q, maxPath) {
			avoid = append(avoid, q)
		}
	}
	return tagSet(avoid, nil)
}

// list keeps a group in which no run waits, for what it knows of runners.
func (t *Table) list(g *group) {
	if !g.listed {
		g.listed = true
		t.empties = append(t.empties, g)
	}
}

// dropIdle forgets the groups in which no run waits.
func (t *Table) dropIdle() {
	for _, g := range t.empties {
		g.listed = false
		if g.waiting == 0 {
			t.bytes -= len(g.key)
			delete(t.groups, g.key)
		}
	}
	t.empties = nil
}

// addWait lets a run wait behind the others.
func (t *Table) addWait(w *wait) {
	g := w.group
	t.waits[w.req.RunID] = w
	heap.Push(&t.due, w)
	w.prev, g.last = g.last, w
	g.waiting++
	if w.prev != nil {
		w.prev.next = w
		return
	}
	g.first = w
	t.order = append(t.order, g) // nobody asked later
	t.want(g, 1)
}

// unwait takes a run out of those that wait.
func (t *Table) unwait(w *wait) {
	g := w.group
	delete(t.waits, w.req.RunID)
	heap.Remove(&t.due, w.index)
	first := g.first == w
	at := 0
	if first {
		at = t.orderOf(g)
	}
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		g.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		g.last = w.prev
	}
	g.waiting--
	if first {
		t.reorder(g, at)
	}
}

// orderOf is where a group stands.
func (t *Table) orderOf(g *group) int {
	at, _ := slices.BinarySearchFunc(t.order, g.first.seq, func(g *group, seq int64) int { return cmp.Compare(g.first.seq, seq) })
	return at
}

// reorder puts a group whose first run has left where its next one belongs.
func (t *Table) reorder(g *group, at int) {
	if g.first == nil {
		t.order = slices.Delete(t.order, at, at+1)
		t.want(g, -1)
		t.list(g)
		if len(t.empties) > maxIdle {
			t.dropIdle()
		}
		return
	}
	rest := t.order[at+1:]
	by, _ := slices.BinarySearchFunc(rest, g.first.seq, func(g *group, seq int64) int { return cmp.Compare(g.first.seq, seq) })
	copy(t.order[at:], rest[:by])
	t.order[at+by] = g
}

// want tells the runners that are able to that runs of a group wait, or do no more.
func (t *Table) want(g *group, by int) {
	g.able.each(func(place int) {
		r := t.places[place]
		r.wanted += by
		t.weigh(r)
	})
}

// deadlines are the runs that wait, the one that gives up first at the front.
type deadlines []*wait

func (d deadlines) Len() int { return len(d) }

func (d deadlines) Less(i, j int) bool {
	if c := d[i].req.Deadline.Compare(d[j].req.Deadline); c != 0 {
		return c < 0
	}
	return d[i].seq < d[j].seq
}

func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

// Push and Pop are for package heap.
func (d *deadlines) Push(w any) {
	w.(*wait).index = len(*d)
	*d = append(*d, w.(*wait))
}

func (d *deadlines) Pop() any {
	last := len(*d) - 1
	w := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return w
}

// Deadline is when the first of the runs that wait gives up, the zero time where none waits.
func (t *Table) Deadline() time.Time {
	if len(t.due) == 0 {
		return time.Time{}
	}
	return t.due[0].req.Deadline
}

// bySeq are the runs that wait, the one that asked first at the front.
func (t *Table) bySeq() []*wait {
	all := slices.Clone(t.due)
	slices.SortFunc(all, func(a, b *wait) int { return cmp.Compare(a.seq, b.seq) })
	return all
}
