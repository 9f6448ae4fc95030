package histories

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unique"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	updatepb "go.temporal.io/api/update/v1"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/flow"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
)

// Bounds, in bytes, of the texts of a row. An opened event shows them completely.
const (
	maxTitle      = 200
	maxRowMessage = 400
)

// Interfaces for fields that several event types share. They also name events whose types have no case below.
type (
	hasActivity interface{ GetActivityType() *commonpb.ActivityType }
	hasWorkflow interface{ GetWorkflowType() *commonpb.WorkflowType }
	hasSignal   interface{ GetSignalName() string }
	hasTimer    interface{ GetTimerId() string }
	hasUpdate   interface{ GetAcceptedRequest() *updatepb.Request }
	hasAdmitted interface{ GetRequest() *updatepb.Request }
	hasNexus    interface {
		GetService() string
		GetOperation() string
	}

	hasAttempt   interface{ GetAttempt() int32 }
	hasLast      interface{ GetLastFailure() *failurepb.Failure }
	hasExecution interface {
		GetWorkflowExecution() *commonpb.WorkflowExecution
	}
)

// rowOf summarizes an event. Repeated names share one string.
func rowOf(e *historypb.HistoryEvent) Event {
	r := Event{ID: e.GetEventId(), Type: e.GetEventType(),
		Kind: kindOfEvent(e.GetEventType()), Error: history.IsError(e)}
	if t := e.GetEventTime(); t != nil {
		r.Nanos = t.AsTime().UnixNano()
	}
	a := history.Attributes(e)
	r.Root = cmp.Or(max(history.RootOf(e), 0), r.ID)
	if end, ok := history.EndingOf(e); !ok || end.Started == r.Root {
		r.End = end.Status
	}
	name, _ := history.OperationName(e)
	r.Title = intern(cmp.Or(name, timerSummary(e), titleOf(a)))
	if t, ok := a.(hasAttempt); ok {
		r.Attempt = t.GetAttempt()
	}
	addTools(e, &r)
	r.retry = retryOf(e)
	if r.Message == "" {
		r.Message = ace.Cut(messageOf(e, a), maxRowMessage)
	}
	return r
}

// timerSummary returns what the workflow says that a timer is for, or "".
func timerSummary(e *historypb.HistoryEvent) (summary string) {
	if e.GetTimerStartedEventAttributes() != nil {
		_ = json.Unmarshal(history.PayloadJSON(e.GetUserMetadata().GetSummary()), &summary)
	}
	return summary
}

func titleOf(a any) string {
	switch t := a.(type) {
	case *historypb.ActivityTaskScheduledEventAttributes:
		return activityLabel(t.GetActivityType().GetName(), t.GetInput())
	case *historypb.ActivityTaskCompletedEventAttributes:
		return resultLabel(t.GetResult())
	case hasActivity:
		return t.GetActivityType().GetName()
	case hasSignal:
		return t.GetSignalName()
	case hasTimer:
		return t.GetTimerId()
	case *historypb.MarkerRecordedEventAttributes:
		return MarkerTitle(t)
	case hasUpdate:
		return t.GetAcceptedRequest().GetInput().GetName()
	case hasAdmitted:
		return t.GetRequest().GetInput().GetName()
	case *historypb.RequestCancelExternalWorkflowExecutionInitiatedEventAttributes:
		return "cancel request to " + t.GetWorkflowExecution().GetWorkflowId()
	case hasNexus:
		return strings.Trim(t.GetService()+"/"+t.GetOperation(), "/")
	case hasWorkflow:
		return t.GetWorkflowType().GetName()
	}
	return ""
}

func intern(s string) string { return unique.Make(ace.Cut(s, maxTitle)).Value() }

