package replay

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/temporal/history"
)

// recorded is a command in a history and the event that it led to.
type recorded struct {
	Command
	event *historypb.HistoryEvent
}

// commandOf returns the command that led to an event and the ID of its workflow task. It
// returns false for events without a command, and for commands that a replay does not
// compare: version markers, which may be removed from the code, and cancellations, which
// follow from the context.
func commandOf(e *historypb.HistoryEvent) (c Command, task int64, compared bool) {
	attributes := history.Attributes(e)
	decided, ok := attributes.(interface{ GetWorkflowTaskCompletedEventId() int64 })
	if !ok {
		return Command{}, 0, false
	}
	compared = true
	switch a := attributes.(type) {
	case *historypb.ActivityTaskScheduledEventAttributes:
		c = Command{kindActivity, a.GetActivityType().GetName(), a.GetActivityId(), digest(a.GetInput())}
	case *historypb.TimerStartedEventAttributes:
		c = Command{Kind: kindTimer, ID: a.GetTimerId(),
			Detail: a.GetStartToFireTimeout().AsDuration().String()}
	case *historypb.StartChildWorkflowExecutionInitiatedEventAttributes:
		c = Command{kindChild, a.GetWorkflowType().GetName(), a.GetWorkflowId(), digest(a.GetInput())}
	case *historypb.SignalExternalWorkflowExecutionInitiatedEventAttributes:
		c = Command{kindSignal, a.GetSignalName(), a.GetWorkflowExecution().GetWorkflowId(),
			digest(a.GetInput())}
	case *historypb.RequestCancelExternalWorkflowExecutionInitiatedEventAttributes:
		c = Command{Kind: kindCancel, ID: a.GetWorkflowExecution().GetWorkflowId()}
	case *historypb.MarkerRecordedEventAttributes:
		m := history.MarkerOf(a)
		c = Command{Kind: kindMarker, Name: m.Name}
		if m.Name == history.MarkerLocalActivity {
			c = Command{Kind: kindLocal, Name: m.Local.ActivityType}
		}
		compared = m.Name != history.MarkerVersion && m.Name != history.MarkerMutable
	case *historypb.UpsertWorkflowSearchAttributesEventAttributes:
		c = Command{Kind: kindAttrs}
		_, version := a.GetSearchAttributes().GetIndexedFields()["TemporalChangeVersion"]
		compared = !version
	case *historypb.WorkflowPropertiesModifiedEventAttributes:
		c = Command{Kind: kindMemo}
	case *historypb.NexusOperationScheduledEventAttributes:
		c = Command{Kind: kindNexus, Name: a.GetService() + "." + a.GetOperation()}
	case *historypb.WorkflowExecutionCompletedEventAttributes:
		c = Command{Kind: kindComplete, Detail: digest(a.GetResult())}
	case *historypb.WorkflowExecutionFailedEventAttributes:
		c = Command{Kind: kindFail, Detail: a.GetFailure().GetMessage()}
	case *historypb.WorkflowExecutionCanceledEventAttributes:
		c = Command{Kind: kindCanceled}
	case *historypb.WorkflowExecutionContinuedAsNewEventAttributes:
		c = Command{Kind: kindNew, Name: a.GetWorkflowType().GetName()}
	default:
		return Command{}, 0, false
	}
	return c, decided.GetWorkflowTaskCompletedEventId(), compared
}

// acceptedUpdate returns the command for an accepted update. Its event does not name its
// workflow task, which is the last one completed.
func acceptedUpdate(e *historypb.HistoryEvent) (Command, bool) {
	a := e.GetWorkflowExecutionUpdateAcceptedEventAttributes()
	name := a.GetAcceptedRequest().GetInput().GetName()
	return Command{Kind: kindUpdate, Name: name, ID: a.GetProtocolInstanceId()}, a != nil
}

