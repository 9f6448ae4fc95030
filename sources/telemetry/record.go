package telemetry

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
	"acescope/engine/flow"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/operation"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// record is a closed run with the facts of its history.
type record struct {
	runs.Run
	namespace string
	origin    history.Origin
	started   *historypb.WorkflowExecutionStartedEventAttributes // nil without a history
	spans     []histories.Span
	steps     map[int64]step     // by the event that scheduled it
	calls     []modelCall        // in the order of the history
	state     *ace.State         // of a task run, otherwise nil
	own       map[ace.Phase]bool // the steps of a task that this run executed, and not the run it continues
}

// step is an activity of a run.
type step struct {
	activity  string // its type
	id        string // of the activity
	phase     ace.Phase
	worker    string
	tool      string // that a session served
	call      string // the id of that tool call
	child     childRun
	errorType string // "" unless it failed
}

// childRun is a child workflow of a run.
type childRun struct{ workflowType, workflowID, runID string }

// modelCall is the use of a model by a step, or by the whole run.
type modelCall struct {
	scheduled    int64     // of the activity, 0 if none is known
	phase        ace.Phase // of an observed run
	agent        string    // that was called, or "" for a model
	provider     string
	model        string
	conversation string
	usage        ace.Usage
	start        time.Time // zero if unknown
	duration     time.Duration
}

// newRecord folds the history of a closed run.
func newRecord(r runs.Run, namespace string, events []*historypb.HistoryEvent) *record {
	c := &record{Run: r, namespace: namespace, steps: map[int64]step{}, own: map[ace.Phase]bool{},
		origin: history.OriginOf(events)}
	if len(events) == 0 {
		return c
	}
	c.started = events[0].GetWorkflowExecutionStartedEventAttributes()
	for _, e := range events {
		c.readStep(e)
	}
	// The index of a shared history keeps no copy of the events.
	index := histories.NewEventIndex(r.WorkflowID, r.RunID, cluster.NewHistory(cluster.Pages{}))
	index.Append(events)
	c.spans = histories.Timeline(index.Log(r.Close), nil)
	switch r.Type {
	case session.Workflow:
		c.readSession(events)
	case run.Workflow:
		c.readBlueprintRun(events)
	case flow.Workflow:
		c.readFlow(events)
	case ace.ExperimentWorkflow: // its tasks are runs of their own
	default:
		c.readTask(events)
	}
	return c
}

// inherited reports whether an event was written by the run that this one was reset from.
func (c *record) inherited(event int64) bool {
	return c.origin.Reset != nil && event <= c.origin.Reset.Event
}

// readStep reads the facts about a step that the spans of the timeline lack.
func (c *record) readStep(e *historypb.HistoryEvent) {
	id := e.GetEventId()
	switch a := history.Attributes(e).(type) {
	case *historypb.ActivityTaskScheduledEventAttributes:
		s := step{activity: a.GetActivityType().GetName(), id: a.GetActivityId()}
		s.phase, _ = ace.StepOf(s.activity)
		if s.activity == session.ActivityTool {
			var call session.ToolCall
			_ = json.Unmarshal(history.JSON(a.GetInput()), &call) // an unreadable input has no name
			s.tool, s.call = call.Name, call.ID
		}
		c.steps[id] = s
	case *historypb.ActivityTaskStartedEventAttributes:
		c.change(a.GetScheduledEventId(), func(s *step) { s.worker = a.GetIdentity() })
	case *historypb.StartChildWorkflowExecutionInitiatedEventAttributes:
		c.steps[id] = step{child: childRun{a.GetWorkflowType().GetName(), a.GetWorkflowId(), ""}}
	case *historypb.ChildWorkflowExecutionStartedEventAttributes:
		c.change(a.GetInitiatedEventId(), func(s *step) {
			s.child.runID = a.GetWorkflowExecution().GetRunId()
		})
	}
	if end, ok := history.EndingOf(e); ok && end.Status != history.EndCompleted {
		c.change(end.Started, func(s *step) { s.errorType = errorType(end.Status, end.Failure) })
	}
}

func (c *record) change(scheduled int64, fn func(*step)) {
	if s, ok := c.steps[scheduled]; ok {
		fn(&s)
		c.steps[scheduled] = s
	}
}

// errorType returns the type of a failure: that of the application if it names one.
func errorType(status history.EndStatus, f *failurepb.Failure) string {
	for ; f != nil; f = f.GetCause() {
		if t := f.GetApplicationFailureInfo().GetType(); t != "" {
			return ace.Cut(t, maxLabel)
		}
	}
	switch status {
	case history.EndTimedOut:
		return "timeout"
	case history.EndCanceled:
		return "canceled"
	}
	return "failed"
}

