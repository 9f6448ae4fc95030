package histories

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/temporal/history"
)

// addCalls adds the tool calls of a signal. Their parent is the newest skills session, or the run.
func (b *spanBuilder) addCalls(e *Event) {
	parent := max(b.skills, 0)
	for i := range e.calls {
		m := &e.calls[i]
		if m.kind != ace.KindToolUse && m.kind != ace.KindToolResult && m.kind != ace.KindPermission {
			continue
		}
		at, s := b.call(parent, m, e)
		s.Last = e.ID
		if m.kind == ace.KindToolResult || m.refused {
			s.End = max(cmp.Or(m.at, e.Nanos), s.Start)
			if m.duration > 0 {
				s.End = s.Start + int64(m.duration)
			}
			s.State = stateOfCall(m)
		}
		if m.err != "" {
			s.Error = m.err
		}
		b.spans[at] = s
	}
}

// settle adds the calls of a session's result, which replace earlier reports.
func (b *spanBuilder) settle(session int32, e *Event) {
	for i := range e.calls {
		m := &e.calls[i]
		at, s := b.call(session, m, e)
		s.State, s.Error, s.Last, s.Parent = stateOfCall(m), m.err, e.ID, session
		if m.at != 0 {
			s.Start, s.Run = m.at, m.at
		}
		s.End = s.Start + int64(m.duration)
		b.spans[at] = s
	}
}

// callKey is a call by its id within its session.
type callKey struct {
	session int32
	id      string
}

// call returns the span of a call.
func (b *spanBuilder) call(parent int32, m *callReport, e *Event) (int32, Span) {
	key := callKey{parent, m.id}
	at, ok := b.calls[key]
	if !ok {
		start := cmp.Or(m.at, e.Nanos)
		if m.kind == ace.KindToolResult || m.kind == "" && m.at == 0 {
			start -= int64(m.duration)
		}
		at = b.add(Span{Kind: SpanCall, State: SpanRunning, Parent: parent, Start: start, Run: start,
			Event: e.ID,
			Name:  m.name, Call: m.id})
		b.calls[key] = at
	}
	s := b.spans[at]
	if s.Name == "" {
		s.Name = m.name
	}
	return at, s
}

func stateOfCall(m *callReport) SpanState {
	switch {
	case m.refused:
		return SpanRefused
	case m.failed:
		return SpanFailed
	}
	return SpanDone
}

// pending adds the server's report on pending activities to the open spans.
func (b *spanBuilder) pending(work []PendingActivity) {
	taken := map[int32]bool{}
	for _, w := range work {
		at := b.pendingSpan(w, taken)
		if at == noSpan {
			continue
		}
		taken[at] = true
		s := &b.spans[at]
		s.State, s.Attempt, s.End = w.spanState(), w.Attempt, 0
		if s.State == SpanRunning && s.Run == 0 {
			s.Run = nanosOf(w.started)
		}
		if w.Attempt < 2 {
			continue
		}
		state, ended := s.State, cmp.Or(nanosOf(w.ended), nanosOf(w.started), s.Start)
		i := b.split(at, w.Attempt, ended, w.failure, s.Event)
		last := &b.spans[i]
		last.State = state
		if state == SpanRunning {
			last.Run = nanosOf(w.started)
			if from, event := last.Run, s.Event; b.waited(at, ended, from, false, event) {
				b.spans[i].Start = from
			}
		}
	}
}

// pendingSpan returns the open span of a pending activity: by its id if the worker uses the Go SDK, else the
// first one of its type that is not taken. Of a workflow task that fails, it returns the last one.
func (b *spanBuilder) pendingSpan(w PendingActivity, taken map[int32]bool) int32 {
	if w.Type == history.TaskType {
		for i := len(b.spans) - 1; i > 0; i-- {
			if b.spans[i].Kind == SpanTask {
				return int32(i)
			}
		}
	}
	fits := func(at int32) bool {
		s := &b.spans[at]
		named := s.Name == w.Type || s.Activity == w.Type || isLabelOf(w.Type, s.Name)
		return s.Kind == SpanActivity && s.End == 0 && named && !taken[at]
	}
	if id, err := strconv.ParseInt(w.id, 10, 64); err == nil {
		if at, ok := b.open[id]; ok && fits(at) {
			return at
		}
	}
	for i := range b.spans {
		if fits(int32(i)) {
			return int32(i)
		}
	}
	return noSpan
}

