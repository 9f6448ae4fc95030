package histories

import (
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"acescope/engine/ace"
	"acescope/sources/cluster"
)

// SpanKind is what a span is of.
type SpanKind uint8

// Span kinds. SpanGroup is a heading over spans of one kind.
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
)

func (k SpanKind) String() string {
	return [...]string{"run", "phase", "activity", "attempt", "tool call", "workflow task", "timer", "child", "nexus", "update",
		"signal", "marker", "group"}[k]
}

// SpanState is where a span stands.
type SpanState uint8

// Span states. A scheduled span waits for a worker; a retrying one for its next attempt.
const (
	SpanDone SpanState = iota
	SpanScheduled
	SpanRunning
	SpanRetrying
	SpanFailed
	SpanTimedOut
	SpanCancelled
	SpanTerminated
	SpanRefused
	SpanContinued
)

func (s SpanState) String() string {
	return [...]string{"done", "scheduled", "running", "retrying", "failed", "timed out", "cancelled", "terminated", "refused",
		"continued as new"}[s]
}

// Bad tells whether the state is an error.
func (s SpanState) Bad() bool {
	return s == SpanFailed || s == SpanTimedOut || s == SpanTerminated || s == SpanRefused
}

// Open tells whether a span in this state goes on.
func (s SpanState) Open() bool { return s == SpanScheduled || s == SpanRunning || s == SpanRetrying }

// Span is a stretch of a run's time, or a point. Name and Error are untrusted text.
type Span struct {
	Kind  SpanKind
	State SpanState
	Point bool // it has no length
	Cut   bool // its beginning is not read: Start is not known to be it
	Depth int8
	// Attempt is which attempt is meant, or how many there were; 0 where that means nothing.
	Attempt int32
	Parent  int32 // place of the span that this one is within, -1 for the run
	Members int32 // of a group

	// Start is when it was scheduled, Run when it began to run (0: it has not), End when it
	// ended (0: it goes on), in nanoseconds of Unix time.
	Start, Run, End int64
	Name            string
	Error           string
	Event, Last     int64 // the first and the last event that tell of it
}

// Waited is how long it waited before it ran; Ran how long it ran, until now if it goes on.
// A clock that went backwards gives 0.
func (s *Span) Waited(now time.Time) time.Duration {
	until := s.Run
	if until == 0 {
		until = s.until(now)
	}
	return time.Duration(max(until-s.Start, 0))
}

// Ran is how long it ran, so far if it goes on; 0 where it has not begun.
func (s *Span) Ran(now time.Time) time.Duration {
	if s.Run == 0 {
		return 0
	}
	return time.Duration(max(s.until(now)-s.Run, 0))
}

func (s *Span) until(now time.Time) int64 {
	if s.End == 0 {
		return now.UnixNano()
	}
	return s.End
}

// PendingWork is an activity under way, of which a history does not tell the attempts.
type PendingWork struct {
	ActivityID string
	Type       string
	State      SpanState // scheduled, running or retrying
	Attempt    int32
	Scheduled  time.Time
	Started    time.Time // of this attempt, zero before it
	Ended      time.Time // of the attempt before, zero where there was none
	Next       time.Time // of the attempt to come, zero where it is under way
	Error      string    // of the attempt before
}

// Timeline is the spans of a run as a tree, each followed by those within it: phase,
// activity, attempt, tool call; then children, timers, updates, signals, markers and
// workflow tasks under a heading each. The first is the run. pending is what a server
// says of activities under way. A log without events has no spans.
func Timeline(l *EventLog, pending []PendingWork) []Span {
	if l.Len() == 0 {
		return nil
	}
	b := newSpanBuilder(l)
	for i := range l.Len() {
		b.event(l.Row(i))
	}
	b.pending(pending)
	return b.tree()
}

// spanBuilder goes through the events once, the oldest first.
type spanBuilder struct {
	log    *EventLog
	spans  []Span
	open   map[int64]int32 // by root event
	groups map[SpanKind]int32
	phase  int32 // the newest, -1 for none
	skills int32 // the newest skills session, -1 for none
	calls  map[callKey]int32
	tries  map[int32]int32 // the last attempt of an activity that was tried again
}

