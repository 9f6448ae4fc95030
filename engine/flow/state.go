package flow

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"acescope/engine/ace"
)

// Workflow is the workflow type of runs of flows, and IDPrefix the prefix of their workflow IDs.
const (
	Workflow = "AceFlowWorkflow"
	IDPrefix = "ace-flow/"
)

// MemoName is the memo with the name of a run's flow.
const MemoName = "flow_name"

// Errors of actions on runs.
var (
	ErrNotRunning = ace.NotFound{Kind: "flow run"}
	ErrNotWaiting = errors.New("nothing to decide")
)

// QueryFlow returns the [State]. SignalDecide carries a [Decision].
const (
	QueryFlow    = "get_flow"
	SignalDecide = "decide"
)

// Values of the search attribute Phase of a run, besides "".
const (
	PhaseRunning  = "running"
	PhaseApproval = "approval" // it waits for the decision of a user
	PhaseDone     = "done"
)

// Input is the input of a run.
type Input struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // SHA-256 of the source, see [Source.Digest]
	Source Source `json:"source"`
	// Language is the version of the language of the source, at most [Language].
	Language int             `json:"language"`
	Inputs   json.RawMessage `json:"inputs"`
	// Dir is the absolute directory of programs and agents, on the machine whose worker polls Queue. An empty
	// Queue is the task queue of the workflow.
	Dir   string `json:"dir,omitempty"`
	Queue string `json:"task_queue,omitempty"`
	By    string `json:"by,omitempty"` // user and machine that started the run
	// Reuse holds the recorded values of a fork by ID. An operation with a recorded result is not executed
	// again, unless the digest of its parameters differs from that in ReuseParameters.
	Reuse           map[string]json.RawMessage `json:"reuse,omitempty"`
	ReuseParameters map[string]string          `json:"reuse_parameters,omitempty"`
	Fork            *ace.Forked                `json:"fork,omitempty"`
	// Carried is the state of the previous run, when a run continues as new.
	Carried *Carried `json:"carried,omitempty"`
}

// Result is the result of a run.
type Result struct {
	Outputs    map[string]any `json:"outputs"`
	Usage      ace.Usage      `json:"usage"`
	Operations int            `json:"operations"`
}

// Decision is the decision of a user on a step that waits for approval.
type Decision struct {
	Step     string `json:"step"` // path
	Approved bool   `json:"approved"`
	By       string `json:"by,omitempty"`
	Comment  string `json:"comment,omitempty"`
}

// Status is the status of a step.
type Status string

// Statuses of a step.
const (
	StepRunning   Status = "running"
	StepWaiting   Status = "waiting" // for a time, a signal or a decision
	StepCompleted Status = "completed"
	StepFailed    Status = "failed"
	StepSkipped   Status = "skipped" // its condition was false
	StepCanceled  Status = "canceled"
)

// Over reports whether the step has ended.
func (s Status) Over() bool { return s != StepRunning && s != StepWaiting }

// Fact is a change of a step. Empty fields leave the state as it is.
type Fact struct {
	Status    Status     `json:"status,omitempty"`
	Kind      string     `json:"kind,omitempty"`
	Name      string     `json:"name,omitempty"`   // of this execution, see [Step]
	Detail    string     `json:"detail,omitempty"` // a message, a value or a decision, truncated
	Error     string     `json:"error,omitempty"`
	Operation string     `json:"operation_id,omitempty"`
	Reused    bool       `json:"reused,omitempty"`
	Approval  bool       `json:"approval,omitempty"`
	TimedOut  bool       `json:"timed_out,omitempty"` // of a wait or an approval
	Count     int        `json:"count,omitempty"`     // maximum number of iterations
	Done      int        `json:"done,omitempty"`
	Usage     *ace.Usage `json:"usage,omitempty"`
	// Metered is set if no transcript of an agent's CLI has the usage. Model is the model that the usage is
	// of.
	Metered bool   `json:"metered,omitempty"`
	Model   string `json:"model,omitempty"`
}

