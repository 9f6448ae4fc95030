package ace

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// Bounds of [ToolCalls].
const (
	MaxInvocations = 20_000
	PreviewBytes   = 256
	RecentCalls    = 50
)

// SkillUsage sums up the calls of one skill: Calls = OK + Failed + Denied + Pending. The
// percentiles cover finished calls, in milliseconds.
type SkillUsage struct {
	Name      string    `json:"name"`
	Calls     int       `json:"calls"`
	OK        int       `json:"ok"`
	Failed    int       `json:"failed"`
	Denied    int       `json:"denied"`
	Pending   int       `json:"pending"`
	P50MS     float64   `json:"p50_ms"`
	P95MS     float64   `json:"p95_ms"`
	LastAt    time.Time `json:"last_at,omitzero"`
	LastError string    `json:"last_error,omitempty"`
}

// SkillAnswer is the answer of [QuerySkills]. Recent holds the latest [RecentCalls] calls with
// payloads truncated to [PreviewBytes]; the history holds the full payloads.
type SkillAnswer struct {
	Skills     []SkillUsage      `json:"skills"`
	Total      int               `json:"total"`
	Recent     []Call            `json:"recent"`
	Other      map[EventKind]int `json:"other,omitempty"`
	Commands   map[string]int    `json:"commands,omitempty"` // slash commands by name
	Dropped    int               `json:"dropped,omitempty"`
	Unreadable int               `json:"unreadable,omitempty"`
}

// Call is the current state of a tool call. Pending means that it has no result yet.
type Call struct {
	Invocation
	Pending bool `json:"pending,omitempty"`
}

// CallState is the state of a tool call.
type CallState string

// States of a tool call.
const (
	CallPending CallState = "pending" // it has no result yet
	CallOK      CallState = "ok"
	CallFailed  CallState = "failed"
	CallDenied  CallState = "denied"
)

// State returns the state of the call.
func (c Call) State() CallState {
	switch {
	case !c.Accepted:
		return CallDenied
	case c.Pending:
		return CallPending
	case c.OK:
		return CallOK
	}
	return CallFailed
}

// ToolCalls holds the tool calls of a run. It keeps the data from signals and from the session's
// result apart; the result wins, so the order of arrival is irrelevant. It counts the calls of each skill
// incrementally, so that an event does not walk all calls. Clones share their common data.
type ToolCalls struct {
	seen       stringTable           // event IDs
	ids        stringTable           // call IDs
	calls      entryList             // in the order of arrival
	skills     map[string]SkillUsage // the counts of each skill, without its times and errors
	known      int                   // calls in the session's result
	past       past                  // calls before the run was continued
	touched    []int32               // calls that the last fact changed, by number
	other      map[EventKind]int
	commands   map[string]int // slash commands by name
	typed      []ToolEvent    // slash commands of the last fact
	dropped    int
	unreadable int
}

