// Package replay verifies that the current workflow code makes the decisions that a recorded
// history contains, without running anything again. It may import engine/temporal/history and
// Temporal's API and SDK; the caller passes in the workflow code.
//
// Order: a [Verdict] names the first divergence. Bounds: verifying holds one history in memory.
// Loss: none; a history that cannot be verified gives a verdict with the reason.
package replay

import (
	"fmt"

	"acescope/engine/temporal/history"
)

// Outcome is the result of verifying a history.
type Outcome string

// Outcomes.
const (
	// Deterministic means that the current code makes the decisions of the history.
	Deterministic Outcome = "deterministic"
	// Nondeterministic means that the code decides differently; Temporal would not continue such a run.
	Nondeterministic Outcome = "nondeterministic"
	// Drifted means that the code decides differently in a way that Temporal accepts, such as
	// another timer duration or another input of an activity or child workflow.
	Drifted Outcome = "drifted"
	// Unverified means that the history could not be verified; [Verdict.Why] has the reason.
	Unverified Outcome = "unverified"
)

// Verdict is the result of verifying one history.
type Verdict struct {
	Outcome      Outcome     `json:"outcome"`
	WorkflowType string      `json:"workflow_type"`
	WorkflowID   string      `json:"workflow_id,omitempty"`
	RunID        string      `json:"run_id,omitempty"`
	Events       int         `json:"events"`
	Why          string      `json:"why,omitempty"`      // reason for [Unverified]
	Advice       string      `json:"advice,omitempty"`   // what makes an unverified history verifiable, in lines
	Replayer     string      `json:"replayer,omitempty"` // the program that replayed, "" for this one
	Divergence   *Divergence `json:"divergence,omitempty"`
}

// Kind classifies a divergence.
type Kind string

// Kinds of divergence.
const (
	KindOther   Kind = "other"   // the code makes a different decision here
	KindMissing Kind = "missing" // the code no longer makes the decision
	KindAdded   Kind = "added"   // the code makes a decision that the history does not have
	KindChanged Kind = "changed" // the same decision with a different duration or input; Temporal accepts it
	KindVersion Kind = "version" // the code no longer supports the recorded version of a change
	KindPanic   Kind = "panic"   // the code panics
	KindResult  Kind = "result"  // the code closes with a different status or result
	KindStuck   Kind = "stuck"   // the code loops, or waits for something outside the workflow
)

// Divergence is the first place where code and history differ.
type Divergence struct {
	Kind      Kind   `json:"kind"`
	EventID   int64  `json:"event_id,omitempty"` // in the history; 0 if a replayer does not name it
	EventType string `json:"event_type,omitempty"`
	// Task is the event ID of the completed workflow task that made the decision.
	Task     int64    `json:"workflow_task,omitempty"`
	Expected *Command `json:"expected,omitempty"`    // decision in the history
	Actual   *Command `json:"actual,omitempty"`      // decision of the code
	Recorded string   `json:"recorded_by,omitempty"` // build of the worker that wrote the history
	Code     string   `json:"code,omitempty"`        // build that was verified
	Sentence string   `json:"sentence"`
	Advice   string   `json:"advice"`
	SDK      string   `json:"sdk,omitempty"` // message of Temporal's replayer
}

