package histories

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// words says in one line what an event did. It contains untrusted text.
func (l *EventLog) words(e *Event) string {
	if len(e.calls) > 0 && e.Kind == EventTool {
		return l.callWords(e.calls)
	}
	words := strings.TrimSpace(l.subject(e) + " " + verbOf(e))
	if took := l.took(e); took != "" {
		words += " after " + took
	}
	if e.Message != "" {
		words += ": " + e.Message
	}
	return words
}

// maxCallWords bounds the tool calls of one event that are described.
const maxCallWords = 8

// callWords describes reports of tool calls.
func (l *EventLog) callWords(calls []callReport) string {
	var parts []string
	for i := range calls[:min(len(calls), maxCallWords)] {
		m := &calls[i]
		words := strings.TrimSpace(l.callName(m) + " " + m.word())
		if m.duration > 0 {
			words += " after " + m.duration.String()
		}
		if m.err != "" {
			words += ": " + m.err
		}
		parts = append(parts, words)
	}
	if more := len(calls) - maxCallWords; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return "tool call " + strings.Join(parts, ", ")
}

// callName returns the name of a tool. Only the event that begins a call may have it.
func (l *EventLog) callName(m *callReport) string {
	if m.name != "" {
		return m.name
	}
	for i := range l.Spans {
		if s := &l.Spans[i]; s.Kind == SpanCall && s.Call == m.id {
			return s.Name
		}
	}
	return m.id
}

// subject returns what an event is about: a phase, an activity, the run.
func (l *EventLog) subject(e *Event) string {
	title := l.Title(e)
	switch e.Kind {
	case EventRun:
		return "the run"
	case EventTask:
		return "workflow task"
	case EventActivity:
		if phase, ok := ace.StepOf(title); ok {
			return string(phase)
		}
		return title
	case EventAttributes:
		if e.Type == enumspb.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED {
			return "memo"
		}
		return "search attributes"
	case EventOther:
		return cmp.Or(title, e.Name())
	}
	return cmp.Or(strings.TrimSpace(e.Kind.String()+" "+title), e.Name())
}

// verbs are the verbs for suffixes of event types. The first match applies.
var verbs = []struct{ ending, verb string }{
	{"Scheduled", "is scheduled"}, {"Initiated", "is scheduled"}, {"Started", "starts"},
	{"CancelRequestCompleted", "received the cancel request"},
	{"CancelRequestFailed", "did not receive the cancel request"}, {"Completed", "completed"},
	{"Fired", "fired"}, {"TimedOut", "timed out"},
	{"ExternalWorkflowExecutionCancelRequested", "was received"}, {"CancelRequested", "is asked to cancel"},
	{"Canceled", "was canceled"},
	{"Terminated", "was terminated"}, {"ContinuedAsNew", "continues as new"}, {"Failed", "failed"},
	{"Accepted", "was accepted"}, {"Admitted", "was admitted"}, {"Rejected", "was rejected"},
	{"Signaled", "was received"}, {"Recorded", "was recorded"},
}

func verbOf(e *Event) string {
	if e.Kind == EventAttributes {
		return "changed"
	}
	if e.End > history.EndCompleted && (e.Kind == EventUpdate || e.Kind == EventMarker) {
		return spanStates[e.End].String() // their types do not say it
	}
	for _, v := range verbs {
		if strings.HasSuffix(e.Name(), v.ending) {
			return v.verb
		}
	}
	return ""
}

// took returns how long the work that an event ends ran since its start, or "".
func (l *EventLog) took(e *Event) string {
	if e.Kind != EventActivity || e.Type == enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED || e.Root == e.ID {
		return ""
	}
	start := l.Event(l.Related(e.ID, -1))
	if start == nil {
		return ""
	}
	return max(time.Duration(e.Nanos-start.Nanos), 0).Round(100 * time.Microsecond).String()
}
