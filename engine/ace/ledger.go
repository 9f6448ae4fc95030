package ace

import (
	"cmp"
	"maps"
	"slices"
)

// ledger keeps the tool calls of a run. What signals tell of a call and what the
// session's result tells of it are kept apart, the result winning where both are known;
// so the order in which the two arrive does not matter. What the answers need is kept up
// to date call by call, so that neither telling nor asking walks all calls.
type ledger struct {
	seen    map[string]struct{} // event ids
	calls   map[string]*entry   // by call id
	order   []*entry            // by time, then id, unless unsorted
	skills  map[string]*tally   // by name
	known   int                 // calls that the session's result told
	touched map[string]struct{} // calls that the newest fact told of
	other   map[EventKind]int
	dropped int
	bad     int

	unsorted bool
}

// entry is one call: what was told of it, and how it stands.
type entry struct {
	told  Invocation // by signals
	ended bool       // signals told a result, or a refusal
	known bool       // now is what the session's result said
	now   Call
}

func compare(a, b *entry) int {
	return cmp.Or(a.now.At.Compare(b.now.At), cmp.Compare(a.now.ID, b.now.ID))
}

// begin starts a new fact: what it touches is listed by recent.
func (l *ledger) begin() { clear(l.touched) }

func (l *ledger) event(e ToolEvent) {
	if l.seen == nil {
		l.seen = map[string]struct{}{}
		l.other = map[EventKind]int{}
	}
	if _, dup := l.seen[e.EventID]; dup {
		return
	}
	if len(l.seen) >= 2*MaxInvocations {
		l.dropped++
		return
	}
	l.seen[e.EventID] = struct{}{}
	if e.Kind != KindToolUse && e.Kind != KindToolResult && e.Kind != KindPermission {
		l.other[e.Kind]++
		return
	}
	l.tell(e)
}

func (l *ledger) tell(e ToolEvent) {
	c := l.calls[e.Call()]
	if c == nil {
		c = &entry{told: Invocation{ID: e.Call(), Accepted: true}}
	}
	inv := &c.told
	if inv.Name == "" {
		inv.Name = e.Name
	}
	if e.Accepted != nil {
		inv.Accepted = inv.Accepted && *e.Accepted
	}
	if e.Error != "" {
		inv.Error = e.Error
	}
	switch e.Kind {
	case KindToolUse:
		inv.Args, inv.At = Preview(e.Args), e.At
	case KindToolResult:
		inv.Result, inv.DurationMS = Preview(e.Result), e.DurationMS
		inv.OK = inv.Accepted && (e.OK == nil || *e.OK)
		if inv.At.IsZero() {
			inv.At = e.At
		}
		c.ended = true
	case KindPermission:
		c.ended = c.ended || !inv.Accepted
	}
	if !c.known {
		l.put(c, Call{*inv, !c.ended})
	}
}

func (l *ledger) settle(inv Invocation) {
	if l.known >= MaxInvocations {
		l.dropped++
		return
	}
	c := l.calls[inv.ID]
	if c == nil {
		c = &entry{told: Invocation{ID: inv.ID, Accepted: true}}
	}
	if !c.known {
		c.known = true
		l.known++
	}
	inv.Args, inv.Result = Preview(inv.Args), Preview(inv.Result)
	l.put(c, Call{Invocation: inv})
}

// put makes a call stand as given.
func (l *ledger) put(c *entry, now Call) {
	if l.calls == nil {
		l.calls, l.skills, l.touched = map[string]*entry{}, map[string]*tally{}, map[string]struct{}{}
	}
	l.touched[now.ID] = struct{}{}
	if l.calls[now.ID] == nil {
		l.calls[now.ID] = c
		c.now = now
		l.unsorted = l.unsorted || len(l.order) > 0 && compare(l.order[len(l.order)-1], c) > 0
		l.order = append(l.order, c)
	} else {
		l.tally(c.now.Name).remove(c, now)
		l.unsorted = l.unsorted || !c.now.At.Equal(now.At)
		c.now = now
	}
	l.tally(now.Name).add(c)
}

func (l *ledger) tally(name string) *tally {
	t := l.skills[name]
	if t == nil {
		t = &tally{}
		l.skills[name] = t
	}
	return t
}

// clone is a copy that shares nothing which changes.
func (l *ledger) clone() ledger {
	c := ledger{seen: maps.Clone(l.seen), known: l.known, other: maps.Clone(l.other), dropped: l.dropped, bad: l.bad}
	for _, e := range l.sorted() {
		if c.calls == nil {
			c.calls, c.skills, c.touched = map[string]*entry{}, map[string]*tally{}, map[string]struct{}{}
		}
		own := *e
		c.calls[own.now.ID] = &own
		c.order = append(c.order, &own)
		c.tally(own.now.Name).add(&own)
	}
	return c
}

// sorted is the calls by time, then id.
func (l *ledger) sorted() []*entry {
	if l.unsorted {
		slices.SortFunc(l.order, compare)
		l.unsorted = false
	}
	return l.order
}

// joined lists all calls; newest lists the last n of them.
func (l *ledger) joined() []Call { return l.newest(len(l.order)) }

func (l *ledger) newest(n int) []Call {
	order := l.sorted()
	order = order[max(0, len(order)-n):]
	calls := make([]Call, len(order))
	for i, c := range order {
		calls[i] = c.now
	}
	return calls
}

// recent lists the calls that the newest fact told of, by time, then id.
func (l *ledger) recent() []Call {
	list := make([]*entry, 0, len(l.touched))
	for id := range l.touched {
		list = append(list, l.calls[id])
	}
	slices.SortFunc(list, compare)
	calls := make([]Call, len(list))
	for i, c := range list {
		calls[i] = c.now
	}
	return calls
}

// usage sums up the calls of each skill, by name.
func (l *ledger) usage() []SkillUsage {
	list := make([]SkillUsage, 0, len(l.skills))
	for name, t := range l.skills {
		if t.calls == 0 {
			continue
		}
		if t.stale {
			l.recount(name, t)
		}
		list = append(list, t.usage(name))
	}
	slices.SortFunc(list, func(a, b SkillUsage) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// recount finds again what a tally lost when a call was taken out of it.
func (l *ledger) recount(name string, t *tally) {
	t.newest, t.error, t.stale = nil, nil, false
	for _, c := range l.order {
		if c.now.Name == name {
			t.see(c)
		}
	}
}