const noSpan = int32(-1)

func newSpanBuilder(l *EventLog) *spanBuilder {
	b := &spanBuilder{log: l, open: map[int64]int32{}, groups: map[SpanKind]int32{}, phase: noSpan,
		skills: noSpan, calls: map[callKey]int32{}, tries: map[int32]int32{}}
	e := l.Row(0)
	b.add(Span{Kind: SpanRun, State: SpanRunning, Start: e.Nanos, Run: e.Nanos, Event: e.ID, Cut: e.ID != 1, Parent: noSpan, Name: e.Title})
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
	case EventTask, EventActivity, EventTimer, EventChild, EventNexus:
		b.work(e)
	case EventTool:
		b.point(SpanSignal, e)
		b.told(e)
	case EventSignal:
		b.point(SpanSignal, e)
	case EventUpdate:
		b.update(e)
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
		b.point(SpanSignal, e)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_PAUSED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UNPAUSED:
		b.point(SpanMarker, e)
	default:
		if cluster.Closing(e.Type) {
			run.End, run.State, run.Error = e.Nanos, endOf(e), e.Message
			if !run.State.Bad() {
				run.Error = ""
			}
		}
	}
}

// endOf is the state that an event leaves its span in.
func endOf(e *Event) SpanState {
	name := e.Name()
	for _, c := range []struct {
		ending string
		state  SpanState
	}{{"ContinuedAsNew", SpanContinued}, {"Completed", SpanDone}, {"Fired", SpanDone}, {"Failed", SpanFailed},
		{"TimedOut", SpanTimedOut}, {"Canceled", SpanCancelled}, {"Terminated", SpanTerminated}, {"Rejected", SpanRefused}} {
		if len(name) >= len(c.ending) && name[len(name)-len(c.ending):] == c.ending {
			return c.state
		}
	}
	return SpanRunning
}

var spanKinds = map[EventKind]SpanKind{EventTask: SpanTask, EventActivity: SpanActivity, EventTimer: SpanTimer,
	EventChild: SpanChild, EventNexus: SpanNexus}

// work is an event of something that is scheduled, runs and ends.
func (b *spanBuilder) work(e *Event) {
	at, ok := b.open[e.Root]
	if !ok {
		at = b.begin(e)
		b.open[e.Root] = at
		if e.ID == e.Root {
			return
		}
	}
	s := &b.spans[at]
	s.Last = e.ID
	state := endOf(e)
	switch {
	case state != SpanRunning:
		b.end(at, e, state)
	case e.Type == enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED, e.Type == enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED,
		e.Type == enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED, e.Type == enumspb.EVENT_TYPE_NEXUS_OPERATION_STARTED:
		s.Run, s.State = e.Nanos, SpanRunning
		if s.Kind == SpanActivity {
			b.attempts(at, e)
		}
	}
}

// begin makes the span of something that an event is the first to tell of.
func (b *spanBuilder) begin(e *Event) int32 {
	s := Span{Kind: spanKinds[e.Kind], State: SpanScheduled, Start: e.Nanos, Event: e.ID, Name: b.log.Title(e), Cut: e.ID != e.Root}
	if s.Kind == SpanTimer {
		s.State, s.Run = SpanRunning, e.Nanos
		if e.Message != "" {
			s.Name += " " + e.Message
		}
	}
	if s.Kind == SpanChild && e.Message != "" {
		s.Name = e.Message
	}
	if s.Kind != SpanActivity {
		s.Parent = b.group(s.Kind, e)
		return b.add(s)
	}
	step, ok := ace.StepOf(s.Name)
	if ok {
		s.Parent = b.enter(step, e)
	}
	at := b.add(s)
	if step == ace.PhaseSkills {
		b.skills = at
	}
	return at
}

