package ace_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"acescope/engine/ace"
)

// plainLedger is a simple, slow implementation of the ledger: it keeps all events in maps and
// computes each answer from scratch.
type plainLedger struct {
	seen    map[string]struct{}        // event ids
	events  map[string][]ace.ToolEvent // by call ID
	known   map[string]ace.Invocation
	other   map[ace.EventKind]int
	dropped int
}

func (l *plainLedger) event(e ace.ToolEvent) {
	if l.seen == nil {
		l.seen = map[string]struct{}{}
		l.events = map[string][]ace.ToolEvent{}
		l.other = map[ace.EventKind]int{}
	}
	if _, dup := l.seen[e.EventID]; dup {
		return
	}
	if len(l.seen) >= 2*ace.MaxInvocations {
		l.dropped++
		return
	}
	l.seen[e.EventID] = struct{}{}
	if e.Kind != ace.KindToolUse && e.Kind != ace.KindToolResult && e.Kind != ace.KindPermission {
		l.other[e.Kind]++
		return
	}
	id := callID(e)
	l.events[id] = append(l.events[id], e)
}

// plainCall computes a call from its events, in the observer's order. Events without a position
// come first, in the order of arrival.
func plainCall(id string, events []ace.ToolEvent) ace.Call {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b ace.ToolEvent) int {
		if a.Seq == 0 && b.Seq == 0 {
			return 0
		}
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.EventID, b.EventID))
	})
	c := ace.Call{Invocation: ace.Invocation{ID: id, Accepted: true}, Pending: true}
	var used, resulted time.Time
	asked, ok := false, false
	for _, e := range events {
		if c.Name == "" {
			c.Name = e.Name
		}
		if e.Error != "" {
			c.Error = e.Error
		}
		c.Accepted = c.Accepted && (e.Accepted == nil || *e.Accepted)
		switch e.Kind {
		case ace.KindToolUse:
			c.Args, used = ace.Preview(e.Args), e.At
		case ace.KindToolResult:
			c.Result, c.DurationMS, resulted, c.Pending = ace.Preview(e.Result), e.DurationMS, e.At, false
			ok = e.OK == nil || *e.OK
		case ace.KindPermission:
			asked = true
		}
	}
	c.OK, c.Pending = c.Accepted && ok, c.Pending && (!asked || c.Accepted)
	if c.At = used; used.IsZero() {
		c.At = resulted
	}
	return c
}

func (l *plainLedger) settle(inv ace.Invocation) {
	if l.known == nil {
		l.known = map[string]ace.Invocation{}
	}
	if len(l.known) >= ace.MaxInvocations {
		l.dropped++
		return
	}
	inv.Args, inv.Result = ace.Preview(inv.Args), ace.Preview(inv.Result)
	l.known[inv.ID] = inv
}

