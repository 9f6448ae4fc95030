package workflow

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/kind"
	"acescope/engine/temporal/history"
)

// group is what an operation is.
type group int

// Groups of operations, in the order of their sections.
const (
	activities group = iota
	localActivities
	children
	nexusOperations
	signals
	updates
	signalsSent
	cancelsSent
	timers
	versions
	sideEffects
	markers
	groupCount
)

// groups are the titles of the sections and the first parts of the paths of values.
var groups = [groupCount]struct{ title, path string }{
	{"Activities", "activities"}, {"Local activities", "local_activities"}, {"Child workflows", "children"},
	{"Nexus operations", "nexus_operations"}, {"Signals received", "signals"}, {"Updates", "updates"},
	{"Signals sent", "signals_sent"}, {"Cancel requests sent", "cancels_sent"}, {"Timers", "timers"},
	{"Versions", "versions"}, {"Side effects", "side_effects"}, {"Markers", "markers"},
}

// operation is work that a workflow started, or a message that it received. It is not changed in place.
type operation struct {
	group         group
	name          string
	event         int64 // the first event
	newest        int64 // the newest event
	status        string
	began         time.Time // scheduled, or received
	started, over time.Time // zero before
	input, result *commonpb.Payloads
	failure       *ace.Failure // why it failed
	attempt       int32
	lastFailure   string // of the attempt before
	worker        string
	summary       string
	note          string
	run           kind.Run // a child or another workflow
}

// States of operations, besides those of an end.
const (
	scheduled = "scheduled"
	running   = "running"
	received  = "received"
)

var endings = map[history.EndStatus]string{history.EndCompleted: string(ace.Completed),
	history.EndFailed: string(ace.Failed), history.EndTimedOut: string(ace.TimedOut),
	history.EndCanceled: string(ace.Canceled), history.EndTerminated: string(ace.Terminated)}

// label names an open operation and its state in one line.
func (o *operation) label() string {
	s := o.name + " " + o.status
	if o.attempt > 1 {
		s += ", attempt " + strconv.Itoa(int(o.attempt))
	}
	return s
}

// begin adds the operation that an event begins or reports whole, or changes the one that it is about. It
// reports whether it knows the event.
func (f *fold) begin(e *historypb.HistoryEvent) bool {
	switch a := history.Attributes(e).(type) {
	case *historypb.ActivityTaskScheduledEventAttributes:
		name, ok := history.OperationName(e)
		if !ok {
			name = a.GetActivityType().GetName()
		}
		f.add(e, operation{group: activities, name: name, status: scheduled, input: a.GetInput()})
	case *historypb.ActivityTaskStartedEventAttributes:
		f.change(e, a.GetScheduledEventId(), func(o *operation) {
			o.status, o.started, o.attempt, o.worker = running, timeOf(e), a.GetAttempt(), a.GetIdentity()
			if last := a.GetLastFailure(); last != nil {
				o.lastFailure = history.FailureOf(last).Message
			}
		})
	case *historypb.ActivityTaskCancelRequestedEventAttributes:
		f.note(e, a.GetScheduledEventId(), "cancel requested")
	case *historypb.StartChildWorkflowExecutionInitiatedEventAttributes:
		f.add(e, operation{group: children, name: a.GetWorkflowType().GetName(), status: scheduled,
			input: a.GetInput(), run: kind.Run{WorkflowID: a.GetWorkflowId()}})
	case *historypb.ChildWorkflowExecutionStartedEventAttributes:
		f.change(e, a.GetInitiatedEventId(), func(o *operation) {
			o.status, o.started, o.run = running, timeOf(e), kind.RunOf(a.GetWorkflowExecution())
		})
	case *historypb.NexusOperationScheduledEventAttributes:
		f.add(e, operation{group: nexusOperations, name: a.GetService() + "/" + a.GetOperation(),
			status: scheduled, input: history.PayloadList(a.GetInput()), note: "endpoint " + a.GetEndpoint()})
	case *historypb.NexusOperationStartedEventAttributes:
		f.change(e, a.GetScheduledEventId(), func(o *operation) { o.status, o.started = running, timeOf(e) })
	case *historypb.NexusOperationCancelRequestedEventAttributes:
		f.note(e, a.GetScheduledEventId(), "cancel requested")
	case *historypb.NexusOperationCancelRequestCompletedEventAttributes:
		f.note(e, a.GetScheduledEventId(), "cancel request delivered")
	case *historypb.NexusOperationCancelRequestFailedEventAttributes:
		f.note(e, a.GetScheduledEventId(),
			"cancel request failed: "+history.FailureOf(a.GetFailure()).Message)
	case *historypb.TimerStartedEventAttributes:
		f.add(e, operation{group: timers, name: cmp.Or(text(e.GetUserMetadata().GetSummary()), "timer"),
			status: running, note: a.GetStartToFireTimeout().AsDuration().String()})
	case *historypb.WorkflowExecutionSignaledEventAttributes:
		f.report(e, operation{group: signals, name: a.GetSignalName(), status: received, input: a.GetInput()})
	case *historypb.SignalExternalWorkflowExecutionInitiatedEventAttributes:
		f.add(e, operation{group: signalsSent, name: a.GetSignalName(), status: scheduled,
			input: a.GetInput(),
			run:   kind.RunOf(a.GetWorkflowExecution())})
	case *historypb.RequestCancelExternalWorkflowExecutionInitiatedEventAttributes:
		f.add(e, operation{group: cancelsSent, name: a.GetWorkflowExecution().GetWorkflowId(),
			status: scheduled, run: kind.RunOf(a.GetWorkflowExecution())})
	case *historypb.WorkflowExecutionUpdateAdmittedEventAttributes:
		in := a.GetRequest().GetInput()
		f.add(e, operation{group: updates, name: in.GetName(), status: scheduled, input: in.GetArgs()})
	case *historypb.WorkflowExecutionUpdateAcceptedEventAttributes:
		if root := history.RootOf(e); root != 0 { // a reset admitted the request again
			f.change(e, root, func(o *operation) { o.status = running })
			f.open[e.GetEventId()] = f.open[root]
			delete(f.open, root)
			break
		}
		in := a.GetAcceptedRequest().GetInput()
		f.add(e, operation{group: updates, name: cmp.Or(in.GetName(), a.GetProtocolInstanceId()),
			status: running, input: in.GetArgs()})
	case *historypb.MarkerRecordedEventAttributes:
		f.marker(e, a)
	default:
		return false
	}
	return true
}