// digest returns the size and the start of the hash of payloads. It ignores their metadata,
// which may change with the SDK version.
func digest(p *commonpb.Payloads) string {
	if len(p.GetPayloads()) == 0 {
		return ""
	}
	h, n := sha256.New(), 0
	for _, payload := range p.GetPayloads() {
		fmt.Fprintf(h, "%d:", len(payload.GetData()))
		h.Write(payload.GetData())
		n += len(payload.GetData())
	}
	return strconv.Itoa(n) + " bytes, " + hex.EncodeToString(h.Sum(nil)[:4])
}

type task struct {
	started   int64
	completed *historypb.HistoryEvent
	history   []recorded
	next      *historypb.HistoryEvent // first event after its commands, nil at the end
}

func tasksOf(events []*historypb.HistoryEvent) []*task {
	var all []*task
	byID := map[int64]*task{}
	for _, e := range events {
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			t := &task{started: e.GetWorkflowTaskCompletedEventAttributes().GetStartedEventId(), completed: e}
			all = append(all, t)
			byID[e.GetEventId()] = t
			continue
		}
		if c, ok := acceptedUpdate(e); ok && len(all) > 0 {
			last := all[len(all)-1]
			last.history = append(last.history, recorded{c, e})
			continue
		}
		c, id, compared := commandOf(e)
		if t := byID[id]; t != nil && compared {
			t.history = append(t.history, recorded{c, e})
			continue
		}
		if n := len(all); n > 0 && all[n-1].next == nil && id == 0 {
			all[n-1].next = e
		}
	}
	return all
}

// compare returns the first divergence in the tasks up to the one started at event lastStarted.
func compare(tasks []*task, actual map[int64][]Command, lastStarted int64) *Divergence {
	for _, t := range tasks {
		if t.started > lastStarted {
			return nil
		}
		if d := t.compare(actual[t.started]); d != nil {
			return d
		}
	}
	return nil
}

func (t *task) compare(actual []Command) *Divergence {
	for i, want := range t.history {
		if i >= len(actual) {
			return t.diverge(KindMissing, want.event, &want.Command, nil)
		}
		if !actual[i].matches(want.Command) {
			return t.diverge(t.mismatch(i, actual), want.event, &want.Command, &actual[i])
		}
	}
	if len(actual) == len(t.history) {
		return nil
	}
	return t.diverge(KindAdded, cmp.Or(t.next, t.completed), nil, &actual[len(t.history)])
}

// mismatch classifies the difference at command i. The command is missing if the code does the next command
// of the history instead. A command was added if the code does the history's command next. If both apply, two
// commands were swapped.
func (t *task) mismatch(i int, actual []Command) Kind {
	want, got := t.history[i], actual[i]
	rest, ours := t.history[i+1:], actual[i+1:]
	less := len(rest) > 0 && got.matches(rest[0].Command)
	more := len(ours) > 0 && ours[0].matches(want.Command)
	switch {
	case less && !more && len(actual) < len(t.history):
		return KindMissing
	case more && !less && len(actual) > len(t.history):
		return KindAdded
	case isClosing(got.Kind) && isClosing(want.Kind):
		return KindResult
	}
	return KindOther
}

func (t *task) diverge(kind Kind, e *historypb.HistoryEvent, expected, actual *Command) *Divergence {
	a := t.completed.GetWorkflowTaskCompletedEventAttributes()
	return &Divergence{
		Kind: kind, EventID: e.GetEventId(), EventType: e.GetEventType().String(),
		Task:     t.completed.GetEventId(),
		Expected: expected, Actual: actual,
		Recorded: cmp.Or(a.GetWorkerVersion().GetBuildId(), a.GetBinaryChecksum()),
	}
}

// drift returns the first decision that differs only in duration, input or result.
func drift(tasks []*task, actual map[int64][]Command) *Divergence {
	for _, t := range tasks {
		for i, got := range actual[t.started] {
			if i >= len(t.history) {
				break
			}
			want := t.history[i]
			switch want.Kind {
			case kindTimer, kindActivity, kindChild, kindSignal, kindComplete:
				if got.Detail != want.Detail && got.Detail != "" && want.Detail != "" {
					return t.diverge(KindChanged, want.event, &want.Command, &got)
				}
			}
		}
	}
	return nil
}
