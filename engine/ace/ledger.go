package ace

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// ledger holds the tool calls of a run. It keeps the data from signals and from the session's
// result apart; the result wins, so the order of arrival is irrelevant. It updates the answers
// incrementally, so neither an event nor a query walks all calls. Clones share their common data.
type ledger struct {
	seen       stringTable // event IDs
	ids        stringTable // call IDs
	calls      entryList
	order      []int32            // numbers of calls, by time and ID
	shared     bool               // a clone shares order: append only
	skills     map[string]*tally  // by name
	known      int                // calls in the session's result
	past       past               // calls before the run was continued
	touched    map[int32]struct{} // calls that the last fact changed
	other      map[EventKind]int
	dropped    int
	unreadable int
}

// entry is one call. An entry in a ledger is immutable; a changed copy replaces it.
type entry struct {
	number   int32      // of its ID, -1 before it is in the ledger
	reported Invocation // by signals
	marks    marks      // the events that reported it
	ended    bool       // signals reported a result or a denial
	known    bool       // now comes from the session's result
	settled  mark       // the event with the session's result, in an observed run
	now      Call
}

// mark is an event's position in its observer's order. Events without a position precede the
// others and keep their order of arrival.
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

// supersedes reports whether data with mark m replaces data with the mark old.
func (m mark) supersedes(old mark) bool { return m.Seq == 0 && old.Seq == 0 || m.compare(old) > 0 }

// marks records which event reported which part of a call, so that the order of arrival is
// irrelevant.
type marks struct {
	Name     mark      `json:"name,omitzero"`
	Use      mark      `json:"use,omitzero"`
	Result   mark      `json:"result,omitzero"`
	Err      mark      `json:"err,omitzero"`
	Used     bool      `json:"used,omitempty"`  // a tool_use was seen
	Asked    bool      `json:"asked,omitempty"` // a permission was seen
	Ended    bool      `json:"ended,omitempty"` // a tool_result was seen
	OK       bool      `json:"ok,omitempty"`    // as in the tool_result
	UseAt    time.Time `json:"use_at,omitzero"`
	ResultAt time.Time `json:"result_at,omitzero"`
}

// ended reports whether the call has a result or was denied.
func (m *marks) ended(accepted bool) bool { return m.Ended || m.Asked && !accepted }

func compare(a, b *entry) int {
	return cmp.Or(a.now.At.Compare(b.now.At), cmp.Compare(a.now.ID, b.now.ID))
}

// begin starts a new fact: it resets the result of changed.
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
		l.dropped++ // only the counts of that call were carried over
		return
	}
	c := l.entry(e.Call())
	c.apply(e)
	if c.known {
		l.calls.set(c) // the session's result stays the visible state
		return
	}
	c.now = Call{c.reported, !c.ended}
	l.put(c)
}

// knows reports whether an event was seen.
func (l *ledger) knows(id string) bool {
	_, seen := l.seen.find(id)
	return seen || l.past.seen.has(id)
}

// full reports whether no more event IDs can be kept.
func (l *ledger) full() bool { return int(l.seen.n)+len(l.past.seen) >= 2*MaxInvocations }

// Bounds of the counts by kind; further kinds share one count.
const (
	maxKinds             = 100
	otherKinds EventKind = "…"
)

func (l *ledger) count(kind EventKind) {
	if l.other == nil {
		l.other = map[EventKind]int{}
	}
	if _, known := l.other[kind]; !known && len(l.other) >= maxKinds {
		kind = otherKinds
	}
	l.other[kind]++
}

