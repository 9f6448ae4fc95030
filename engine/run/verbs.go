package run

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/runner"
)

// What can be wrong with what somebody asks of runs. Each is wrapped with one sentence that
// says what was wrong and what to do.
var (
	ErrBadRequest  = errors.New("bad request")
	ErrNoBlueprint = errors.New("no such blueprint")
	ErrNotFound    = errors.New("no such run or session")
	ErrOver        = errors.New("it has ended")
)

// Sentence is what an error tells whoever asked. That a request was bad goes without saying
// where the error says what is wrong with it.
func Sentence(err error) string {
	said := err.Error()
	if errors.Is(err, ErrBadRequest) {
		said = strings.Replace(said, ErrBadRequest.Error()+": ", "", 1)
	}
	return said
}

// Request asks for a run. What is not said is "" or nil.
type Request struct {
	AgentName string `json:"agent_name,omitempty"` // of the blueprint, to start
	SessionID string `json:"session_id,omitempty"` // to resume; to start, an id that somebody chose
	RunID     string `json:"run_id,omitempty"`     // that somebody chose: asking twice starts one run
	Prompt    string `json:"prompt,omitempty"`
	// Parameters is nil where there are none, which is not the same as {}.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	Mode       Mode            `json:"execution_mode,omitempty"` // "": Sync
	Demands    runner.Demands  `json:"additional_demands"`
	ProjectDir string          `json:"project_dir,omitempty"`

	ParentSessionID string `json:"parent_session_id,omitempty"`
	ParentRunID     string `json:"parent_run_id,omitempty"`
	MatchWithin     int    `json:"match_within_seconds,omitempty"`
	By              string `json:"by,omitempty"`
}

// Summary is a run in a list.
type Summary struct {
	RunID           string         `json:"run_id"`
	SessionID       string         `json:"session_id"`
	Type            Type           `json:"type"`
	AgentName       string         `json:"agent_name"`
	Status          Status         `json:"status"`
	ExitStatus      ace.ExitStatus `json:"exit_status"`
	RunnerID        string         `json:"runner_id,omitempty"`
	ParentSessionID string         `json:"parent_session_id,omitempty"`
	CreatedAt       time.Time      `json:"created_at"`
	EndedAt         time.Time      `json:"ended_at,omitzero"`
}

// MemoRun is the memo key under which a run is started with what a list tells of it beside
// its search attributes, as [Listed].
const MemoRun = "ace_run"

// Listed is the value of [MemoRun].
type Listed struct {
	SessionID       string `json:"session_id"`
	Type            Type   `json:"type"`
	AgentName       string `json:"agent_name"`
	ParentSessionID string `json:"parent_session_id,omitempty"`
	Mode            Mode   `json:"mode"`
}

// Filter narrows a list of runs. What is not said is "".
type Filter struct {
	SessionID string
	AgentName string
	Parent    string // session
	Status    Status
	Limit     int // 0: 100
}

// Described is a blueprint in a list. Error says why it cannot be used, "" where it can.
type Described struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Type        BlueprintType   `json:"type"`
	Tags        []string        `json:"tags"`
	Demands     *runner.Demands `json:"demands,omitempty"`
	Schema      json.RawMessage `json:"parameters_schema,omitempty"`
	Path        string          `json:"path"`
	Error       string          `json:"error,omitempty"`
}

// Verbs are what can be done with runs: the same for an orchestrating agent, a script and a
// person. An id is a run's, or a session's, which stands for its newest run.
type Verbs interface {
	Blueprints(ctx context.Context) ([]Described, error)
	Start(ctx context.Context, r Request) (Input, error)
	Resume(ctx context.Context, r Request) (Input, error)
	State(ctx context.Context, id string) (State, error)
	// Await waits for the end of a run.
	Await(ctx context.Context, runID string) (Result, error)
	Stop(ctx context.Context, id string, r StopRequest) (State, error)
	List(ctx context.Context, f Filter) ([]Summary, error)
}