// joined lists the calls by time and ID.
func (l *plainLedger) joined() []ace.Call {
	calls := make([]ace.Call, 0, len(l.events)+len(l.known))
	for id, events := range l.events {
		if _, ok := l.known[id]; !ok {
			calls = append(calls, plainCall(id, events))
		}
	}
	for _, inv := range l.known {
		calls = append(calls, ace.Call{Invocation: inv})
	}
	slices.SortFunc(calls, func(a, b ace.Call) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
	return calls
}

func (l *plainLedger) usage() []ace.SkillUsage {
	byName := map[string]*ace.SkillUsage{}
	durations := map[string][]float64{}
	for _, c := range l.joined() {
		u := byName[c.Name]
		if u == nil {
			u = &ace.SkillUsage{Name: c.Name}
			byName[c.Name] = u
		}
		count(u, c)
		if !c.Pending && c.Accepted {
			durations[c.Name] = append(durations[c.Name], c.DurationMS)
		}
	}
	list := make([]ace.SkillUsage, 0, len(byName))
	for name, u := range byName {
		d := durations[name]
		slices.Sort(d)
		u.P50MS, u.P95MS = percentile(d, 50), percentile(d, 95)
		list = append(list, *u)
	}
	slices.SortFunc(list, func(a, b ace.SkillUsage) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// percentile returns the nearest-rank percentile of sorted values, or 0 without values.
func percentile(sorted []float64, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

func callID(e ace.ToolEvent) string { return cmp.Or(e.CallID, e.EventID) }

func count(u *ace.SkillUsage, c ace.Call) {
	u.Calls++
	switch {
	case !c.Accepted:
		u.Denied++
	case c.Pending:
		u.Pending++
	case c.OK:
		u.OK++
	default:
		u.Failed++
	}
	if c.Error != "" {
		u.LastError = c.Error
	}
	if c.At.After(u.LastAt) {
		u.LastAt = c.At
	}
}

// TestLedgerMatchesPlainLedger applies random facts to both ledgers and compares their answers.
func TestLedgerMatchesPlainLedger(t *testing.T) {
	t.Parallel()
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 7))
		var s ace.State
		plain := &plainLedger{}
		for step := range 120 {
			f := randomFact(r)
			s.Apply(f)
			for _, e := range f.Events {
				plain.event(e)
			}
			if res, ok := f.Result.(*ace.SkillSessionResult); ok {
				for _, inv := range res.Invocations {
					plain.settle(inv)
				}
			}
			checkChanged(t, &s, f)
			if r.IntN(3) > 0 {
				continue
			}
			if r.IntN(9) == 0 {
				s = *s.Clone()
			}
			want := asJSON(t, plain.joined(), plain.usage(), plain.dropped)
			a := s.SkillUsage()
			if got := asJSON(t, s.Calls(), a.Skills, a.Dropped); got != want {
				t.Fatalf("seed %d, step %d:\n%s\nwant\n%s", seed, step, got, want)
			}
			if n := len(s.Calls()); a.Total != n || len(a.Recent) != min(n, ace.RecentCalls) {
				t.Fatalf("%d of %d, %d recent", a.Total, n, len(a.Recent))
			}
		}
	}
}

// checkChanged checks that ChangedCalls returns the current calls of the fact.
func checkChanged(t *testing.T, s *ace.State, f ace.Fact) {
	t.Helper()
	current := map[string]string{}
	for _, c := range s.Calls() {
		current[c.ID] = asJSON(t, c)
	}
	reported := map[string]bool{}
	for _, e := range f.Events {
		reported[callID(e)] = true
	}
	for _, c := range s.ChangedCalls() {
		if current[c.ID] != asJSON(t, c) || len(f.Events) > 0 && !reported[c.ID] {
			t.Fatalf("%+v was not changed by %+v", c, f)
		}
	}
}

func asJSON(t *testing.T, v ...any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func randomFact(r *rand.Rand) ace.Fact {
	name := func() string { return []string{"", "look", "calc", "find"}[r.IntN(4)] }
	id := func() string { return fmt.Sprint("c", r.IntN(25)) }
	moment := func() time.Time {
		if r.IntN(5) == 0 {
			return time.Time{}
		}
		return at.Add(time.Duration(r.IntN(40)) * time.Second)
	}
	wrong := func() string { return []string{"", "", "torn", "lost"}[r.IntN(4)] }
	if r.IntN(8) == 0 {
		res := &ace.SkillSessionResult{}
		for range r.IntN(6) {
			res.Invocations = append(res.Invocations,
				ace.Invocation{ID: id(), Name: name(), Accepted: r.IntN(4) > 0, OK: r.IntN(2) > 0,
					At: moment(), DurationMS: float64(r.IntN(9)), Error: wrong()})
		}
		return ace.Fact{Kind: ace.FactStepCompleted, Step: ace.PhaseSkills, Result: res}
	}
	var events []ace.ToolEvent
	for range 1 + r.IntN(3) {
		e := ace.ToolEvent{EventID: fmt.Sprint("e", r.IntN(400)), Name: name(), At: moment(),
			DurationMS: float64(r.IntN(9)), Error: wrong(),
			Kind: []ace.EventKind{ace.KindToolUse, ace.KindToolResult, ace.KindPermission,
				ace.KindMessage}[r.IntN(4)]}
		if r.IntN(6) > 0 {
			e.CallID = id()
		}
		if r.IntN(3) > 0 {
			e.Seq = int64(r.IntN(60))
		}
		for _, to := range []**bool{&e.OK, &e.Accepted} {
			if yes := r.IntN(2) > 0; r.IntN(3) == 0 {
				*to = &yes
			}
		}
		events = append(events, e)
	}
	return ace.ToolEvents(events)
}