// StepState is the state of a step, or of one of its executions in a loop.
type StepState struct {
	// Path holds the IDs of the step and of the blocks and iterations that it is in, such as "build/3/test".
	Path string `json:"path"`
	Fact
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`
}

// JoinPath returns the path of a step or an iteration within a path, "" for the top.
func JoinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// ID returns the ID of the step in its file.
func (s StepState) ID() string { return s.Path[strings.LastIndexByte(s.Path, '/')+1:] }

// State is the state of a run, the fold of its facts.
type State struct {
	Name       string      `json:"name"`
	Digest     string      `json:"digest"`
	Steps      []StepState `json:"steps"` // in the order in which they began
	Operations int         `json:"operations"`
	Usage      ace.Usage   `json:"usage,omitzero"`
	// Metered is the part of Usage that no transcript of an agent's CLI has, by model. Apply replaces it.
	Metered *ace.ModelUsage `json:"metered,omitempty"`
	// Dropped counts ended steps of iterations that are no longer listed.
	Dropped int `json:"dropped,omitempty"`
}

// Bounds of the listed steps, and of those that a run carries over when it continues as new.
const (
	maxInstances = 1000
	maxCarried   = 200
)

// Apply changes the state of the step at a path.
func (s *State) Apply(path string, at time.Time, f Fact) {
	i := s.find(path)
	if i < 0 || s.Steps[i].Status.Over() && !f.Status.Over() && f.Status != "" {
		s.Steps = append(s.Steps, StepState{Path: path, Start: at})
		i = len(s.Steps) - 1
	}
	t := &s.Steps[i]
	t.merge(f)
	if f.Operation != "" {
		s.Operations++
	}
	if f.Usage != nil {
		s.Usage = s.Usage.Add(*f.Usage)
		if f.Metered {
			s.meter(f.Model, *f.Usage)
		}
	}
	if f.Status.Over() && f.Status != "" {
		t.End = at
	}
	s.prune(maxInstances)
}

func (s *State) meter(model string, u ace.Usage) {
	all := ace.ModelUsage{}
	if s.Metered != nil {
		maps.Copy(all, *s.Metered) //workflowcheck:ignore
	}
	all[model] = all[model].Add(u)
	s.Metered = &all
}

func (s *State) find(path string) int {
	for i := len(s.Steps) - 1; i >= 0; i-- {
		if s.Steps[i].Path == path {
			return i
		}
	}
	return -1
}

func (t *StepState) merge(f Fact) {
	if f.Status != "" {
		t.Status = f.Status
	}
	for _, field := range []struct {
		to   *string
		from string
	}{{&t.Kind, f.Kind}, {&t.Name, f.Name}, {&t.Detail, f.Detail}, {&t.Error, f.Error},
		{&t.Operation, f.Operation}} {
		if field.from != "" {
			*field.to = field.from
		}
	}
	t.Reused = t.Reused || f.Reused
	t.Approval = t.Approval || f.Approval
	t.TimedOut = t.TimedOut || f.TimedOut
	t.Count = max(t.Count, f.Count)
	t.Done = max(t.Done, f.Done)
	if f.Usage != nil {
		t.Usage = f.Usage
	}
}

// prune drops the oldest ended steps of iterations if there are more than limit steps, in batches.
func (s *State) prune(limit int) {
	if len(s.Steps) <= limit {
		return
	}
	left := len(s.Steps) - limit*3/4
	s.Steps = slices.DeleteFunc(s.Steps, func(t StepState) bool {
		if left == 0 || !t.Status.Over() || t.Status == StepFailed || !strings.Contains(t.Path, "/") {
			return false
		}
		left--
		s.Dropped++
		return true
	})
	if extra := len(s.Steps) - 2*maxInstances; extra > 0 { // only failed, open and top-level steps are left
		s.Dropped += extra
		s.Steps = slices.Delete(s.Steps, 0, extra)
	}
}

// Waiting lists the steps that wait for a decision.
func (s *State) Waiting() (list []StepState) {
	for _, t := range s.Steps {
		if t.Status == StepWaiting && t.Approval {
			list = append(list, t)
		}
	}
	return list
}

// Clone returns a copy that does not change with the state.
func (s *State) Clone() State {
	c := *s
	c.Steps = slices.Clone(s.Steps)
	return c
}
