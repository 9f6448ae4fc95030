package histories

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
)

// SpanKind is the kind of work of a span.
type SpanKind uint8

// Span kinds. SpanGroup is a heading for spans of one kind.
const (
	SpanRun SpanKind = iota
	SpanPhase
	SpanActivity
	SpanAttempt
	SpanCall
	SpanTask
	SpanTimer
	SpanChild
	SpanNexus
	SpanUpdate
	SpanSignal
	SpanMarker
	SpanGroup
	SpanWait // before a retry
)

func (k SpanKind) String() string {
	return [...]string{"run", "phase", "activity", "attempt", "tool call", "workflow task", "timer", "child",
		"nexus", "update",
		"signal", "marker", "group", "wait"}[k]
}

// SpanState is the state of a span.
type SpanState uint8

// Span states. A scheduled span waits for a worker, a retrying one for its next attempt.
const (
	SpanDone SpanState = iota
	SpanScheduled
	SpanRunning
	SpanRetrying
	SpanFailed
	SpanTimedOut
	SpanCanceled
	SpanTerminated
	SpanRefused
	SpanContinued
)

func (s SpanState) String() string {
	return [...]string{"done", "scheduled", "running", "retrying", "failed", "timed out", "canceled",
		"terminated", "refused",
		"continued as new"}[s]
}

// Bad reports whether the state is a failure.
func (s SpanState) Bad() bool {
	return s == SpanFailed || s == SpanTimedOut || s == SpanTerminated || s == SpanRefused
}

// requests reports whether a span that is not a point is a signal or cancel request to another workflow.
func (s *Span) requests() bool { return s.Kind == SpanSignal || s.Kind == SpanMarker }

// Open reports whether the span has not ended.
func (s SpanState) Open() bool { return s == SpanScheduled || s == SpanRunning || s == SpanRetrying }

// Span is a period of a run, or a point in time. Name and Error are untrusted text.
type Span struct {
	Kind  SpanKind
	State SpanState
	Point bool // it has no duration
	Cut   bool // its start has not been read; Start is the first known event
	Depth int8
	// Attempt is the number of the attempt, or of an activity the number of attempts; 0 if it does not apply.
	Attempt int32
	Parent  int32    // index of the enclosing span, -1 for the run
	Members int32    // of a group
	of      SpanKind // of the members

	// Times are in nanoseconds since 1970: when it was scheduled, started (0: not yet) and ended (0: not
	// yet).
	Start, Run, End int64
	Name            string
	Call            string // the id of a tool call
	Error           string
	Note            string // what became of a request to cancel it, or of the failure
	Event, Last     int64  // first and last event that report it
	// Agent is the call that the span is, or nil; then Activity is the type of the activity or child.
	Agent    *AgentCall
	Activity string
	Paused   int64 // nanoseconds of waits between the attempts of one span
	earlier  bool  // it holds the attempts before the last one
}

// Waited returns the time before it started, so far if it waits; never negative.
func (s *Span) Waited(now time.Time) time.Duration {
	until := s.Run
	if until == 0 {
		until = s.until(now)
	}
	return time.Duration(max(until-s.Start, 0))
}

// Ran returns how long it ran, so far if it runs; 0 before it started.
func (s *Span) Ran(now time.Time) time.Duration {
	if s.Run == 0 {
		return 0
	}
	return time.Duration(max(s.until(now)-s.Run-s.Paused, 0))
}

func (s *Span) until(now time.Time) int64 {
	if s.End == 0 {
		return now.UnixNano()
	}
	return s.End
}

// Timeline returns the spans of a run in tree order: the run; its phases, activities, attempts and tool
// calls; then children, timers, updates, signals, markers and workflow tasks in groups. pending is the
// server's report on pending activities. An empty log has no spans.
func Timeline(l *EventLog, pending []PendingActivity) []Span {
	if l.Len() == 0 {
		return nil
	}
	b := newSpanBuilder(l)
	for i := range l.Len() {
		b.event(l.Row(i))
	}
	b.pending(pending)
	b.settleAgents()
	return b.tree()
}

// spanBuilder reads the events once, oldest first.
type spanBuilder struct {
	log    *EventLog
	spans  []Span
	open   map[int64]int32 // by root event
	groups map[SpanKind]int32
	phase  int32 // newest, -1 for none
	skills int32 // newest skills session, -1 for none
	calls  map[callKey]int32
	tries  map[int32]int32 // last attempt of each retried activity
}

const noSpan = int32(-1)

func newSpanBuilder(l *EventLog) *spanBuilder {
	b := &spanBuilder{log: l, open: map[int64]int32{}, groups: map[SpanKind]int32{}, phase: noSpan,
		skills: noSpan, calls: map[callKey]int32{}, tries: map[int32]int32{}}
	e := l.Row(0)
	b.add(Span{Kind: SpanRun, State: SpanRunning, Start: e.Nanos, Run: e.Nanos, Event: e.ID, Cut: e.ID != 1,
		Parent: noSpan, Name: e.Title})
	return b
}