// apply merges an event into the call. The result depends on the events and their marks, not on
// their order of arrival.
func (c *entry) apply(e ToolEvent) {
	inv, m, at := &c.reported, &c.marks, markOf(e)
	if e.Name != "" && (inv.Name == "" || at.compare(m.Name) < 0) {
		inv.Name, m.Name = e.Name, at
	}
	if e.Accepted != nil {
		inv.Accepted = inv.Accepted && *e.Accepted
	}
	if e.Error != "" && at.supersedes(m.Err) {
		inv.Error, m.Err = e.Error, at
	}
	switch e.Kind {
	case KindToolUse:
		if !m.Used || at.supersedes(m.Use) {
			inv.Args = Preview(e.Args)
			m.Use, m.UseAt = at, e.At
		}
		m.Used = true
	case KindToolResult:
		if !m.Ended || at.supersedes(m.Result) {
			inv.Result = Preview(e.Result)
			inv.DurationMS = e.DurationMS
			m.OK = e.OK == nil || *e.OK
			m.Result, m.ResultAt = at, e.At
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
	c.ended = m.ended(inv.Accepted)
}

// entry returns a copy of a call, to be changed and put back.
func (l *ledger) entry(id string) *entry {
	if number, ok := l.ids.find(id); ok {
		own := *l.calls.get(number)
		return &own
	}
	return &entry{number: -1, reported: Invocation{ID: id, Accepted: true}}
}

// setResult sets a call to its state in the session's result.
func (l *ledger) setResult(inv Invocation, by mark) {
	if l.known >= MaxInvocations || l.past.calls.has(inv.ID) {
		l.dropped++
		return
	}
	c := l.entry(inv.ID)
	if c.known && !by.supersedes(c.settled) {
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

// put adds or replaces a call.
func (l *ledger) put(c *entry) {
	if l.skills == nil {
		l.skills = map[string]*tally{}
		l.touched = map[int32]struct{}{}
	}
	if c.number < 0 {
		c.number = l.ids.add(c.now.ID)
		l.calls.set(c)
		l.insert(c)
	} else {
		old := l.calls.get(c.number)
		moved := !c.now.At.Equal(old.now.At)
		if moved {
			l.delete(old)
		}
		l.calls.set(c)
		if moved {
			l.insert(c)
		}
		l.tally(old.now.Name).remove(old, c.now)
	}
	l.touched[c.number] = struct{}{}
	l.tally(c.now.Name).add(c)
}

// find returns the index of a call in order, or the index to insert it at.
func (l *ledger) find(c *entry) (int, bool) {
	return slices.BinarySearchFunc(l.order, c, func(number int32, c *entry) int {
		return compare(l.calls.get(number), c)
	})
}

func (l *ledger) insert(c *entry) {
	n := len(l.order)
	if n == 0 || compare(l.calls.get(l.order[n-1]), c) < 0 {
		l.order = append(l.order, c.number)
		return
	}
	l.unshareOrder()
	at, _ := l.find(c)
	l.order = slices.Insert(l.order, at, c.number)
}

func (l *ledger) delete(c *entry) {
	l.unshareOrder()
	if at, ok := l.find(c); ok {
		l.order = slices.Delete(l.order, at, at+1)
	}
}

func (l *ledger) unshareOrder() {
	if l.shared {
		l.order = slices.Clone(l.order)
		l.shared = false
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

func (l *ledger) clone() ledger {
	l.shared = true
	c := *l
	c.calls = l.calls.clone()
	c.order = slices.Clip(l.order)
	c.other = maps.Clone(l.other)
	c.skills, c.touched = nil, nil
	if l.skills != nil {
		c.skills = make(map[string]*tally, len(l.skills))
		c.touched = map[int32]struct{}{}
	}
	for name, t := range l.skills {
		c.skills[name] = t.clone()
	}
	return c
}

// total returns the number of known calls, with or without details.
func (l *ledger) total() int { return len(l.order) + len(l.past.calls) }

// latest returns the last n calls by time and ID.
func (l *ledger) latest(n int) []Call {
	order := l.order[max(0, len(l.order)-n):]
	calls := make([]Call, len(order))
	for i, number := range order {
		calls[i] = l.calls.get(number).now
	}
	return calls
}

// changed returns the calls that the last fact changed, by time and ID.
func (l *ledger) changed() []Call {
	entries := make([]*entry, 0, len(l.touched))
	for number := range l.touched {
		entries = append(entries, l.calls.get(number))
	}
	slices.SortFunc(entries, compare)
	calls := make([]Call, len(entries))
	for i, c := range entries {
		calls[i] = c.now
	}
	return calls
}

// usage returns the usage of each skill, by name.
func (l *ledger) usage() []SkillUsage {
	list := l.counts()
	for i := range list {
		t := l.skills[list[i].Name]
		if t.stale {
			l.refresh(list[i].Name, t)
		}
		t.complete(&list[i])
	}
	return list
}

// counts returns the counts of each skill, by name.
func (l *ledger) counts() []SkillUsage {
	list := make([]SkillUsage, 0, len(l.skills))
	for name, t := range l.skills {
		if t.calls > 0 {
			list = append(list, SkillUsage{Name: name, Calls: t.calls, OK: t.ok, Failed: t.failed,
				Denied: t.denied, Pending: t.pending})
		}
	}
	slices.SortFunc(list, func(a, b SkillUsage) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// refresh recomputes the latest call and error of a stale tally.
func (l *ledger) refresh(name string, t *tally) {
	t.latest, t.error, t.stale = t.past.latest, t.past.error, false
	for number := range int32(l.calls.n) {
		if c := l.calls.get(number); c.now.Name == name {
			t.see(c)
		}
	}
}

// tally counts the calls of one skill incrementally.
type tally struct {
	calls, ok, failed, denied, pending int

	latest *entry // the call with the latest time; among equals, the one with the first ID
	error  *entry // the last call, by time and ID, with an error
	stale  bool   // latest or error was removed and must be recomputed

	past struct{ latest, error *entry } // among calls before the run was continued

	durations []float64 // of finished calls, sorted, in milliseconds
	added     []float64 // to durations since the last sort
	removed   []float64 // from durations since the last sort
}

// counter returns the counter of a call's outcome.
func (t *tally) counter(c Call) *int {
	switch {
	case !c.Accepted:
		return &t.denied
	case c.Pending:
		return &t.pending
	case c.OK:
		return &t.ok
	}
	return &t.failed
}

func timed(c Call) bool { return !c.Pending && c.Accepted }

func (t *tally) add(c *entry) {
	t.calls++
	*t.counter(c.now)++
	if timed(c.now) {
		t.added = append(t.added, c.now.DurationMS)
	}
	t.see(c)
}

func (t *tally) see(c *entry) {
	last := t.latest
	if last == nil || last.number == c.number || c.now.At.After(last.now.At) ||
		c.now.At.Equal(last.now.At) && c.now.ID < last.now.ID {
		t.latest = c
	}
	if c.now.Error != "" && (t.error == nil || t.error.number == c.number || compare(c, t.error) > 0) {
		t.error = c
	}
}

// remove removes a call that changes to next.
func (t *tally) remove(c *entry, next Call) {
	t.subtract(c.now)
	moved := next.Name != c.now.Name || next.At.Before(c.now.At)
	if t.latest.is(c) && moved || t.error.is(c) && (moved || next.Error == "") {
		t.stale = true
	}
}

// subtract removes a call from the counts and the durations.
func (t *tally) subtract(c Call) {
	t.calls--
	*t.counter(c)--
	if timed(c) {
		t.removed = append(t.removed, c.DurationMS)
	}
}

// is reports whether two entries are of the same call. A call from before the run was continued
// has no number and equals none.
func (c *entry) is(d *entry) bool { return c != nil && c.number >= 0 && c.number == d.number }

// clone returns a copy, which shares the sorted durations: these are never modified.
func (t *tally) clone() *tally {
	if len(t.added)+len(t.removed) > len(t.durations)/8 {
		t.sortDurations()
	}
	c := *t
	c.added, c.removed = slices.Clone(t.added), slices.Clone(t.removed)
	return &c
}

// complete sets the percentiles and the latest call and error of a usage.
func (t *tally) complete(u *SkillUsage) {
	t.sortDurations()
	u.P50MS, u.P95MS = percentile(t.durations, 50), percentile(t.durations, 95)
	if t.latest != nil && t.latest.now.At.After(time.Time{}) {
		u.LastAt = t.latest.now.At
	}
	if t.error != nil {
		u.LastError = t.error.now.Error
	}
}

// sortDurations updates the sorted durations in one pass.
func (t *tally) sortDurations() {
	if len(t.added)+len(t.removed) == 0 {
		return
	}
	slices.Sort(t.added)
	slices.Sort(t.removed)
	merged := make([]float64, 0, max(len(t.durations)+len(t.added)-len(t.removed), 0))
	a, b, removed := t.durations, t.added, t.removed
	for len(a)+len(b) > 0 {
		var next float64
		if len(b) == 0 || len(a) > 0 && a[0] <= b[0] {
			next, a = a[0], a[1:]
		} else {
			next, b = b[0], b[1:]
		}
		if len(removed) > 0 && removed[0] == next {
			removed = removed[1:]
			continue
		}
		merged = append(merged, next)
	}
	t.durations, t.added, t.removed = merged, t.added[:0], t.removed[:0]
}

// percentile returns the nearest-rank percentile of sorted values, or 0 without values.
func percentile(sorted []float64, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}