// readTask folds a run of the contract, or of a workflow of another program.
func (c *record) readTask(events []*historypb.HistoryEvent) {
	folder := histories.NewFolder(c.WorkflowID, c.RunID)
	folder.Each = func(e *historypb.HistoryEvent, f ace.Fact, s *ace.State) {
		if f.Kind == ace.FactStepCompleted && !s.Input.Observed && !c.inherited(e.GetEventId()) {
			end, _ := history.EndingOf(e)
			st := f.Completed()
			for _, sum := range s.Steps {
				st.Reused = st.Reused || sum.Phase == f.Step && sum.Reused
			}
			c.own[f.Step] = !st.Reused
			c.addUse(end.Started, st, s.Input)
		}
	}
	for _, e := range events {
		folder.Apply(e)
		c.addAgentCall(e)
	}
	if len(folder.State.Steps) == 0 {
		return
	}
	c.state = &folder.State
	if c.state.Input.Observed && c.Status != ace.ContinuedAsNew { // the next run has the reports
		for _, st := range c.state.Steps {
			c.own[st.Phase] = true
			c.addUse(0, st, c.state.Input)
		}
	}
}

// addUse adds the model call of a step, unless its usage belongs to another run.
func (c *record) addUse(scheduled int64, st ace.StepState, in ace.TaskInput) {
	if st.Usage == nil || *st.Usage == (ace.Usage{}) || st.Reused {
		return
	}
	call := modelCall{scheduled: scheduled, phase: st.Phase, provider: in.ProviderOf(st.Phase),
		model: cmp.Or(in.ModelOf(st.Phase), c.Model), usage: *st.Usage}
	if st.Time != nil {
		call.start, call.duration = st.Time.StartedAt, cluster.Milliseconds(st.Time.DurationMS)
	}
	c.calls = append(c.calls, call)
}

// addAgentCall adds the call of an agent that ends with an event.
func (c *record) addAgentCall(e *historypb.HistoryEvent) {
	r := histories.AgentResultOf(e)
	if r == nil || c.inherited(e.GetEventId()) {
		return
	}
	end, _ := history.EndingOf(e)
	agent := cmp.Or(r.Provider, string(agentcli.Claude))
	c.calls = append(c.calls, modelCall{scheduled: end.Started, agent: agent, model: r.Model,
		conversation: r.SessionID, usage: r.Usage})
}

// readFlow adds a model call for each operation of a flow that reports its usage. The usage of a blueprint's
// run is in that run.
func (c *record) readFlow(events []*historypb.HistoryEvent) {
	scheduled := map[string]int64{} // by operation
	for _, e := range operation.Project(events) {
		if e.Type == operation.OperationStarted {
			scheduled[e.OperationID] = e.EventID
		}
		var r flow.Answer
		if e.Type != operation.OperationCompleted || c.inherited(e.EventID) ||
			json.Unmarshal(e.Result, &r) != nil ||
			r.Provider == "" || r.Usage == (ace.Usage{}) {
			continue
		}
		call := modelCall{scheduled: scheduled[e.OperationID], provider: r.Provider, model: r.Model,
			usage:        r.Usage,
			conversation: r.SessionID, duration: cluster.Milliseconds(r.DurationMS)}
		if ace.IsAgent(r.Provider) {
			call.agent = r.Provider
			call.provider = ""
		}
		c.calls = append(c.calls, call)
	}
}

// readSession adds a model call for each turn of a session.
func (c *record) readSession(events []*historypb.HistoryEvent) {
	var decoder session.Decoder
	var state session.State
	for _, e := range events {
		fact, ok, _ := decoder.Fact(e) // an input of another type has no turns
		if !ok {
			continue
		}
		state.Apply(fact)
		if fact.Kind != session.FactTurnEnded || c.inherited(e.GetEventId()) {
			continue
		}
		end, _ := history.EndingOf(e)
		call := modelCall{scheduled: end.Started, agent: state.Input.Agent, model: state.Model,
			conversation: state.Input.SessionID}
		if fact.Result != nil {
			call.usage, call.duration = fact.Result.Usage, cluster.Milliseconds(fact.Result.DurationMS)
		}
		c.calls = append(c.calls, call)
	}
}

// readBlueprintRun adds the model call of a program. The usage of a session that it talked to is in the
// session's run, and that of a step of a task in the task's.
func (c *record) readBlueprintRun(events []*historypb.HistoryEvent) {
	var decoder run.Decoder
	var state run.State
	var executed int64
	for _, e := range events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == run.ActivityExecute {
			executed = e.GetEventId()
		}
		if fact, ok, _ := decoder.Fact(e); ok {
			state.Apply(fact)
		}
	}
	ofStep := strings.HasPrefix(run.IDOf(c.WorkflowID), run.StepPrefix)
	if ofStep || executed == 0 || c.inherited(executed) {
		return
	}
	if state.Result == nil || state.Result.Usage == (ace.Usage{}) {
		return
	}
	c.calls = append(c.calls, modelCall{scheduled: executed, agent: c.Blueprint, model: c.Model,
		conversation: state.Result.SessionID, usage: state.Result.Usage, start: state.Result.StartedAt,
		duration: time.Duration(state.Result.DurationSeconds * float64(time.Second))})
}
