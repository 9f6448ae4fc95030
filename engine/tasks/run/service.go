package run

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/tasks/runner"
)

// Service starts, resumes, reads and stops runs, for orchestrating agents, scripts and users. An id is a run
// id, or a session id, which stands for the session's newest run.
type Service interface {
	Blueprints(ctx context.Context) ([]BlueprintInfo, error)
	Start(ctx context.Context, r Request) (Input, error)
	Resume(ctx context.Context, r Request) (Input, error)
	State(ctx context.Context, id string) (State, error)
	// Await waits for the end of a run.
	Await(ctx context.Context, runID string) (Result, error)
	Stop(ctx context.Context, id string, r StopRequest) (State, error)
	List(ctx context.Context, f Filter) ([]Summary, error)
}

// Errors of a [Service]. Each is wrapped with a sentence that says what is wrong and what to do.
var (
	ErrBadRequest  = errors.New("bad request")
	ErrNoBlueprint = ace.NotFound{Kind: "blueprint"}
	ErrNotFound    = ace.NotFound{Kind: "run or session"}
	ErrOver        = errors.New("it has ended")
)

// ErrorText returns the text of an error for the caller. It omits the words "bad request", since the rest of
// the text names the problem.
func ErrorText(err error) string {
	text := err.Error()
	if errors.Is(err, ErrBadRequest) {
		text = strings.Replace(text, ErrBadRequest.Error()+": ", "", 1)
	}
	return text
}

// Request asks for a run. Unset fields are "" or nil.
type Request struct {
	AgentName string `json:"agent_name,omitempty"` // the blueprint to start
	SessionID string `json:"session_id,omitempty"` // to resume; to start, an id of the caller's choice
	RunID     string `json:"run_id,omitempty"`     // of the caller's choice; the same id starts only one run
	Prompt    string `json:"prompt,omitempty"`
	// Parameters is nil without parameters, which differs from {}.
	Parameters   json.RawMessage     `json:"parameters,omitempty"`
	Mode         Mode                `json:"execution_mode,omitempty"` // "": Sync
	Requirements runner.Requirements `json:"additional_demands"`
	ProjectDir   string              `json:"project_dir,omitempty"`

	ParentSessionID string `json:"parent_session_id,omitempty"`
	ParentRunID     string `json:"parent_run_id,omitempty"`
	MatchWithin     int    `json:"match_within_seconds,omitempty"`
	By              string `json:"by,omitempty"`
}

// Summary is a run in a list.
type Summary struct {
	RunID           string     `json:"run_id"`
	SessionID       string     `json:"session_id"`
	Type            Type       `json:"type"`
	AgentName       string     `json:"agent_name"`
	Status          Status     `json:"status"`
	ExitStatus      ace.Status `json:"workflow_status"`
	RunnerID        string     `json:"runner_id,omitempty"`
	ParentSessionID string     `json:"parent_session_id,omitempty"`
	CreatedAt       time.Time  `json:"created_at"`
	EndedAt         time.Time  `json:"ended_at,omitzero"`
}

// MemoKey is the key of a run's memo: the values of a [Summary] that are not search attributes.
const MemoKey = "ace_run"

// Memo is the value of [MemoKey].
type Memo struct {
	SessionID       string `json:"session_id"`
	Type            Type   `json:"type"`
	AgentName       string `json:"agent_name"`
	ParentSessionID string `json:"parent_session_id,omitempty"`
	Mode            Mode   `json:"mode"`
}

// Filter narrows a list of runs. Unset fields are "".
type Filter struct {
	SessionID string
	AgentName string
	Parent    string // session id
	Status    Status
	Limit     int // 0: 100
}

// BlueprintInfo is a blueprint in a list. Error says why it cannot be used, or is "".
type BlueprintInfo struct {
	Name         string               `json:"name"`
	Description  string               `json:"description"`
	Type         BlueprintType        `json:"type"`
	Tags         []string             `json:"tags"`
	Requirements *runner.Requirements `json:"demands,omitempty"`
	Schema       json.RawMessage      `json:"parameters_schema,omitempty"`
	Path         string               `json:"path"`
	Error        string               `json:"error,omitempty"`
}
