package run

import (
	"encoding/json"
	"time"

	"acescope/engine/ace"
	"acescope/engine/runner"
)

// Type says what a run does.
type Type string

// Types of runs.
const (
	StartSession  Type = "start_session"
	ResumeSession Type = "resume_session"
	ExecuteTask   Type = "execute_task"
)

// Mode says how the one who started a run learns of its end.
type Mode string

// Modes: by waiting, by asking, or by being told as a session.
const (
	Sync          Mode = "sync"
	AsyncPoll     Mode = "async_poll"
	AsyncCallback Mode = "async_callback"
)

// Input is what a run is started with. It is whole: defaults are filled in, the blueprint
// is resolved and the parameters are checked.
type Input struct {
	RunID     string `json:"run_id"`
	SessionID string `json:"session_id"` // "ses_" and twelve hexadecimal digits, unless somebody chose another
	Type      Type   `json:"type"`
	// AgentName is the blueprint's name, TaskName the same of a deterministic one.
	AgentName string `json:"agent_name,omitempty"`
	TaskName  string `json:"task_name,omitempty"`
	// Blueprint is nil where BlueprintRef names it, which is above [ace.InlineBytes], and for
	// a session that is resumed.
	Blueprint    *Blueprint `json:"blueprint,omitempty"`
	BlueprintRef *ace.Ref   `json:"blueprint_ref,omitempty"`

	Prompt        string          `json:"prompt,omitempty"` // of an agent
	PromptRef     *ace.Ref        `json:"prompt_ref,omitempty"`
	Parameters    json.RawMessage `json:"parameters,omitempty"` // of a program: an object, {} is one
	ParametersRef *ace.Ref        `json:"parameters_ref,omitempty"`

	ProjectDir string         `json:"project_dir,omitempty"` // absolute; "" for the runner's
	Demands    runner.Demands `json:"demands"`               // the blueprint's and the caller's together
	Mode       Mode           `json:"mode"`
	// ParentSessionID is the session that started the run, ParentRunID the run that did so.
	ParentSessionID string    `json:"parent_session_id,omitempty"`
	ParentRunID     string    `json:"parent_run_id,omitempty"`
	CreatedAt       time.Time `json:"created_at"`
	MatchWithin     int       `json:"match_within_seconds,omitempty"` // 0: DefaultMatchWithin
	By              string    `json:"by,omitempty"`
	// Queue, where it is set, is the task queue that executes the run; nobody matches it then.
	Queue string `json:"queue,omitempty"`
}

// Program tells whether the run executes a deterministic program.
func (in Input) Program() bool { return in.Type == ExecuteTask }

// Name is the blueprint's name.
func (in Input) Name() string {
	if in.TaskName != "" {
		return in.TaskName
	}
	return in.AgentName
}

// Execution is what a runner is given to execute.
type Execution struct {
	Input Input        `json:"input"`
	Claim runner.Claim `json:"claim"`
	// Run is the run id of the workflow.
	WorkflowRunID string `json:"workflow_run_id"`
}

// Began says that a runner has started a run.
type Began struct {
	Claim int64     `json:"claim"`
	Try   int       `json:"try"`
	PID   int       `json:"pid,omitempty"`
	At    time.Time `json:"at"`
}

// StopRequest says why and by whom a run is to be stopped.
type StopRequest struct {
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
}