func (b *spanBuilder) add(s Span) int32 {
	if s.Last == 0 {
		s.Last = s.Event
	}
	b.spans = append(b.spans, s)
	return int32(len(b.spans) - 1)
}

func (b *spanBuilder) event(e *Event) {
	switch e.Kind {
	case EventRun:
		b.run(e)
	case EventTask, EventActivity, EventTimer, EventChild, EventNexus, EventUpdate:
		b.work(e)
	case EventTool:
		b.point(SpanSignal, e)
		b.addCalls(e)
	case EventSignal, EventOther:
		if strings.Contains(e.Name(), "External") {
			b.work(e)
		} else {
			b.point(spanKinds[e.Kind], e)
		}
	default:
		b.point(SpanMarker, e)
	}
}

func (b *spanBuilder) run(e *Event) {
	run := &b.spans[0]
	run.Last = e.ID
	switch e.Type {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		run.Name = e.Title
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		run.Note = verbOf(e)
		b.point(SpanSignal, e)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_PAUSED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UNPAUSED:
		b.point(SpanMarker, e)
	default:
		if cluster.ClosesRun(e.Type) {
			run.End, run.State, run.Error = e.Nanos, spanStates[e.End], e.Message
			if !run.State.Bad() {
				run.Error = ""
			}
		}
	}
}

// spanStates are the states of spans after their ends.
var spanStates = map[history.EndStatus]SpanState{history.EndCompleted: SpanDone,
	history.EndFailed:   SpanFailed,
	history.EndTimedOut: SpanTimedOut, history.EndCanceled: SpanCanceled,
	history.EndTerminated: SpanTerminated, history.EndRejected: SpanRefused,
	history.EndContinued: SpanContinued}

var spanKinds = map[EventKind]SpanKind{EventTask: SpanTask, EventActivity: SpanActivity,
	EventTimer: SpanTimer,
	EventChild: SpanChild, EventNexus: SpanNexus, EventUpdate: SpanUpdate,
	EventSignal: SpanSignal, EventOther: SpanMarker}

// work handles an event of work that is scheduled, runs and ends.
func (b *spanBuilder) work(e *Event) {
	at, ok := b.open[e.Root]
	if !ok {
		at = b.begin(e)
		b.open[e.Root] = at
	}
	s := &b.spans[at]
	s.Last = e.ID
	if s.Kind == SpanActivity && e.ID != e.Root && e.Title != "" {
		s.Name = e.Title
	}
	switch {
	case e.End != 0:
		b.end(at, e)
	case strings.Contains(e.Name(), "CancelRequest"):
		s.Note = cluster.Join(verbOf(e), e.Message)
	case e.Type == enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED,
		e.Type == enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED,
		e.Type == enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED,
		e.Type == enumspb.EVENT_TYPE_NEXUS_OPERATION_STARTED,
		e.Type == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
		s.Run, s.State = e.Nanos, SpanRunning
		switch s.Kind {
		case SpanActivity:
			b.attempts(at, e)
		case SpanUpdate:
			b.open[e.ID] = at // the end names the acceptance
		}
	}
}

// begin adds the span of the first event of some work.
func (b *spanBuilder) begin(e *Event) int32 {
	s := Span{Kind: spanKinds[e.Kind], State: SpanScheduled, Start: e.Nanos, Event: e.ID,
		Name: b.log.Title(e), Cut: e.ID != e.Root}
	activity := s.Name
	switch s.Kind {
	case SpanTimer:
		s.State, s.Run = SpanRunning, e.Nanos
	case SpanSignal, SpanMarker:
		s.Run = e.Nanos
	}
	if s.Kind == SpanTimer || s.Kind == SpanSignal || s.Kind == SpanUpdate && !e.Error {
		s.Name = strings.TrimSpace(s.Name + " " + ace.Cut(e.Message, 80))
	}
	if s.Kind == SpanChild && e.Message != "" {
		s.Name = e.Message
	}
	b.name(&s, e.Root)
	if s.Kind != SpanActivity {
		s.Parent = b.group(s.Kind, e)
		return b.add(s)
	}
	step, ok := ace.StepOf(activity)
	if ok {
		s.Parent = b.enter(step, e)
	}
	at := b.add(s)
	if step == ace.PhaseSkills {
		b.skills = at
	}
	return at
}

// enter returns the newest phase span if it has that phase, otherwise a new one.
func (b *spanBuilder) enter(step ace.Phase, e *Event) int32 {
	if b.phase != noSpan && b.spans[b.phase].Name == string(step) {
		p := &b.spans[b.phase]
		p.End, p.State = 0, SpanRunning
		return b.phase
	}
	b.phase = b.add(Span{Kind: SpanPhase, State: SpanRunning, Start: e.Nanos, Run: e.Nanos, Event: e.ID,
		Name: string(step)})
	return b.phase
}

