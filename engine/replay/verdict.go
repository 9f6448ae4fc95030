package replay

import "acescope/engine/history"

// Outcome is what verifying a history came to.
type Outcome string

// Outcomes.
const (
	// Same means that today's code decides as the history says.
	Same Outcome = "same"
	// Diverged means that it decides otherwise; Temporal would refuse to go on with such
	// a run.
	Diverged Outcome = "diverged"
	// Drifted means that it decides otherwise in a way that Temporal lets pass: a timer of
	// another length, another input of an activity or child.
	Drifted Outcome = "drifted"
	// Unverified means that the history could not be verified: Verdict.Why says why.
	Unverified Outcome = "unverified"
)

// Verdict is what verifying one history found.
type Verdict struct {
	Outcome      Outcome     `json:"outcome"`
	WorkflowType string      `json:"workflow_type"`
	WorkflowID   string      `json:"workflow_id,omitempty"`
	RunID        string      `json:"run_id,omitempty"`
	Events       int         `json:"events"`
	Why          string      `json:"why,omitempty"` // of an unverified one
	Divergence   *Divergence `json:"divergence,omitempty"`
}

// Kind says how code and history differ.
type Kind string

// Kinds of divergence.
const (
	KindOther   Kind = "other"   // the code does something else in this place
	KindMissing Kind = "missing" // the code no longer does it
	KindAdded   Kind = "added"   // the code does something that the history does not have
	KindChanged Kind = "changed" // the same with another length or input; Temporal lets it pass
	KindVersion Kind = "version" // the code no longer supports the recorded version of a change
	KindPanic   Kind = "panic"   // the code ended in a panic
	KindResult  Kind = "result"  // the code ends otherwise, or with another result
	KindStuck   Kind = "stuck"   // the code loops, or waits for what is not of the workflow
)

// Divergence is the first place in which code and history differ.
type Divergence struct {
	Kind      Kind     `json:"kind"`
	EventID   int64    `json:"event_id"` // of the history
	EventType string   `json:"event_type"`
	Task      int64    `json:"workflow_task"`         // the completed workflow task that decided it, as an event id
	Expected  *Command `json:"expected,omitempty"`    // what the history has
	Actual    *Command `json:"actual,omitempty"`      // what the code does
	Recorded  string   `json:"recorded_by,omitempty"` // build of the worker that wrote it
	Code      string   `json:"code,omitempty"`        // build that was verified
	Sentence  string   `json:"sentence"`
	Advice    string   `json:"advice"`
	SDK       string   `json:"sdk,omitempty"` // what Temporal's replayer says
}

// Command is one decision of a workflow.
type Command struct {
	Kind   string `json:"kind"`             // activity, timer, child workflow, …
	Name   string `json:"name,omitempty"`   // type of an activity or child, name of a signal or marker
	ID     string `json:"id,omitempty"`     // activity id, timer id, workflow id of a child
	Detail string `json:"detail,omitempty"` // the length of a timer, the input, the result
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

// isOperation tells whether it is an activity that engine/operation gave its id: there the
// id says what it is, since all operations of a kind share one activity type.
func (c *Command) isOperation() bool {
	_, _, _, ok := history.OperationPlace(c.ID)
	return ok && c.Kind == kindActivity
}

// matches tells whether two commands are the same decision, as Temporal compares them.
func (c Command) matches(d Command) bool {
	if c.isOperation() && d.isOperation() && c.ID != d.ID {
		return false
	}
	switch c.Kind {
	case kindMarker, kindLocal, kindUpdate: // their names cannot always be read
		return c.Kind == d.Kind && (c.Name == d.Name || c.Name == "" || d.Name == "")
	}
	return c.Kind == d.Kind && c.Name == d.Name
}
