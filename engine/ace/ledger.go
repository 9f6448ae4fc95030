package ace

import (
	"cmp"
	"maps"
	"slices"
)

// ledger keeps the tool calls of a run. What signals tell of a call and what the
// session's result tells of it are kept apart, the result winning where both are known;
// so the order in which the two arrive does not matter. What the answers need is kept up
// to date call by call, so that neither telling nor asking walks all calls. Copies share
// what they have in common.
type ledger struct {
	seen    names // event ids
	ids     names // call ids
	calls   entries
	order   []int32            // numbers of calls by time, then id
	shared  bool               // a copy has order too: it is only added to
	skills  map[string]*tally  // by name
	known   int                // calls that the session's result told
	touched map[int32]struct{} // calls that the newest fact told of
	other   map[EventKind]int
	dropped int
	bad     int
}

// entry is one call: what was told of it, and how it stands. Once it is in a ledger it is
// not written to; what changes is put there anew.
type entry struct {
	number int32      // of its id
	told   Invocation // by signals
	ended  bool       // signals told a result, or a refusal
	known  bool       // now is what the session's result said
	now    Call
}

func compare(a, b *entry) int {
	return cmp.Or(a.now.At.Compare(b.now.At), cmp.Compare(a.now.ID, b.now.ID))
}

// begin starts a new fact: what it touches is listed by recent.
func (l *ledger) begin() { clear(l.touched) }

func (l *ledger) event(e ToolEvent) {
	if _, dup := l.seen.find(e.EventID); dup {
		return
	}
	if l.seen.n >= 2*MaxInvocations {
		l.dropped++
		return
	}
	l.seen.add(e.EventID)
	if l.other == nil {
		l.other = map[EventKind]int{}
	}
	if e.Kind != KindToolUse && e.Kind != KindToolResult && e.Kind != KindPermission {
		l.other[e.Kind]++
		return
	}
	l.tell(e)
}

func (l *ledger) tell(e ToolEvent) {
	c := l.entry(e.Call())
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
	if c.known {
		l.calls.set(c) // that changes nothing which shows
		return
	}
	c.now = Call{*inv, !c.ended}
	l.put(c)
}

// entry is what is known of a call, to be changed and put back.
func (l *ledger) entry(id string) *entry {
	if number, ok := l.ids.find(id); ok {
		own := *l.calls.get(number)
		return &own
	}
	return &entry{number: -1, told: Invocation{ID: id, Accepted: true}}
}

func (l *ledger) settle(inv Invocation) {
	if l.known >= MaxInvocations {
		l.dropped++
		return
	}
	c := l.entry(inv.ID)
	if !c.known {
		c.known = true
		l.known++
	}
	inv.Args, inv.Result = Preview(inv.Args), Preview(inv.Result)
	c.now = Call{Invocation: inv}
	l.put(c)
}

// put makes a call stand as given.
func (l *ledger) put(c *entry) {
	if l.skills == nil {
		l.skills, l.touched = map[string]*tally{}, map[int32]struct{}{}
	}
	if c.number < 0 {
		c.number = l.ids.add(c.now.ID)
		l.calls.set(c)
		l.place(c)
		l.touched[c.number] = struct{}{}
		l.tally(c.now.Name).add(c)
		return
	}
	old := l.calls.get(c.number)
	l.touched[c.number] = struct{}{}
	moved := !c.now.At.Equal(old.now.At)
	if moved {
		l.displace(old)
	}
	l.calls.set(c)
	if moved {
		l.place(c)
	}
	l.tally(old.now.Name).remove(old, c.now)
	l.tally(c.now.Name).add(c)
}

// find is where a call stands in order, or would stand.
func (l *ledger) find(c *entry) (int, bool) {
	return slices.BinarySearchFunc(l.order, c, func(number int32, c *entry) int { return compare(l.calls.get(number), c) })
}

func (l *ledger) place(c *entry) {
	n := len(l.order)
	if n == 0 || compare(l.calls.get(l.order[n-1]), c) < 0 {
		l.order = append(l.order, c.number)
		return
	}
	l.own()
	at, _ := l.find(c)
	l.order = slices.Insert(l.order, at, c.number)
}

func (l *ledger) displace(c *entry) {
	l.own()
	if at, ok := l.find(c); ok {
		l.order = slices.Delete(l.order, at, at+1)
	}
}

// own makes order this ledger's own, to be changed.
func (l *ledger) own() {
	if l.shared {
		l.order, l.shared = slices.Clone(l.order), false
	}
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
	l.shared = true
	c := ledger{seen: l.seen, ids: l.ids, calls: l.calls.clone(), order: l.order[:len(l.order):len(l.order)], shared: true,
		known: l.known, other: maps.Clone(l.other), dropped: l.dropped, bad: l.bad}
	if l.skills != nil {
		c.skills, c.touched = make(map[string]*tally, len(l.skills)), map[int32]struct{}{}
	}
	for name, t := range l.skills {
		c.skills[name] = t.clone()
	}
	return c
}

// joined lists all calls by time, then id; newest lists the last n of them.
func (l *ledger) joined() []Call { return l.newest(len(l.order)) }

func (l *ledger) newest(n int) []Call {
	order := l.order[max(0, len(l.order)-n):]
	calls := make([]Call, len(order))
	for i, number := range order {
		calls[i] = l.calls.get(number).now
	}
	return calls
}

// recent lists the calls that the newest fact told of, by time, then id.
func (l *ledger) recent() []Call {
	list := make([]*entry, 0, len(l.touched))
	for number := range l.touched {
		list = append(list, l.calls.get(number))
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

// counts is the counts of each skill, by name.
func (l *ledger) counts() []SkillUsage {
	list := make([]SkillUsage, 0, len(l.skills))
	for name, t := range l.skills {
		if t.calls > 0 {
			list = append(list, SkillUsage{Name: name, Calls: t.calls, OK: t.ok, Failed: t.failed, Denied: t.denied, Pending: t.pending})
		}
	}
	slices.SortFunc(list, func(a, b SkillUsage) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// recount finds again what a tally lost when a call was taken out of it.
func (l *ledger) recount(name string, t *tally) {
	t.newest, t.error, t.stale = nil, nil, false
	for number := range int32(l.calls.n) {
		if c := l.calls.get(number); c.now.Name == name {
			t.see(c)
		}
	}
}
