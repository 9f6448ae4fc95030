package ace

import (
	"cmp"
	"maps"
	"slices"
	"time"
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
	past    past               // calls before the run was continued
	touched map[int32]struct{} // calls that the newest fact told of
	other   map[EventKind]int
	dropped int
	bad     int
}

// entry is one call: what was told of it, and how it stands. Once it is in a ledger it is
// not written to; what changes is put there anew.
type entry struct {
	number  int32      // of its id
	told    Invocation // by signals
	marks   marks      // which events told it
	ended   bool       // signals told a result, or a refusal
	known   bool       // now is what the session's result said
	settled mark       // by which event, in an observed run
	now     Call
}

// mark is an event's place in its observer's order. Events without one are taken in the
// order in which they come, and before those that have one.
type mark struct {
	Seq int64  `json:"seq,omitempty"`
	ID  string `json:"id,omitempty"`
}

func markOf(e ToolEvent) mark {
	if e.Seq <= 0 {
		return mark{}
	}
	return mark{e.Seq, e.EventID}
}

func (m mark) compare(o mark) int { return cmp.Or(cmp.Compare(m.Seq, o.Seq), cmp.Compare(m.ID, o.ID)) }

// takes tells whether what has the mark m takes the place of what has the mark old.
func (m mark) takes(old mark) bool { return m.Seq == 0 && old.Seq == 0 || m.compare(old) > 0 }

// marks is which events told what of a call, so that the order in which they arrive does
// not matter.
type marks struct {
	Name     mark      `json:"name,omitzero"`
	Use      mark      `json:"use,omitzero"`
	Result   mark      `json:"result,omitzero"`
	Err      mark      `json:"err,omitzero"`
	Used     bool      `json:"used,omitempty"`  // by a tool_use
	Asked    bool      `json:"asked,omitempty"` // by a permission
	Ended    bool      `json:"ended,omitempty"` // by a tool_result
	OK       bool      `json:"ok,omitempty"`    // as that has it
	UseAt    time.Time `json:"use_at,omitzero"`
	ResultAt time.Time `json:"result_at,omitzero"`
}

// over tells whether the call has ended: it has a result, or was refused.
func (m *marks) over(accepted bool) bool { return m.Ended || m.Asked && !accepted }

func compare(a, b *entry) int {
	return cmp.Or(a.now.At.Compare(b.now.At), cmp.Compare(a.now.ID, b.now.ID))
}

// begin starts a new fact: what it touches is listed by recent.
func (l *ledger) begin() { clear(l.touched) }

func (l *ledger) event(e ToolEvent) {
	if l.knows(e.EventID) {
		return
	}
	if l.full() {
		l.dropped++
		return
	}
	l.seen.add(e.EventID)
	if e.Kind != KindToolUse && e.Kind != KindToolResult && e.Kind != KindPermission {
		l.count(e.Kind)
		return
	}
	if l.past.calls.has(e.Call()) {
		l.dropped++ // it came too late: of that call only the counts are kept
		return
	}
	l.tell(e)
}

// knows tells whether an event was seen.
func (l *ledger) knows(id string) bool {
	if _, dup := l.seen.find(id); dup {
		return true
	}
	return l.past.seen.has(id)
}

// full tells whether no more event ids can be kept.
func (l *ledger) full() bool { return int(l.seen.n)+len(l.past.seen) >= 2*MaxInvocations }

func (l *ledger) count(kind EventKind) {
	if l.other == nil {
		l.other = map[EventKind]int{}
	}
	if _, known := l.other[kind]; !known && len(l.other) >= maxKinds {
		kind = kindsBeyond
	}
	l.other[kind]++
}

// Bounds of what is counted by kind; kinds beyond are counted together.
const (
	maxKinds              = 100
	kindsBeyond EventKind = "…"
)

func (l *ledger) tell(e ToolEvent) {
	c := l.entry(e.Call())
	c.tell(e)
	if c.known {
		l.calls.set(c) // that changes nothing which shows
		return
	}
	c.now = Call{c.told, !c.ended}
	l.put(c)
}

// tell takes over what an event says of the call. What comes out depends on the events
// that were told and their marks, not on the order in which they came.
func (c *entry) tell(e ToolEvent) {
	inv, m, at := &c.told, &c.marks, markOf(e)
	if e.Name != "" && (inv.Name == "" || at.compare(m.Name) < 0) {
		inv.Name, m.Name = e.Name, at
	}
	if e.Accepted != nil {
		inv.Accepted = inv.Accepted && *e.Accepted
	}
	if e.Error != "" && at.takes(m.Err) {
		inv.Error, m.Err = e.Error, at
	}
	switch e.Kind {
	case KindToolUse:
		if !m.Used || at.takes(m.Use) {
			inv.Args, m.UseAt, m.Use = Preview(e.Args), e.At, at
		}
		m.Used = true
	case KindToolResult:
		if !m.Ended || at.takes(m.Result) {
			inv.Result, inv.DurationMS = Preview(e.Result), e.DurationMS
			m.OK, m.ResultAt, m.Result = e.OK == nil || *e.OK, e.At, at
		}
		m.Ended = true
	case KindPermission:
		m.Asked = true
	}
	inv.At = m.UseAt
	if !m.Used || inv.At.IsZero() {
		inv.At = m.ResultAt
	}
	inv.OK = inv.Accepted && m.OK
	c.ended = m.over(inv.Accepted)
}

// entry is what is known of a call, to be changed and put back.
func (l *ledger) entry(id string) *entry {
	if number, ok := l.ids.find(id); ok {
		own := *l.calls.get(number)
		return &own
	}
	return &entry{number: -1, told: Invocation{ID: id, Accepted: true}}
}

func (l *ledger) settle(inv Invocation, by mark) {
	if l.known >= MaxInvocations || l.past.calls.has(inv.ID) {
		l.dropped++
		return
	}
	c := l.entry(inv.ID)
	if c.known && !by.takes(c.settled) {
		return
	}
	c.settled = by
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
		past: l.past, known: l.known, other: maps.Clone(l.other), dropped: l.dropped, bad: l.bad}
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
	t.newest, t.error, t.stale = t.past.newest, t.past.error, false
	for number := range int32(l.calls.n) {
		if c := l.calls.get(number); c.now.Name == name {
			t.see(c)
		}
	}
}
