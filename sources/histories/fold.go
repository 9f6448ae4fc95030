package histories

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/kind"
	"acescope/engine/temporal/history"
	"acescope/engine/trace"
	"acescope/sources/experiments"
	"acescope/sources/flows"
	"acescope/sources/runs"
)

// Folder folds the history of one run, event by event, and lists the changes of each.
type Folder struct {
	WorkflowID string
	RunID      string
	State      ace.State

	decoder  history.Decoder
	task     history.WorkflowTask
	started  map[int64]string                                    // open activities and other operations
	reported map[string]ace.CallState                            // reported skill states, by call id
	Each     func(*historypb.HistoryEvent, ace.Fact, *ace.State) // called after each fact; may be nil
}

// NewFolder returns a folder with an empty state.
func NewFolder(workflowID, runID string) *Folder {
	return &Folder{WorkflowID: workflowID, RunID: runID, reported: map[string]ace.CallState{},
		started: map[int64]string{}}
}

// Apply folds one event and returns its changes, in order.
func (f *Folder) Apply(e *historypb.HistoryEvent) []Change {
	changes := f.step(e)
	fact, ok, _ := f.decoder.Fact(e) // the state lists the unreadable parts of an input
	if !ok {
		return changes
	}
	review := f.State.Review
	phase, status, after := f.State.Phase, f.State.Status(), f.State.Delta.PlaybookAfter
	operations := len(f.State.Delta.Operations)
	cancel := f.State.CancelRequested
	f.State.Apply(fact)
	if f.Each != nil {
		f.Each(e, fact, &f.State)
	}
	for _, note := range fact.Unread {
		if fact.Step != "" {
			note = fact.Step.Activity() + ": " + note
		}
		changes = append(changes, f.change(e, Change{Type: ChangeUnread, Note: note}))
	}
	if fact.Kind == ace.FactToolEvents || len(f.State.ChangedCalls()) > 0 {
		changes = f.skills(e, changes)
	}
	for _, c := range f.State.NewCommands() {
		changes = append(changes, f.change(e, Change{Type: ChangeCommand, Command: c.Name}))
	}
	merged := fact.Step == ace.PhasePersist && fact.Result != nil && len(f.State.Delta.Operations) > 0
	unmerged := f.State.Input.Observed &&
		len(f.State.Delta.Operations) != operations // an observer may report no merge
	if f.State.Delta.PlaybookAfter != after || merged || unmerged {
		delta := f.State.PlaybookDelta()
		changes = append(changes, f.change(e, Change{Type: ChangeDelta, Delta: &delta}))
	}
	if f.State.Phase != phase {
		changes = append(changes, f.change(e, Change{Type: ChangePhase, Phase: f.State.Phase}))
	}
	if fact.Kind == ace.FactReviewOpened || f.State.Review.Ended() &&
		f.State.Review.Status != review.Status ||
		f.State.Review.Ignored != review.Ignored && len(fact.Unread) == 0 {
		changes = append(changes, f.review(e, review.Ignored))
	}
	if f.State.Status() != status || f.State.CancelRequested != cancel {
		change := f.status(e)
		if result, _ := history.Outcome(e); len(f.State.Steps) == 0 {
			change.Result, _ = history.Values(result) // of a workflow of another type
		}
		changes = append(changes, change)
	}
	return changes
}

// step returns the change of an event that ends a step without success: an activity, a child workflow or
// another operation, of any worker, whether or not it fails the run; or the first failure in a row of
// workflow tasks.
func (f *Folder) step(e *historypb.HistoryEvent) []Change {
	if f.task.Apply(e) {
		failure := history.FailureOf(f.task.Failure)
		return []Change{f.change(e, Change{Type: ChangeStep, Step: history.TaskType, Failure: &failure})}
	}
	switch a := history.Attributes(e).(type) {
	case *historypb.ActivityTaskScheduledEventAttributes:
		f.started[e.GetEventId()] = a.GetActivityType().GetName()
	case *historypb.StartChildWorkflowExecutionInitiatedEventAttributes:
		f.started[e.GetEventId()] = a.GetWorkflowType().GetName()
	case *historypb.NexusOperationScheduledEventAttributes:
		f.started[e.GetEventId()] = a.GetOperation()
	case *historypb.SignalExternalWorkflowExecutionInitiatedEventAttributes:
		f.started[e.GetEventId()] = "signal " + a.GetSignalName()
	case *historypb.RequestCancelExternalWorkflowExecutionInitiatedEventAttributes:
		f.started[e.GetEventId()] = "cancel request to " + a.GetWorkflowExecution().GetWorkflowId()
	case *historypb.NexusOperationCancelRequestedEventAttributes:
		f.started[e.GetEventId()] = "cancel request to " + f.started[a.GetScheduledEventId()]
	case *historypb.WorkflowExecutionUpdateAcceptedEventAttributes:
		f.started[e.GetEventId()] = "update " + cmp.Or(a.GetAcceptedRequest().GetInput().GetName(),
			a.GetProtocolInstanceId())
	case *historypb.MarkerRecordedEventAttributes: // a local activity
		f.started[e.GetEventId()] = MarkerTitle(a)
	}
	end, ok := history.EndingOf(e)
	name, known := f.started[end.Started]
	if !ok || !known {
		return nil
	}
	delete(f.started, end.Started)
	if end.Status == history.EndCompleted {
		return nil
	}
	failure := end.Reason()
	return []Change{f.change(e, Change{Type: ChangeStep, Step: name, Failure: &failure})}
}

