package replay

import (
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/temporal/history"
)

// goSDK is the name that workers of the Go SDK record.
const goSDK = "temporal-go"

// Origin names the code that decided a history, as far as the history records it.
type Origin struct {
	WorkflowType, TaskQueue string
	// SDK and Version are of the first worker that recorded them, or of the first one of another language. A
	// worker records them with its first workflow task in a run; old versions of the SDKs record neither.
	SDK, Version string
}

// OriginOf returns the origin of a history.
func OriginOf(events []*historypb.HistoryEvent) (o Origin) {
	for i, e := range events {
		if started := e.GetWorkflowExecutionStartedEventAttributes(); i == 0 && started != nil {
			o.WorkflowType = started.GetWorkflowType().GetName()
			o.TaskQueue = started.GetTaskQueue().GetName()
		}
		sdk := e.GetWorkflowTaskCompletedEventAttributes().GetSdkMetadata()
		if name := sdk.GetSdkName(); name != "" && (o.SDK == "" || name != goSDK) {
			o.SDK, o.Version = name, sdk.GetSdkVersion()
			if name != goSDK {
				return o
			}
		}
	}
	return o
}

// foreign returns "decided by" and the SDK if it is of another language, otherwise "". The Go SDK's replayer
// cannot judge such a history.
func (o Origin) foreign() string {
	if o.SDK == "" || o.SDK == goSDK {
		return ""
	}
	return "decided by " + o.Worker()
}

// Worker returns the name and the version of the SDK, "" if the history does not record them.
func (o Origin) Worker() string { return strings.TrimSpace(o.SDK + " " + o.Version) }

// Decides reports whether workers with the registered workflows decided a history.
func (v *Verifier) Decides(o Origin) bool {
	return v.Unknown(o.WorkflowType) == "" && o.foreign() == "" && (v.Queue == "" || o.TaskQueue == v.Queue)
}

// Describe returns a verdict with the IDs of a history and, if it cannot be replayed at all, the reason.
func Describe(events []*historypb.HistoryEvent) Verdict {
	out := Verdict{Outcome: Unverified, Events: len(events), Why: checkEvents(events)}
	if len(events) == 0 {
		return out
	}
	if started := events[0].GetWorkflowExecutionStartedEventAttributes(); started != nil {
		out.WorkflowType = started.GetWorkflowType().GetName()
		out.WorkflowID = started.GetWorkflowId()
		out.RunID = history.OriginOf(events).RunID
	}
	return out
}