func kindOfEvent(t enumspb.EventType) EventKind {
	name := t.String()
	for _, k := range []struct {
		part string
		kind EventKind
	}{
		{"WorkflowTask", EventTask}, {"ActivityTask", EventActivity}, {"ChildWorkflow", EventChild},
		{"Timer", EventTimer},
		{"Signal", EventSignal}, {"Update", EventUpdate}, {"Nexus", EventNexus}, {"Marker", EventMarker},
		{"SearchAttributes", EventAttributes}, {"PropertiesModified", EventAttributes},
		{"OptionsUpdated", EventAttributes},
		{"External", EventOther}, {"WorkflowExecution", EventRun},
	} {
		if strings.Contains(name, k.part) {
			if k.kind == EventUpdate && strings.Contains(name, "Options") {
				continue
			}
			return k.kind
		}
	}
	return EventOther
}

// messageOf returns further details of an event in one line.
func messageOf(e *historypb.HistoryEvent, a any) string {
	switch t := a.(type) {
	case *historypb.WorkflowExecutionStartedEventAttributes:
		return startedMessage(t)
	case *historypb.WorkflowExecutionContinuedAsNewEventAttributes:
		return "continues as run " + t.GetNewExecutionRunId()
	case *historypb.WorkflowExecutionTerminatedEventAttributes:
		return t.GetReason()
	case *historypb.WorkflowTaskFailedEventAttributes:
		if history.IsReset(e) {
			return "reset from run " + t.GetBaseRunId()
		}
		return failureText(history.TaskFailure(t))
	case *historypb.WorkflowExecutionUpdateAcceptedEventAttributes:
		in := t.GetAcceptedRequest().GetInput()
		return strings.Join(strings.Fields(session.UpdateText(in.GetName(), in.GetArgs())), " ")
	case *historypb.TimerStartedEventAttributes:
		return "for " + t.GetStartToFireTimeout().AsDuration().Round(time.Microsecond).String()
	case *historypb.WorkflowExecutionSignaledEventAttributes:
		return decisionText(t)
	case *historypb.StartChildWorkflowExecutionInitiatedEventAttributes:
		return t.GetWorkflowId()
	case *historypb.StartChildWorkflowExecutionFailedEventAttributes:
		return cluster.Join(t.GetWorkflowId(), t.GetCause().String())
	case *historypb.MarkerRecordedEventAttributes:
		if m := history.MarkerOf(t); m.Local.Retried {
			return fmt.Sprintf("attempt %d, to be retried: %s", m.Local.Attempt, failureText(m.Failure))
		}
	case *historypb.UpsertWorkflowSearchAttributesEventAttributes:
		return fieldsText(t.GetSearchAttributes().GetIndexedFields())
	case *historypb.WorkflowPropertiesModifiedEventAttributes:
		return fieldsText(t.GetUpsertedMemo().GetFields())
	case nil:
		return "unknown event type"
	}
	_, f := history.Outcome(e)
	if t, ok := a.(hasExecution); ok && f.GetFailureInfo() == nil { // no failure, or its cause alone
		return cluster.Join(t.GetWorkflowExecution().GetWorkflowId(), f.GetMessage())
	}
	if f != nil {
		return failureText(f)
	}
	if t, ok := a.(hasLast); ok && t.GetLastFailure() != nil {
		n, _ := a.(hasAttempt)
		return fmt.Sprintf("attempt %d after %s", n.GetAttempt(), failureText(t.GetLastFailure()))
	}
	return ""
}

// decisionText describes the decision about a step of a flow, or returns "".
func decisionText(t *historypb.WorkflowExecutionSignaledEventAttributes) string {
	var d flow.Decision
	data, ok := history.Values(t.GetInput())
	if t.GetSignalName() != flow.SignalDecide || !ok || json.Unmarshal(data, &d) != nil || d.Step == "" {
		return ""
	}
	verb := "rejects "
	if d.Approved {
		verb = "approves "
	}
	text := verb + d.Step
	if d.By != "" {
		text = d.By + " " + text
	}
	return strings.TrimSuffix(text+": "+d.Comment, ": ")
}

func startedMessage(t *historypb.WorkflowExecutionStartedEventAttributes) string {
	var parts []string
	if id := t.GetContinuedExecutionRunId(); id != "" {
		parts = append(parts, "continued from run "+id)
	}
	if n := t.GetAttempt(); n > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", n))
	}
	if p := t.GetParentWorkflowExecution(); p != nil {
		parts = append(parts, "child of "+p.GetWorkflowId())
	}
	return strings.Join(parts, ", ")
}