func (f *fold) marker(e *historypb.HistoryEvent, a *historypb.MarkerRecordedEventAttributes) {
	m := history.MarkerOf(a)
	o := operation{group: markers, name: m.Name, status: running}
	switch m.Name {
	case history.MarkerLocalActivity:
		o.group, o.name, o.attempt = localActivities, cmp.Or(m.Local.ActivityType, m.Name), m.Local.Attempt
	case history.MarkerVersion:
		o.group, o.name = versions, cmp.Or(m.Change, m.Name)
	case history.MarkerSideEffect, history.MarkerMutable:
		o.group = sideEffects
	}
	if m.Local.Retried {
		o.status, o.note = string(ace.Failed), "to be retried"
		o.failure = new(history.FailureOf(m.Failure))
		f.report(e, o)
		return
	}
	f.add(e, o)
}

// add adds an operation that an event begins.
func (f *fold) add(e *historypb.HistoryEvent, o operation) {
	f.report(e, o)
	f.open[f.last.event] = f.last
}

// report adds an operation that has no end of its own.
func (f *fold) report(e *historypb.HistoryEvent, o operation) {
	o.event, o.newest, o.began = e.GetEventId(), e.GetEventId(), timeOf(e)
	o.summary = text(e.GetUserMetadata().GetSummary())
	f.last = &o
	f.operations = append(f.operations, &o)
	if over := len(f.operations) - maxKept; over > 0 {
		f.operations = slices.Delete(f.operations, 0, over)
		f.dropped += over
	}
	f.counts[count{o.group, o.name, o.status}]++
}

// change replaces the open operation that began with an event.
func (f *fold) change(e *historypb.HistoryEvent, began int64, fn func(*operation)) {
	was := f.open[began]
	if was == nil {
		return
	}
	now := *was
	fn(&now)
	now.newest = e.GetEventId()
	f.open[began], f.last = &now, &now
	if i := slices.Index(f.operations, was); i >= 0 {
		f.operations[i] = &now
	}
	if now.status != was.status {
		old := count{was.group, was.name, was.status}
		if f.counts[old]--; f.counts[old] == 0 {
			delete(f.counts, old)
		}
		f.counts[count{now.group, now.name, now.status}]++
	}
}

func (f *fold) note(e *historypb.HistoryEvent, began int64, note string) {
	f.change(e, began, func(o *operation) { o.note = note })
}

// end closes the operation that an event ends.
func (f *fold) end(e *historypb.HistoryEvent, end history.Ending) {
	f.change(e, end.Started, func(o *operation) {
		o.status, o.over, o.result = endings[end.Status], timeOf(e), end.Result
		switch end.Status {
		case history.EndFailed, history.EndTimedOut, history.EndTerminated:
			o.failure = new(end.Reason())
		}
	})
	delete(f.open, end.Started)
}