func (d *Divergence) describe() (sentence, advice string) {
	at := fmt.Sprintf("at event %d (%s) ", d.EventID, d.EventType)
	if d.EventID == 0 {
		at = "at an event that the replayer does not name "
	}
	guard := "guard the change with workflow.GetVersion (docs/design/versioning.md), or let runs started before it finish on the old code"
	switch d.Kind {
	case KindMissing:
		return at + fmt.Sprintf("the history has %s, which the code no longer does", d.Expected), guard
	case KindAdded:
		return at + fmt.Sprintf("the code does %s, which the history does not have", d.Actual), guard
	case KindChanged:
		return at + fmt.Sprintf("the history has %s, the code does the same with another %s (%s)",
				d.Expected, d.Expected.detailName(), d.Actual.Detail),
			"Temporal accepts this: open runs continue, but decide differently from closed runs"
	case KindVersion:
		recorded := fmt.Sprintf("before the change %q", d.Actual.Name)
		if d.Expected != nil && d.Expected.Detail != "" && d.Expected.Detail != "-1" {
			recorded = fmt.Sprintf("with version %s of the change %q", d.Expected.Detail, d.Actual.Name)
		}
		return at + fmt.Sprintf("the history was recorded %s, the code supports %s", recorded,
				d.Actual.Detail),
			"keep the branch of that version in the code until all runs that started with it are closed"
	case KindPanic:
		return at + "the code panics",
			"the replayer's message says where; a workflow must not panic on input that it accepted before"
	case KindStuck:
		return at + "the code does not yield: it loops forever, or waits for something outside the workflow",
			"wait only with workflow.Await, workflow.Sleep or a workflow.Channel; " +
				"a worker would fail the workflow task after a second"
	case KindResult:
		if d.Actual == nil {
			return at + "the run ended with another result than the code returns", guard
		}
		return at + fmt.Sprintf("the run ended with %s, the code ends with %s", d.Expected, d.Actual), guard
	}
	expected, actual := d.Expected, d.Actual
	switch {
	case expected == nil && actual == nil:
		return at + "the code decides differently", guard
	case expected == nil:
		return at + fmt.Sprintf("the code does %s", actual), guard
	case actual == nil:
		return at + fmt.Sprintf("the history has %s, the code decides differently", expected), guard
	}
	if expected.Detail == actual.Detail { // show only what differs
		a, b := *expected, *actual
		a.Detail = ""
		b.Detail = ""
		expected, actual = &a, &b
	}
	return at + fmt.Sprintf("the history has %s, the code does %s", expected, actual), guard
}

// Command is one decision of a workflow.
type Command struct {
	Kind   string `json:"kind"`             // activity, timer, child workflow, …
	Name   string `json:"name,omitempty"`   // type of an activity or child, name of a signal or marker
	ID     string `json:"id,omitempty"`     // activity ID, timer ID, workflow ID of a child
	Detail string `json:"detail,omitempty"` // duration of a timer, digest of an input or result
}

// Kinds of commands.
const (
	kindActivity = "activity"
	kindTimer    = "timer"
	kindChild    = "child workflow"
	kindSignal   = "signal to another workflow"
	kindCancel   = "cancel of another workflow"
	kindMarker   = "marker"
	kindLocal    = "local activity"
	kindUpdate   = "update"
	kindAttrs    = "search attributes"
	kindMemo     = "memo"
	kindNexus    = "nexus operation"
	kindComplete = "completion"
	kindFail     = "failure"
	kindCanceled = "cancellation"
	kindNew      = "continue as new"
)

func isClosing(kind string) bool {
	switch kind {
	case kindComplete, kindFail, kindCanceled, kindNew:
		return true
	}
	return false
}

func (c *Command) String() string {
	if c == nil {
		return "nothing"
	}
	s := c.Kind
	if c.Name != "" {
		s += " " + c.Name
	}
	if c.isOperation() {
		s += " " + c.ID
	}
	if c.Detail != "" {
		s += " (" + c.Detail + ")"
	}
	return s
}

func (c *Command) detailName() string {
	switch c.Kind {
	case kindTimer:
		return "length"
	case kindComplete:
		return "result"
	}
	return "input"
}

// isOperation reports whether the command is an activity with an ID that
// engine/temporal/operation assigned. All operations of a kind share one activity type, so
// only the ID distinguishes them.
func (c *Command) isOperation() bool {
	_, _, _, ok := history.ParseOperationID(c.ID)
	return ok && c.Kind == kindActivity
}

// matches reports whether two commands are the same decision by Temporal's rules.
func (c Command) matches(d Command) bool {
	if c.isOperation() && d.isOperation() && c.ID != d.ID {
		return false
	}
	switch c.Kind {
	case kindMarker, kindLocal, kindUpdate: // a name may be unreadable
		return c.Kind == d.Kind && (c.Name == d.Name || c.Name == "" || d.Name == "")
	}
	return c.Kind == d.Kind && c.Name == d.Name
}