func (f *Folder) status(e *historypb.HistoryEvent) Change {
	s := &f.State
	return f.change(e, Change{Type: ChangeStatus, Status: s.Status(), Verdict: s.Verdict(), Answer: s.Answer,
		Correct: s.Correct,
		Failure: s.Failure, Cancel: s.CancelRequested})
}

// review returns the state of the review as a change. ignored is the number of ignored decisions before the
// event.
func (f *Folder) review(e *historypb.HistoryEvent, ignored int) Change {
	now := f.State.Review
	c := Change{Type: ChangeReview, Review: &now, Until: f.State.ReviewUntil()}
	c.Note = c.Review.String()
	switch {
	case c.Review.Ignored != ignored:
		c.Note = "decision ignored: " + c.Review.LastIgnored
	case f.State.WaitsForReview():
		c.Note = fmt.Sprintf("waits for review of %s until %s, then %s",
			ace.Count(len(f.State.Review.UnderReview()), "operation"), c.Until.Local().Format(time.DateTime),
			f.State.Input.Review.TimeoutChoice())
	}
	return f.change(e, c)
}

func (f *Folder) skills(e *historypb.HistoryEvent, changes []Change) []Change {
	for _, c := range f.State.ChangedCalls() {
		inv, state := c.Invocation, c.State()
		if state == ace.CallPending {
			state = SkillStarted
		}
		if f.reported[inv.ID] == state {
			continue
		}
		f.reported[inv.ID] = state
		changes = append(changes, f.change(e, Change{Type: ChangeSkill, Phase: ace.PhaseSkills, Skill: &inv,
			State: state}))
	}
	return changes
}

func (f *Folder) change(e *historypb.HistoryEvent, c Change) Change {
	c.TaskID, c.WorkflowID, c.RunID = f.State.Input.TaskID, f.WorkflowID, f.RunID
	c.Event, c.At = e.GetEventId(), e.GetEventTime().AsTime()
	return c
}

// ChangeType is the kind of a [Change]: the "type" of its JSON line.
type ChangeType string

// Change types.
const (
	ChangePhase   ChangeType = "phase"
	ChangeSkill   ChangeType = "skill"
	ChangeCommand ChangeType = "command"
	ChangeDelta   ChangeType = "delta"
	ChangeStatus  ChangeType = "status"
	ChangeUnread  ChangeType = "unread" // a part of the history could not be read
	// ChangeStep reports that an activity or another operation failed, which does not always fail the run. In
	// a workflow that is not of acescope, it also reports that an operation began or ended. In a flow, it
	// reports that a step changed.
	ChangeStep ChangeType = "step"
	// ChangeReview reports that a run waits for the review of its operations, the end of the review, or an
	// ignored decision.
	ChangeReview ChangeType = "review"
	// ChangeCall reports that a request to a model, a call of a tool or a handoff of an agent ended. It is
	// reported again if a later event corrects its outcome.
	ChangeCall ChangeType = "call"
	// ChangeStream reports a part of an answer that a model streams.
	ChangeStream ChangeType = "stream"
)

// Change is a change in a run's state, for a log or a tail. Only the fields of its type are set. Event is the
// id of the history event that reports it, At the time of that event.
type Change struct {
	Type       ChangeType      `json:"type"`
	TaskID     string          `json:"task_id"`
	WorkflowID string          `json:"workflow_id"`
	RunID      string          `json:"run_id"`
	Event      int64           `json:"event_id"`
	At         time.Time       `json:"at"`
	Phase      ace.Phase       `json:"phase,omitempty"`
	Skill      *ace.Invocation `json:"skill,omitempty"`
	State      ace.CallState   `json:"state,omitempty"`   // of a skill: started, ok, failed, denied
	Command    string          `json:"command,omitempty"` // slash command
	// Step is the type of the activity, child workflow or other operation. In a flow, it is the path of the
	// step.
	Step     string           `json:"step,omitempty"`
	FlowStep *flow.StepState  `json:"flow_step,omitempty"` // what the event says of the step of a flow
	Delta    *ace.DeltaAnswer `json:"delta,omitempty"`
	Review   *ace.ReviewState `json:"review,omitempty"`
	Until    time.Time        `json:"until,omitzero"` // end of the time limit of a review
	Status   ace.Status       `json:"status,omitempty"`
	Verdict  ace.Verdict      `json:"verdict,omitempty"`
	Answer   string           `json:"answer,omitempty"`
	Correct  *bool            `json:"correct,omitempty"`
	Failure  *ace.Failure     `json:"failure,omitempty"`
	Cancel   bool             `json:"cancel_requested,omitempty"`
	// Result is the result of a workflow that is not an ACE run.
	Result json.RawMessage `json:"result,omitempty"`
	Call   *trace.Call     `json:"call,omitempty"` // of an agent, that has ended
	Item   *kind.Item      `json:"item,omitempty"` // the operation, as the run's state describes it
	// Note describes the change of a session, a blueprint run, an operation or a call, or the part that could
	// not be read. Of a stream, it is the text.
	Note string `json:"note,omitempty"`
}