func failureText(f *failurepb.Failure) string {
	if f == nil {
		return ""
	}
	d := history.FailureOf(f)
	return cluster.Join(d.Type, d.Message)
}

// fieldsText formats fields as "Name=value", sorted by name.
func fieldsText(fields map[string]*commonpb.Payload) string {
	parts := make([]string, 0, len(fields))
	for name, p := range fields {
		parts = append(parts, name+"="+string(bytes.TrimSpace(history.PayloadJSON(p))))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// callReport is the report of an event on one tool call.
type callReport struct {
	id, name, err string
	at            int64 // nanoseconds, 0 if unknown
	duration      time.Duration
	kind          ace.EventKind // "" for an invocation in a session's result
	refused       bool
	failed        bool
}

// addTools reads the tool calls in a signal or in a session's result.
func addTools(e *historypb.HistoryEvent, r *Event) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		a := e.GetWorkflowExecutionSignaledEventAttributes()
		if a.GetSignalName() != ace.SignalToolEvent {
			return
		}
		r.Kind = EventTool
		events, err := ace.DecodeToolEvents(history.PayloadJSON(cluster.First(a.GetInput().GetPayloads())))
		if err != nil {
			r.Message = "cannot be read"
			return
		}
		for _, t := range events {
			r.calls = append(r.calls, reportOf(t))
		}
		r.Message = ace.Cut(callsText(r.calls), maxRowMessage)
		r.Error = slices.ContainsFunc(r.calls, func(m callReport) bool { return m.failed || m.refused })
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		data := history.PayloadJSON(
			cluster.First(e.GetActivityTaskCompletedEventAttributes().GetResult().GetPayloads()))
		if !bytes.Contains(data, []byte(`"invocations"`)) {
			return
		}
		var result struct {
			Invocations []struct {
				ID, Name, Error string
				Accepted, OK    bool
				At              time.Time
				DurationMS      float64 `json:"duration_ms"`
			}
		}
		if json.Unmarshal(data, &result) != nil {
			return
		}
		for _, i := range result.Invocations[:min(len(result.Invocations), ace.MaxInvocations)] {
			r.calls = append(r.calls, callReport{id: i.ID, name: intern(i.Name), at: nanosOf(i.At),
				err:      ace.Cut(i.Error, maxRowMessage),
				duration: cluster.Milliseconds(i.DurationMS), refused: !i.Accepted, failed: i.Accepted &&
					!i.OK})
		}
	}
}

func reportOf(t ace.ToolEvent) callReport {
	m := callReport{
		id: cmp.Or(t.CallID, t.EventID), name: intern(t.Name), err: ace.Cut(t.Error, maxRowMessage),
		at: nanosOf(t.At), duration: cluster.Milliseconds(t.DurationMS), kind: t.Kind,
	}
	m.refused = t.Accepted != nil && !*t.Accepted
	m.failed = !m.refused && (t.OK != nil && !*t.OK)
	return m
}

func nanosOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// word returns the reported outcome or stage of a call.
func (m *callReport) word() string {
	switch {
	case m.refused:
		return "refused"
	case m.failed:
		return "failed"
	case m.kind == ace.KindToolResult:
		return "ok"
	case m.kind == ace.KindToolUse:
		return "began"
	}
	return string(m.kind)
}

// callsText formats the calls of a signal: "calculate ok, look_up failed".
func callsText(calls []callReport) string {
	var parts []string
	for _, m := range calls {
		parts = append(parts, strings.TrimSpace(m.name+" "+m.word()))
		if len(parts) == 8 && len(calls) > 8 {
			return strings.Join(parts, ", ") + fmt.Sprintf(" and %d more", len(calls)-8)
		}
	}
	return strings.Join(parts, ", ")
}

// MarkerTitle returns the type of a local activity, or the name of another marker and what changed.
func MarkerTitle(a *historypb.MarkerRecordedEventAttributes) string {
	m := history.MarkerOf(a)
	return cmp.Or(m.Local.ActivityType, strings.TrimSpace(m.Name+" "+m.Change))
}
