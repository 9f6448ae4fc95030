package compare

import (
	"slices"
	"time"
)

// Ignored says what is left out of a comparison by default, since it differs between any
// two runs: members of payloads by name, at any depth, and steps.
type Ignored struct {
	IDs      []string `json:"ids"`      // names of things
	Times    []string `json:"times"`    // where they hold a time
	Measures []string `json:"measures"` // how long it took, and who did it
	Steps    []string `json:"steps"`    // what is compared in another way, or never equal
}

// WhatIsIgnored is the list of what is left out by default.
func WhatIsIgnored() Ignored {
	return Ignored{
		IDs: []string{"run_id", "workflow_id", "task_id", "experiment_id", "trajectory_id", "session_id", "event_id", "call_id",
			"request_id", "trace_id", "span_id", "branch", "runId", "workflowId", "taskId", "sessionId", "requestId", "traceId", "spanId"},
		Times: []string{"at", "started_at", "ended_at", "finished_at", "created_at", "timestamp", "time", "startedAt", "endedAt", "createdAt"},
		Measures: []string{"duration_ms", "phase_ms", "elapsed_ms", "latency_ms", "durationMs", "worker", "identity", "attempt",
			"hostname"},
		Steps: []string{"signals that report tool calls (the calls are compared)", "the list of calls in a skills session's result (the same)",
			"timers that run beside an activity or a child (whether they fire is chance)", "what a fork's input says of the results that it took over (they are steps)", "what was given to steps that were taken over, and how long they took (it is not recorded)", "the values of side effects (clock, random numbers, new ids)", "where a run continues as new (its runs are compared as one)"},
	}
}

var ignoredNames, ignoredTimes = func() (map[string]bool, []string) {
	list, names := WhatIsIgnored(), map[string]bool{}
	for _, n := range append(list.IDs, list.Measures...) {
		names[n] = true
	}
	return names, list.Times
}()

// ignored tells whether a member of an object is left out.
func ignored(name string, value any) bool {
	if ignoredNames[name] {
		return true
	}
	if !slices.Contains(ignoredTimes, name) {
		return false
	}
	s, ok := value.(string)
	if !ok {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, s)
	return err == nil
}
