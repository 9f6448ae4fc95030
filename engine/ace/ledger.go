package ace

import (
	"cmp"
	"maps"
	"slices"
)

// ledger keeps the tool calls of a run. What signals tell of a call and what the
// session's result tells of it are kept apart and joined when read, the result
// winning; so the order in which the two arrive does not matter.
type ledger struct {
	seen    map[string]struct{} // event ids
	told    map[string]Invocation
	known   map[string]Invocation
	partial map[string]callParts
	other   map[EventKind]int
	dropped int
	bad     int
}

type callParts struct{ use, result bool }

func (l *ledger) event(e ToolEvent) {
	if l.seen == nil {
		l.seen = map[string]struct{}{}
		l.told = map[string]Invocation{}
		l.partial = map[string]callParts{}
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
	id := e.call()
	inv, ok := l.told[id]
	if !ok {
		inv = Invocation{ID: id, Accepted: true}
	}
	if inv.Name == "" {
		inv.Name = e.Name
	}
	if e.Accepted != nil {
		inv.Accepted = inv.Accepted && *e.Accepted
	}
	if e.Error != "" {
		inv.Error = e.Error
	}
	parts := l.partial[id]
	switch e.Kind {
	case KindToolUse:
		inv.Args, inv.At = Preview(e.Args), e.At
		parts.use = true
	case KindToolResult:
		inv.Result, inv.DurationMS = Preview(e.Result), e.DurationMS
		inv.OK = inv.Accepted && (e.OK == nil || *e.OK)
		if inv.At.IsZero() {
			inv.At = e.At
		}
		parts.result = true
	case KindPermission:
		parts.result = parts.result || !inv.Accepted
	}
	l.told[id], l.partial[id] = inv, parts
}

func (l *ledger) settle(inv Invocation) {
	if l.known == nil {
		l.known = map[string]Invocation{}
	}
	if len(l.known) >= MaxInvocations {
		l.dropped++
		return
	}
	inv.Args, inv.Result = Preview(inv.Args), Preview(inv.Result)
	l.known[inv.ID] = inv
}

func (l *ledger) clone() ledger {
	return ledger{maps.Clone(l.seen), maps.Clone(l.told), maps.Clone(l.known), maps.Clone(l.partial),
		maps.Clone(l.other), l.dropped, l.bad}
}

// joined lists the calls by time, then id. The order in which the maps are read does
// not matter, since the list is sorted.
func (l *ledger) joined() []Call {
	calls := make([]Call, 0, len(l.told)+len(l.known))
	for id, inv := range l.told {
		if _, ok := l.known[id]; !ok {
			calls = append(calls, Call{inv, !l.partial[id].result})
		}
	}
	for _, inv := range l.known {
		calls = append(calls, Call{Invocation: inv})
	}
	slices.SortFunc(calls, func(a, b Call) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
	return calls
}

func (l *ledger) usage() []SkillUsage {
	byName := map[string]*SkillUsage{}
	durations := map[string][]float64{}
	for _, c := range l.joined() {
		u := byName[c.Name]
		if u == nil {
			u = &SkillUsage{Name: c.Name}
			byName[c.Name] = u
		}
		u.count(c)
		if !c.Pending && c.Accepted {
			durations[c.Name] = append(durations[c.Name], c.DurationMS)
		}
	}
	list := make([]SkillUsage, 0, len(byName))
	for name, u := range byName {
		d := durations[name]
		slices.Sort(d)
		u.P50MS, u.P95MS = percentile(d, 50), percentile(d, 95)
		list = append(list, *u)
	}
	slices.SortFunc(list, func(a, b SkillUsage) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// percentile is the nearest-rank percentile of sorted values, 0 where there are none.
func percentile(sorted []float64, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}
