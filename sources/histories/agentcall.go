package histories

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strconv"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/kind"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/history"
	"acescope/engine/trace"
	"acescope/engine/trace/adapter"
	"acescope/sources/runs"
)

// activityLabel returns the type of an activity, or a label that distinguishes it from others of its type.
func activityLabel(activity string, input *commonpb.Payloads) string {
	if label, ok := session.ActivityLabel(activity, input); ok {
		return label
	}
	if label, ok := run.ActivityLabel(activity, input); ok {
		return label
	}
	if activity != ace.ActivityAgentCLI {
		return activity
	}
	var in ace.AgentCall
	_ = json.Unmarshal(history.JSON(input), &in) // an unreadable input has no label
	if in.Task != nil {
		return activity + " task " + strconv.Itoa(in.Task.Index+1)
	}
	if name := cmp.Or(in.ActivityName, in.SessionID); name != "" {
		return activity + " " + name
	}
	return activity
}

// agentResult returns the result of a call of an agent, or nil for other data.
func agentResult(p *commonpb.Payloads) *ace.AgentResult {
	data := history.JSON(p)
	var r ace.AgentResult
	if !bytes.Contains(data, []byte(`"exit_class"`)) || json.Unmarshal(data, &r) != nil || r.ExitClass == "" {
		return nil
	}
	return &r
}

// resultLabel returns the label of a completed call of an agent with the id of its task, or "".
func resultLabel(p *commonpb.Payloads) string {
	if r := agentResult(p); r != nil && r.TaskID != "" {
		return ace.ActivityAgentCLI + " " + r.TaskID
	}
	return ""
}

// AgentResultOf returns the result of the call of an agent that ends with an event, or nil.
func AgentResultOf(e *historypb.HistoryEvent) *ace.AgentResult {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		return agentResult(e.GetActivityTaskCompletedEventAttributes().GetResult())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		f := e.GetActivityTaskFailedEventAttributes().GetFailure()
		return agentResult(f.GetApplicationFailureInfo().GetDetails())
	}
	return nil
}

// agentUsage returns the usage of a call of an agent that ends with an event.
func agentUsage(e *historypb.HistoryEvent) (u ace.Usage) {
	if r := AgentResultOf(e); r != nil {
		u = r.Usage
	}
	return u
}

// maxTraceEvents bounds the events that [AddTrace] reads of a run.
const maxTraceEvents = 10_000

// maxSentence bounds the texts of a summary, in bytes.
const maxSentence = 160

// LacksTrace reports whether only the history of a run says what its agents did: acescope's workflows and
// those that set a summary have it in the memo.
func LacksTrace(r runs.Run) bool { return r.Summary == nil && runs.TypeOf(r.Type) == runs.OtherType }

// AddTrace reads from the history of a run what its agents did, and sets the run's trace and summary if it
// says anything of them. See [LacksTrace].
func AddTrace(ctx context.Context, c client.Client, r *runs.Run) error {
	var u ace.Usage // of coding agents that the run called
	var f adapter.Folder
	var last *historypb.HistoryEvent
	iter := c.GetWorkflowHistory(ctx, r.WorkflowID, r.RunID, false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for n := 0; n < maxTraceEvents && iter.HasNext(); n++ {
		e, err := iter.Next()
		if err != nil {
			return err
		}
		f.Apply(e)
		u = u.Add(agentUsage(e))
		last = e
	}
	t := f.Trace()
	u = u.Add(UsageOf(t.Sum))
	if u.Unpriced = u.Unpriced || u != (ace.Usage{}) && iter.HasNext(); t.Empty() && u == (ace.Usage{}) {
		return nil
	}
	r.Summary = &ace.Summary{Usage: u, Skills: t.Tools, SkillsOK: t.OK,
		Subject: ace.OneLine(t.Prompt(), maxSentence)}
	if _, closed := history.CloseStatus(last.GetEventType()); closed {
		result, failure := history.Outcome(last)
		if failure == nil {
			r.Summary.Answer = ace.OneLine(kind.Plain(history.JSON(result)), maxSentence)
		} else {
			r.Summary.Cause = ace.OneLine(history.FailureOf(failure).Message, maxSentence)
		}
	}
	if r.Model = cmp.Or(r.Model, t.Model); !t.Empty() {
		r.Trace = &t.Summary
	}
	return nil
}

// UsageOf returns the usage of requests to models. It lacks a price if it lacks a figure of any request.
func UsageOf(s trace.Sum) ace.Usage {
	return ace.Usage{InputTokens: s.Input + s.CacheWrite, CacheReadTokens: s.CacheRead,
		OutputTokens: s.Output, CostUSD: s.Cost, Unpriced: s.Unpriced > 0}
}