// enter is the span of a phase: the newest one, if it is of that phase, else a new one.
func (b *spanBuilder) enter(step ace.Phase, e *Event) int32 {
	if b.phase != noSpan && b.spans[b.phase].Name == string(step) {
		p := &b.spans[b.phase]
		p.End, p.State = 0, SpanRunning
		return b.phase
	}
	b.phase = b.add(Span{Kind: SpanPhase, State: SpanRunning, Start: e.Nanos, Run: e.Nanos, Event: e.ID, Name: string(step)})
	return b.phase
}

func (b *spanBuilder) group(kind SpanKind, e *Event) int32 {
	at, ok := b.groups[kind]
	if !ok {
		at = b.add(Span{Kind: SpanGroup, Start: e.Nanos, Run: e.Nanos, Event: e.ID, Name: groupNames[kind]})
		b.groups[kind] = at
	}
	g := &b.spans[at]
	g.Members++
	g.Last = e.ID
	return at
}

var groupNames = map[SpanKind]string{SpanTask: "workflow tasks", SpanTimer: "timers", SpanChild: "children", SpanNexus: "nexus operations",
	SpanUpdate: "updates", SpanSignal: "signals", SpanMarker: "markers"}

// end closes a span, and what it is part of as far as that ends with it.
func (b *spanBuilder) end(at int32, e *Event, state SpanState) {
	s := &b.spans[at]
	s.End, s.State = e.Nanos, state
	if e.Error {
		s.Error = e.Message
	}
	if s.Kind == SpanTask && state == SpanFailed && !e.Error {
		s.State = SpanDone // where the run was reset
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

// attempts splits an activity that was tried more than once. Its history has only the
// last attempt and how the one before failed.
func (b *spanBuilder) attempts(at int32, e *Event) {
	s := &b.spans[at]
	if s.Attempt = e.Attempt; e.Attempt < 2 {
		return
	}
	_, said, _ := strings.Cut(e.Message, "; before: ")
	before := Span{Kind: SpanAttempt, State: SpanFailed, Parent: at, Start: s.Start, Run: s.Start, End: e.Nanos, Attempt: e.Attempt - 1,
		Name: attemptsName(e.Attempt - 1), Error: said, Event: e.ID}
	b.add(before)
	b.tries[at] = b.add(Span{Kind: SpanAttempt, State: SpanRunning, Parent: at, Start: e.Nanos, Run: e.Nanos, Attempt: e.Attempt,
		Name: fmt.Sprintf("attempt %d", e.Attempt), Event: e.ID})
}

func attemptsName(n int32) string {
	if n == 1 {
		return "attempt 1"
	}
	return fmt.Sprintf("attempts 1-%d", n)
}

func (b *spanBuilder) point(kind SpanKind, e *Event) {
	s := Span{Kind: kind, Point: true, Start: e.Nanos, Run: e.Nanos, End: e.Nanos, Event: e.ID, Name: b.log.Title(e)}
	switch {
	case e.Kind == EventRun:
		s.Name = e.Name()
	case s.Name == "":
		s.Name = e.Name()
		if e.Message != "" && e.Kind == EventAttributes {
			s.Name = e.Message
		}
	case e.Kind == EventTool:
		s.Name += " " + e.Message
	}
	if e.Error {
		s.State, s.Error = SpanFailed, e.Message
	}
	s.Parent = b.group(kind, e)
	b.add(s)
}

func (b *spanBuilder) update(e *Event) {
	if at, ok := b.open[e.Root]; ok && e.Root != e.ID {
		b.end(at, e, endOf(e))
		b.spans[at].Last = e.ID
		return
	}
	if e.Type != enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED {
		b.point(SpanUpdate, e)
		return
	}
	name := e.Title
	if e.Message != "" {
		name += " " + cluster.Cut(e.Message, 80)
	}
	b.open[e.Root] = b.add(Span{Kind: SpanUpdate, State: SpanRunning, Start: e.Nanos, Run: e.Nanos, Event: e.ID, Name: name,
		Parent: b.group(SpanUpdate, e)})
}