// NoteChange returns what an event did to an item of a run as a change.
func NoteChange(n kind.Note) Change {
	c := Change{Type: ChangeStep, Step: n.Name, Failure: n.Failure, Call: n.Call, Item: n.Item, Note: n.Text}
	switch {
	case n.Call != nil:
		c.Type = ChangeCall
	case n.Stream:
		c.Type, c.Step = ChangeStream, ""
	}
	return c
}

// SkillStarted is the state of a call in a [Change] that says that it is pending.
const SkillStarted ace.CallState = "started"

// Kind returns the kind of the log line of the change.
func (c Change) Kind() string {
	switch {
	case c.Failure != nil || c.State == ace.CallFailed || c.State == ace.CallDenied:
		return "error"
	case c.FlowStep != nil:
		return flowStepKind(c.FlowStep)
	case c.Type == ChangeCommand:
		return string(ChangeSkill)
	case c.Type == ChangeUnread, c.Type == ChangeReview:
		return string(ChangeStatus)
	}
	return string(c.Type)
}

func flowStepKind(s *flow.StepState) string {
	switch {
	case s.Status == flow.StepFailed:
		return "error"
	case s.Status == flow.StepRunning:
		return string(ChangePhase)
	}
	return string(ChangeStatus)
}

// Text describes the change in one line of untrusted text.
func (c Change) Text() string {
	switch {
	case c.Type == ChangeUnread:
		return "cannot read " + c.Note
	case c.Note != "":
		return c.Note
	case c.FlowStep != nil:
		return flows.ChangeText(*c.FlowStep)
	}
	switch c.Type {
	case ChangePhase:
		return string(c.Phase)
	case ChangeSkill:
		return skillText(c)
	case ChangeCommand:
		return c.Command
	case ChangeDelta:
		return deltaText(c.Delta)
	case ChangeStep:
		return fmt.Sprintf("%s %s: %s", c.Step, c.Failure.Kind, c.Failure.Message)
	default:
		return statusText(c)
	}
}

func skillText(c Change) string {
	text := fmt.Sprintf("%s %s", c.Skill.Name, c.State)
	if c.State == SkillStarted {
		return strings.TrimSpace(text + " " + string(c.Skill.Args))
	}
	text += " " + durationText(c.Skill.DurationMS)
	if c.Skill.Error != "" {
		return text + " " + c.Skill.Error
	}
	return strings.TrimSpace(text + " " + string(c.Skill.Result))
}

// durationText formats a number of milliseconds; below 1, in microseconds.
func durationText(ms float64) string {
	if ms > 0 && ms < 1 {
		return fmt.Sprintf("%.0fµs", max(ms*1000, 1))
	}
	return fmt.Sprintf("%.1fms", ms)
}

func deltaText(d *ace.DeltaAnswer) string {
	outcomes := map[ace.Outcome]int{}
	for _, op := range d.Operations {
		outcomes[op.Outcome]++
	}
	after := cmp.Or(fmt.Sprintf("%.8s", d.PlaybookAfter), "unknown")
	return fmt.Sprintf("%.8s → %s: %d accepted, %d rejected", cmp.Or(d.PlaybookBefore, "empty"), after,
		outcomes[ace.OutcomeAccepted], outcomes[ace.OutcomeRejected])
}

func statusText(c Change) string {
	text := string(c.Status)
	if c.Cancel && c.Status == ace.Running {
		text = "cancel requested"
	}
	if c.Answer != "" {
		text += ", answer " + c.Answer
		if c.Verdict != "" {
			text += " (" + string(c.Verdict) + ")"
		}
	}
	if len(c.Result) > 0 {
		text += ", result " + string(c.Result)
	}
	if c.Failure != nil {
		text += ": " + c.Failure.Message
	}
	return text
}

// TaskLine returns the log line for the end of a task of an experiment.
func TaskLine(f experiments.Finished) runs.LogLine {
	kind := "status"
	if f.Failure != nil {
		kind = "error"
	}
	text := f.Result.TaskID + " " + string(f.Status)
	if f.Failure != nil {
		text += ": " + f.Failure.Message
	} else {
		text += fmt.Sprintf(", answer %s (%s)", cmp.Or(f.Result.Answer, "none"), f.Verdict)
	}
	return runs.LogLine{Event: f.Event, At: f.At, Kind: kind, Text: text}
}
