package histories

import (
	"cmp"
	"encoding/json"

	"github.com/tidwall/gjson"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// StepCalls is the record of the requests that a step of a run sent to its model.
type StepCalls struct {
	Step  string // phase, or name of the operation or activity
	Event int64  // that has the result or the failure of the step
	Log   ace.CallLog
}

// CallLogs returns the records that a history refers to, in the order of the history.
func CallLogs(events []*historypb.HistoryEvent) (all []StepCalls) {
	names := map[int64]string{}
	for _, e := range events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			phase, _ := ace.StepOf(a.GetActivityType().GetName())
			operation, _ := history.OperationName(e)
			names[e.GetEventId()] = cmp.Or(string(phase), operation, a.GetActivityType().GetName())
		}
		end, ok := history.EndingOf(e)
		if !ok {
			continue
		}
		data, _ := history.Values(end.Result)
		if f := end.Failure.GetApplicationFailureInfo(); f != nil {
			data, _ = history.Values(f.GetDetails())
		}
		if log := findCallLog(gjson.ParseBytes(data), maxRefDepth); log != nil {
			all = append(all, StepCalls{names[end.Started], e.GetEventId(), *log})
		}
	}
	return all
}

// findCallLog returns the first record of model calls that a JSON value refers to, or nil.
func findCallLog(value gjson.Result, depth int) (log *ace.CallLog) {
	if depth < 0 || !value.IsObject() && !value.IsArray() {
		return nil
	}
	if value.Get("media_type").String() == ace.CallsMediaType && json.Unmarshal([]byte(value.Raw), &log) == nil {
		return log
	}
	value.ForEach(func(_, inner gjson.Result) bool {
		log = findCallLog(inner, depth-1)
		return log == nil
	})
	return log
}