// entry is one call. An entry is immutable; a changed copy replaces it.
type entry struct {
	number   int32      // of its ID in [ToolCalls.ids], -1 until the call is added
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

func compare(a, b *entry) int { return compareCalls(&a.now.Invocation, &b.now.Invocation) }

func compareCalls(a, b *Invocation) int {
	if c := a.At.Compare(b.At); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}

// newFact resets what the last fact changed.
func (l *ToolCalls) newFact() { l.touched, l.typed = nil, nil }

func (l *ToolCalls) event(e ToolEvent) {
	if l.knows(e.EventID) {
		return
	}
	if l.full() {
		l.dropped++
		return
	}
	l.seen.add(e.EventID)
	if e.Kind != KindToolUse && e.Kind != KindToolResult && e.Kind != KindPermission {
		l.other = count(l.other, e.Kind)
		if e.Kind == KindSlashCommand && e.Name != "" {
			l.commands = count(l.commands, e.Name)
			l.typed = append(l.typed, e)
		}
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
func (l *ToolCalls) knows(id string) bool {
	_, seen := l.seen.find(id)
	return seen || l.past.seen.has(id)
}

// full reports whether no more event IDs can be kept.
func (l *ToolCalls) full() bool { return int(l.seen.n)+len(l.past.seen) >= 2*MaxInvocations }

// Bounds of the counts by kind and by command; further ones share one count.
const (
	maxCounts = 100
	otherKeys = "…"
)

// count counts a key in a map, which may be nil.
func count[K ~string](counts map[K]int, key K) map[K]int {
	if counts == nil {
		counts = map[K]int{}
	}
	if _, known := counts[key]; !known && len(counts) >= maxCounts {
		key = otherKeys
	}
	counts[key]++
	return counts
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
func (l *ToolCalls) entry(id string) *entry {
	if number, ok := l.ids.find(id); ok {
		return new(*l.calls.get(number))
	}
	return &entry{number: -1, reported: Invocation{ID: id, Accepted: true}}
}

// setResult sets a call to its state in the session's result.
func (l *ToolCalls) setResult(inv Invocation, by mark) {
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
func (l *ToolCalls) put(c *entry) {
	if l.skills == nil {
		l.skills = map[string]SkillUsage{}
	}
	if c.number < 0 {
		c.number = l.ids.add(c.now.ID)
	} else {
		tally(l.skills, l.calls.get(c.number).now, -1)
	}
	if u, known := l.skills[c.now.Name]; known {
		c.now.Name = u.Name // calls share the text, which usage looks up for each call
	}
	l.calls.set(c)
	l.touched = append(l.touched, c.number)
	tally(l.skills, c.now, 1)
}

// tally adds a call to the counts of its skill, or with sign -1 removes it.
func tally(skills map[string]SkillUsage, c Call, sign int) {
	u := skills[c.Name]
	u.Name = cmp.Or(u.Name, c.Name)
	u.Calls += sign
	switch c.State() {
	case CallDenied:
		u.Denied += sign
	case CallPending:
		u.Pending += sign
	case CallOK:
		u.OK += sign
	case CallFailed:
		u.Failed += sign
	}
	skills[c.Name] = u
}

func (l *ToolCalls) clone() ToolCalls {
	c := *l
	c.calls = l.calls.clone()
	c.other = maps.Clone(l.other)
	c.commands = maps.Clone(l.commands)
	c.skills = maps.Clone(l.skills)
	c.touched, c.typed = nil, nil
	return c
}

// SkillUsage answers [QuerySkills].
func (l *ToolCalls) SkillUsage() SkillAnswer {
	skills, recent := l.usage()
	return SkillAnswer{
		Skills: skills, Total: l.total(), Recent: callsOf(recent),
		Other: maps.Clone(l.other), Commands: maps.Clone(l.commands),
		Dropped: l.dropped, Unreadable: l.unreadable,
	}
}

// CallTotals returns the number of calls, of events and calls that were dropped, and of
// unreadable payloads.
func (l *ToolCalls) CallTotals() (calls, dropped, unreadable int) {
	return l.total(), l.dropped, l.unreadable
}

// Calls returns the tool calls that are kept in detail, oldest first. After continue-as-new,
// these are the latest calls of that time, the calls that were open then, and all later calls.
func (l *ToolCalls) Calls() []Call { return callsOf(l.sorted()) }

// NewCommands returns the slash commands of the last fact.
func (l *ToolCalls) NewCommands() []ToolEvent { return l.typed }

// total returns the number of known calls, with or without details.
func (l *ToolCalls) total() int { return l.calls.n + len(l.past.calls) }

// sorted returns all calls by time and ID.
func (l *ToolCalls) sorted() []*entry {
	list := make([]*entry, l.calls.n)
	for i := range list {
		list[i] = l.calls.get(int32(i))
	}
	slices.SortFunc(list, compare)
	return list
}

// NewestCalls returns the n calls of [ToolCalls.Calls] that the run reported last, by time and ID. Its cost
// does not depend on the number of all calls.
func (l *ToolCalls) NewestCalls(n int) []Call {
	var list []*entry
	for i := max(l.calls.n-n, 0); i < l.calls.n; i++ {
		list = append(list, l.calls.get(int32(i)))
	}
	slices.SortFunc(list, compare)
	return callsOf(list)
}

// ChangedCalls returns the tool calls that the last fact changed, by time and ID.
func (l *ToolCalls) ChangedCalls() []Call {
	slices.Sort(l.touched)
	var list []*entry
	for _, number := range slices.Compact(l.touched) {
		list = append(list, l.calls.get(number))
	}
	slices.SortFunc(list, compare)
	return callsOf(list)
}

func callsOf(list []*entry) []Call {
	calls := make([]Call, len(list))
	for i, c := range list {
		calls[i] = c.now
	}
	return calls
}

// usage returns the usage of each skill, by name, and the latest [RecentCalls] calls. It walks the calls once
// and from the last to arrive: most of the others are then too old to be recent.
func (l *ToolCalls) usage() (list []SkillUsage, recent []*entry) {
	times := l.pastTimes()
	for i := l.calls.n - 1; i >= 0; i-- {
		c := l.calls.get(int32(i))
		times[c.now.Name].add(&c.now)
		if len(recent) == RecentCalls && compare(c, recent[0]) < 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(recent, c, compare)
		recent = slices.Insert(recent, at, c)
		recent = recent[max(len(recent)-RecentCalls, 0):]
	}
	list = l.SkillCounts()
	for i := range list {
		u := &list[i]
		t := times[u.Name]
		slices.Sort(t.durations)
		u.P50MS, u.P95MS = percentile(t.durations, 50), percentile(t.durations, 95)
		if t.latest != nil && t.latest.At.After(time.Time{}) {
			u.LastAt = t.latest.At
		}
		if t.error != nil {
			u.LastError = t.error.Error
		}
	}
	return list, recent
}

// pastTimes returns a copy of the times of each skill before the run was continued.
func (l *ToolCalls) pastTimes() map[string]*callTimes {
	times := make(map[string]*callTimes, len(l.skills))
	for name, u := range l.skills {
		t := l.past.skills[name]
		t.durations = append(make([]float64, 0, u.Calls), t.durations...)
		times[name] = &t
	}
	return times
}

// SkillCounts returns the skills of [ToolCalls.SkillUsage] with only their counts. Its cost does not depend
// on the number of calls.
func (l *ToolCalls) SkillCounts() []SkillUsage {
	list := slices.AppendSeq(make([]SkillUsage, 0, len(l.skills)), maps.Values(l.skills))
	list = slices.DeleteFunc(list, func(u SkillUsage) bool { return u.Calls == 0 })
	slices.SortFunc(list, func(a, b SkillUsage) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// callTimes holds the times and the last error of the calls of one skill.
type callTimes struct {
	durations []float64   // of finished calls, in milliseconds
	latest    *Invocation // with the latest time; among equals, the one with the first ID
	error     *Invocation // the last one, by time and ID, with an error
}

func (t *callTimes) add(c *Call) {
	if s := c.State(); s == CallOK || s == CallFailed {
		t.durations = append(t.durations, c.DurationMS)
	}
	if t.latest == nil || c.At.After(t.latest.At) || c.At.Equal(t.latest.At) && c.ID < t.latest.ID {
		t.latest = &c.Invocation
	}
	if c.Error != "" && (t.error == nil || compareCalls(&c.Invocation, t.error) > 0) {
		t.error = &c.Invocation
	}
}

// percentile returns the nearest-rank percentile of sorted values, or 0 without values.
func percentile(sorted []float64, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

// Preview truncates a JSON payload to [PreviewBytes]. A truncated payload becomes a JSON string
// that ends with an ellipsis.
func Preview(raw json.RawMessage) json.RawMessage {
	if len(raw) <= PreviewBytes {
		return raw
	}
	short, err := json.Marshal(string(raw[:PreviewBytes]) + "…")
	if err != nil {
		return nil
	}
	return short
}