// tree returns the spans in tree order and sets the range of the groups.
func (b *spanBuilder) tree() []Span {
	run := &b.spans[0]
	if run.End != 0 {
		b.close(run.End)
	}
	inside := make([][]int32, len(b.spans))
	for i := 1; i < len(b.spans); i++ {
		p := max(b.spans[i].Parent, 0)
		inside[p] = append(inside[p], int32(i))
	}
	for _, list := range inside {
		b.sort(list)
	}
	out := make([]Span, 0, len(b.spans))
	var walk func(at, parent int32, depth int8)
	walk = func(at, parent int32, depth int8) {
		s := b.spans[at]
		s.Parent, s.Depth = parent, depth
		if s.Kind == SpanGroup {
			s = b.sum(s, inside[at])
		}
		out = append(out, s)
		here := int32(len(out) - 1)
		for _, c := range inside[at] {
			walk(c, here, depth+1)
		}
	}
	walk(0, noSpan, 0)
	return out
}

// close ends open spans when the run ends.
func (b *spanBuilder) close(at int64) {
	for i := range b.spans {
		s := &b.spans[i]
		if s.Kind == SpanGroup || s.End != 0 || !s.State.Open() {
			continue
		}
		if s.End = max(at, s.Start); !s.requests() { // requests may be delivered later
			s.State = SpanCanceled
		}
	}
}

// sort sorts spans by their start, groups last. The sort is stable.
func (b *spanBuilder) sort(list []int32) {
	slices.SortStableFunc(list, func(x, y int32) int {
		s, t := &b.spans[x], &b.spans[y]
		if s.Kind == SpanGroup || t.Kind == SpanGroup {
			return cmp.Compare(s.groupRank(), t.groupRank())
		}
		return cmp.Compare(s.Start, t.Start)
	})
}

// groupRank returns the position of a group among the groups, or -1 for other spans.
func (s *Span) groupRank() int {
	if s.Kind != SpanGroup {
		return -1
	}
	return slices.Index([]SpanKind{SpanChild, SpanNexus, SpanTimer, SpanUpdate, SpanSignal, SpanMarker,
		SpanTask}, s.of)
}

// sum returns a group with the range and the state of its members.
func (b *spanBuilder) sum(g Span, members []int32) Span {
	g.State = SpanDone
	bad := 0
	for _, i := range members {
		m := &b.spans[i]
		g.Start = min(g.Start, m.Start)
		g.End = max(g.End, m.End, m.Start)
		if m.State.Open() && m.End == 0 {
			g.State = SpanRunning
		}
		if m.State.Bad() {
			bad++
		}
	}
	if bad > 0 {
		g.Error = fmt.Sprintf("%d of %d failed", bad, len(members))
	}
	g.Run = g.Start
	return g
}

// isLabelOf reports whether a span's name is a label of the activity.
func isLabelOf(activity, name string) bool {
	switch activity {
	case session.ActivityTurn:
		return strings.HasPrefix(name, "turn ")
	case session.ActivityTool:
		return strings.HasPrefix(name, "tool ")
	case ace.ActivityAgentCLI:
		return strings.HasPrefix(name, activity+" ")
	}
	return false
}

// Work returns the spans without groups, signals, markers, updates and workflow tasks. If there are phases,
// it also leaves out timers, and activities with one attempt, because their phase covers them.
func Work(all []Span) (kept []Span) {
	moved := make([]int32, len(all))
	phases := slices.ContainsFunc(all, func(s Span) bool { return s.Kind == SpanPhase })
	for i := range all {
		s := all[i]
		parent := int32(-1)
		if s.Parent >= 0 {
			parent = moved[s.Parent]
		}
		if moved[i] = parent; i > 0 && !isWork(&s, phases) {
			continue
		}
		moved[i] = int32(len(kept))
		s.Parent, s.Depth = parent, 0
		if parent >= 0 {
			s.Depth = kept[parent].Depth + 1
		}
		kept = append(kept, s)
	}
	return kept
}

func isWork(s *Span, phases bool) bool {
	switch s.Kind {
	case SpanGroup, SpanTask, SpanSignal, SpanMarker, SpanUpdate:
		return false
	case SpanTimer:
		return !phases
	case SpanActivity:
		return s.Attempt > 1 || !phases
	}
	return true
}