func (b *spanBuilder) group(kind SpanKind, e *Event) int32 {
	at, ok := b.groups[kind]
	if !ok {
		at = b.add(Span{Kind: SpanGroup, Start: e.Nanos, Run: e.Nanos, Event: e.ID, Name: groupNames[kind],
			of: kind})
		b.groups[kind] = at
	}
	g := &b.spans[at]
	g.Members++
	g.Last = e.ID
	return at
}

var groupNames = map[SpanKind]string{SpanTask: "workflow tasks", SpanTimer: "timers", SpanChild: "children",
	SpanNexus:  "nexus operations",
	SpanUpdate: "updates", SpanSignal: "signals", SpanMarker: "markers"}

// end closes a span, its last attempt and its phase.
func (b *spanBuilder) end(at int32, e *Event) {
	s, state := &b.spans[at], spanStates[e.End]
	s.End, s.State = e.Nanos, state
	if e.Error {
		s.Error = e.Message
	}
	if s.Kind == SpanTask && state == SpanFailed && !e.Error {
		s.State = SpanDone // the event marks a reset
	}
	if s.Kind == SpanTimer && s.Run == 0 {
		s.Run = s.Start
	}
	if last, ok := b.tries[at]; ok {
		c := &b.spans[last]
		c.End, c.State, c.Error, c.Last = e.Nanos, state, s.Error, e.ID
	}
	if p := s.Parent; p > 0 && b.spans[p].Kind == SpanPhase {
		phase := &b.spans[p]
		phase.End, phase.State, phase.Error, phase.Last = e.Nanos, state, s.Error, e.ID
	}
	if s.Kind == SpanActivity && len(e.calls) > 0 && s.Name == ace.ActivitySkills {
		b.settle(at, e)
	}
}

// attempts splits an activity with several attempts. The history has only the last attempt and the previous
// failure.
func (b *spanBuilder) attempts(at int32, e *Event) {
	s := &b.spans[at]
	if s.Attempt = e.Attempt; e.Attempt < 2 {
		return
	}
	_, previous, _ := strings.Cut(e.Message, " after ")
	var asked time.Duration
	if e.retry != nil {
		asked = e.retry.asked
	}
	wait := min(cmp.Or(asked, b.retry(at).interval(e.Attempt-1)), time.Duration(e.Nanos-s.Start))
	ended := e.Nanos - int64(max(wait, 0))
	b.tries[at] = b.split(at, e.Attempt, ended, previous, e.ID)
	if b.waited(at, ended, e.Nanos, asked > 0, e.ID) {
		b.spans[b.tries[at]].Start = e.Nanos
	}
	b.spans[b.tries[at]].Run = e.Nanos
}

// split adds the attempts of an activity: the earlier ones, which failed until a time, and the last one,
// which is running. It returns the last one.
func (b *spanBuilder) split(at, attempt int32, ended int64, failure string, event int64) int32 {
	start := b.spans[at].Start
	paused := min(int64(b.retry(at).intervals(attempt-1)), max(ended-start, 0))
	b.add(Span{Kind: SpanAttempt, State: SpanFailed, Parent: at, Start: start, Run: start, End: ended,
		Attempt: attempt - 1, Name: attemptsName(attempt - 1), Error: failure, Event: event, Paused: paused,
		earlier: true})
	return b.add(Span{Kind: SpanAttempt, State: SpanRunning, Parent: at, Start: ended, Attempt: attempt,
		Name: fmt.Sprintf("attempt %d", attempt), Event: event})
}

// retry returns the retry policy of an activity, or nil.
func (b *spanBuilder) retry(at int32) *retryFacts {
	if e := b.log.Event(b.spans[at].Event); e != nil {
		return e.retry
	}
	return nil
}

// waited adds the wait before a retry, if there is one; asked is whether the failure asked for it.
func (b *spanBuilder) waited(at int32, from, to int64, asked bool, event int64) bool {
	if to <= from {
		return false
	}
	name := "wait to retry"
	if asked {
		name = "wait that the failure asked for"
	}
	b.add(Span{Kind: SpanWait, Parent: at, Start: from, Run: from, End: to, Name: name, Event: event})
	return true
}

func attemptsName(n int32) string {
	if n == 1 {
		return "attempt 1"
	}
	return fmt.Sprintf("attempts 1-%d", n)
}

func (b *spanBuilder) point(kind SpanKind, e *Event) {
	s := Span{Kind: kind, Point: true, Start: e.Nanos, Run: e.Nanos, End: e.Nanos, Event: e.ID,
		Name: b.log.Title(e)}
	switch {
	case e.Kind == EventRun:
		s.Name = e.Name()
	case s.Name == "":
		s.Name = e.Name()
		if e.Message != "" && e.Kind == EventAttributes {
			s.Name = e.Message
		}
	case e.Kind == EventTool, e.Kind == EventSignal && e.Message != "" && !e.Error:
		s.Name += " " + e.Message
	}
	if s.State = spanStates[e.End]; e.Error {
		s.State, s.Error = max(s.State, SpanFailed), e.Message
	}
	b.name(&s, e.ID)
	s.Parent = b.group(kind, e)
	b.add(s)
}
