package run

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/runner"
)

// Workflow is the type of a run's workflow and IDPrefix the prefix of its id.
const (
	Workflow = "AceRunWorkflow"
	IDPrefix = "run/"
)

// StepPrefix is the prefix of the ids of runs that execute a step of a task or of a flow. Lists of all runs
// omit them, since they list the task or the flow.
const StepPrefix = "step_"

// The update, query and signals of a run. A signal that does not match the current claim is
// counted and otherwise ignored.
const (
	UpdateStop = "stop"    // [StopRequest] → [State]
	QueryRun   = "get_run" // → [State]

	SignalClaimed   = "claimed"            // [runner.Claim], from the dispatcher
	SignalUnmatched = "unmatched"          // [runner.Unmatched], from the dispatcher
	SignalLost      = "runner_lost"        // [runner.Lost], from the dispatcher
	SignalStarted   = "started"            // [ProgramStart], from the runner, except for very short runs
	SignalReport    = session.SignalReport // [session.Report], from the agent's session
)

// ErrTypeOver is the error type of an update that arrives after the end of the run.
const ErrTypeOver = "RunOver"

// ActivityExecute executes a run on the queue of its runner: [Execution] → [Result].
const ActivityExecute = "execute_run"

// Failure types of [ActivityExecute] with which a runner returns a run: the runner ended or
// lost its lease while the program ran, or it never started the program.
const (
	TypeRunnerLost = string(RunnerLost)
	TypeNotStarted = "not_begun"
)

// Bounds of a run's texts in a history. Longer texts are stored as artifacts.
const (
	MaxPrompt  = 100_000   // characters of a prompt
	MaxOutput  = 16 << 10  // bytes of a structured output
	MaxText    = 8 << 10   // bytes of stdout, and of stderr: beginning and end
	MaxParams  = 256 << 10 // bytes of parameters
	MaxCapture = 16 << 20  // bytes of stdout, and of stderr, that are stored as an artifact
)

// DefaultMatchWithin is how long a run waits for a runner, and DefaultTimeout how long it may
// run, in seconds, unless its blueprint says otherwise.
const (
	DefaultMatchWithin = 300
	DefaultTimeout     = 3600
)

// WorkflowID returns the workflow id of a run.
func WorkflowID(runID string) string { return IDPrefix + runID }

// IDOf returns the run id of a workflow id, or "" for other workflows.
func IDOf(workflowID string) string {
	id, ok := strings.CutPrefix(workflowID, IDPrefix)
	if !ok {
		return ""
	}
	return id
}

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

// ValidName reports whether name can be a blueprint name or an id: 1 to 100 letters, digits,
// dots, dashes and underscores, starting with a letter or digit, without "..".
func ValidName(name string) bool {
	return validName.MatchString(name) && !strings.Contains(name, "..")
}

// Placeholders in a command and in the working directory, which the executor replaces by paths.
const (
	DirPlaceholder  = "{blueprint_dir}"
	FilePlaceholder = "{parameters_file}"
)

// EnvPrefix is the prefix of the variables of parameters, so that none of them replaces a
// variable such as PATH.
const EnvPrefix = "PARAM_"

// EnvName returns the variable of a parameter: [EnvPrefix] and the name in upper case with _
// for -.
func EnvName(parameter string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(parameter, "-", "_"))
}

var parameterName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

// ValidParameter reports whether a parameter of this name can be a flag or a variable.
func ValidParameter(name string) bool { return parameterName.MatchString(name) }

// BlueprintType is the kind of work a blueprint describes.
type BlueprintType string

// Blueprint types.
const (
	Agent         BlueprintType = "agent"
	Deterministic BlueprintType = "deterministic"
)

// Strategy is how parameters are passed to a deterministic program.
type Strategy string

// Strategies. StdinJSON is the default.
const (
	StdinJSON  Strategy = "stdin_json"
	Args       Strategy = "args"        // --key=value
	ArgsSpaced Strategy = "args_spaced" // --key value
	Env        Strategy = "env"
	File       Strategy = "file"
)

// Strategies returns all strategies.
func Strategies() []Strategy { return []Strategy{StdinJSON, Args, ArgsSpaced, Env, File} }

// SingleValues reports whether each parameter becomes arguments or a variable of its own.
func (s Strategy) SingleValues() bool { return s == Args || s == ArgsSpaced || s == Env }

// OnLoss is what happens to a run whose runner dies: it fails, or it moves to another runner,
// which only idempotent programs may do.
type OnLoss string

// Values of [OnLoss].
const (
	Fail OnLoss = "fail"
	Move OnLoss = "move"
)

// Blueprint is a resolved blueprint: a run that carries it does not depend on files.
type Blueprint struct {
	Name         string               `json:"name"`
	Description  string               `json:"description"`
	Type         BlueprintType        `json:"type"`
	Tags         []string             `json:"tags,omitempty"`
	Requirements *runner.Requirements `json:"demands,omitempty"`
	// SHA-256 of its files, lower-case hexadecimal
	Digest string `json:"digest"`
	// on the machine that resolved it; {blueprint_dir} in commands
	Dir            string `json:"dir,omitempty"`
	TimeoutSeconds int    `json:"timeout_seconds,omitempty"` // 0: DefaultTimeout
	OnRunnerLoss   OnLoss `json:"on_runner_loss,omitempty"`  // "": Fail

	// Fields of an agent.
	SystemPrompt   string                     `json:"system_prompt,omitempty"`
	MCPServers     map[string]json.RawMessage `json:"mcp_servers,omitempty"`
	Model          string                     `json:"model,omitempty"`
	PermissionMode string                     `json:"permission_mode,omitempty"`
	AllowedTools   []string                   `json:"allowed_tools,omitempty"`

	// Fields of a deterministic program. Argv is the split command; Script is the text of
	// agent.command.sh, which replaces the command. With Shell, /bin/sh executes Command.
	Argv     []string `json:"argv,omitempty"`
	Command  string   `json:"command,omitempty"`
	Shell    bool     `json:"shell,omitempty"`
	Script   string   `json:"script,omitempty"`
	Strategy Strategy `json:"parameter_strategy,omitempty"`
	// Schema is the JSON Schema of the parameters; nil allows any object.
	Schema json.RawMessage `json:"parameters_schema,omitempty"`
	// Env names variables of the runner that the program gets in addition to the standard ones.
	Env        []string `json:"env,omitempty"`
	WorkingDir string   `json:"working_dir,omitempty"` // overrides the run's project directory
	Idempotent bool     `json:"idempotent,omitempty"`  // the program may be executed more than once
}

// Type is the type of a run.
type Type string

// Types of runs.
const (
	StartSession  Type = "start_session"
	ResumeSession Type = "resume_session"
	ExecuteTask   Type = "execute_task"
)

// Mode is how the caller learns of the end of a run: by waiting, by polling, or by a message
// to its session.
type Mode string

// Modes.
const (
	Sync          Mode = "sync"
	AsyncPoll     Mode = "async_poll"
	AsyncCallback Mode = "async_callback"
)

// Input is the input of a run's workflow, complete: defaults are filled in, the blueprint is
// resolved and the parameters are checked.
type Input struct {
	RunID     string `json:"run_id"`
	SessionID string `json:"session_id"` // "ses_" and 12 hexadecimal digits, unless the caller chose it
	Type      Type   `json:"type"`
	AgentName string `json:"agent_name,omitempty"` // the name of an agent's blueprint
	TaskName  string `json:"task_name,omitempty"`  // the name of a program's blueprint
	// Blueprint is nil for a resumed session, and above [ace.InlineBytes], where BlueprintRef
	// replaces it.
	Blueprint    *Blueprint `json:"blueprint,omitempty"`
	BlueprintRef *ace.Ref   `json:"blueprint_ref,omitempty"`

	Prompt        string          `json:"prompt,omitempty"` // of an agent
	PromptRef     *ace.Ref        `json:"prompt_ref,omitempty"`
	Parameters    json.RawMessage `json:"parameters,omitempty"` // of a program: an object
	ParametersRef *ace.Ref        `json:"parameters_ref,omitempty"`

	ProjectDir      string              `json:"project_dir,omitempty"` // absolute; "": the runner's
	Requirements    runner.Requirements `json:"demands"`               // of the blueprint and the caller
	Mode            Mode                `json:"mode"`
	ParentSessionID string              `json:"parent_session_id,omitempty"`
	ParentRunID     string              `json:"parent_run_id,omitempty"`
	CreatedAt       time.Time           `json:"created_at"`
	MatchWithin     int                 `json:"match_within_seconds,omitempty"` // 0: DefaultMatchWithin
	By              string              `json:"by,omitempty"`
	// Queue, if set, is the task queue that executes the run; the dispatcher is not asked.
	Queue string `json:"queue,omitempty"`
	// Revision is the revision of the contract that the starter asks the run to follow; see [Revision].
	Revision int `json:"revision,omitempty"`
}

// Revision is the current value of [Input.Revision]. From revision 1 on, the workflow closes with the status
// of its run: it fails if the run failed and is canceled if the run was stopped, with the result as the
// details. Workflows of revision 0 complete with the result of a failed run.
const Revision = 1

// IsProgram reports whether the run executes a deterministic program.
func (in Input) IsProgram() bool { return in.Type == ExecuteTask }

// Name returns the blueprint's name.
func (in Input) Name() string {
	if in.TaskName != "" {
		return in.TaskName
	}
	return in.AgentName
}

// Execution is the input of [ActivityExecute].
type Execution struct {
	Input         Input        `json:"input"`
	Claim         runner.Claim `json:"claim"`
	WorkflowRunID string       `json:"workflow_run_id"`
}

// ProgramStart reports that a runner has started the program of a run.
type ProgramStart struct {
	Claim int64     `json:"claim"`
	Try   int       `json:"try"`
	PID   int       `json:"pid,omitempty"`
	At    time.Time `json:"at"`
}

// StopRequest asks a run to stop.
type StopRequest struct {
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
}

// Status is the status of a run.
type Status string

// Statuses of runs. Document 004 calls Running "started"; a run that exceeds its time limit is
// Failed with the reason [Timeout].
const (
	Pending   Status = "pending"
	Claimed   Status = "claimed"
	Running   Status = "running"
	Stopping  Status = "stopping"
	Completed Status = "completed"
	Failed    Status = "failed"
	Stopped   Status = "stopped"
)

// Over reports whether the run has ended.
func (s Status) Over() bool { return s == Completed || s == Failed || s == Stopped }

// Reason is why a run failed.
type Reason string

// Reasons.
const (
	NoRunner        Reason = "no_runner"  // no runner took the run in time
	QueueFull       Reason = "queue_full" // too many runs wait
	BadRequirements Reason = "bad_demands"
	RunnerLost      Reason = "runner_lost"
	NotStarted      Reason = "not_started" // the program is missing or not executable
	ExitCode        Reason = "exit_code"   // the exit code is not 0
	Signaled        Reason = "signalled"
	Timeout         Reason = "timeout"
	BadParameters   Reason = "bad_parameters" // the runner found that they do not match the schema
	AgentFailed     Reason = "agent_failed"
	SessionEnded    Reason = "session_ended"
	Terminated      Reason = "terminated"
	Internal        Reason = "internal"
)

// Values of [Result.OutputIs].
const (
	OutputJSON    = "json"
	OutputText    = "text"
	OutputNone    = "none"
	OutputInvalid = "invalid" // JSON that is truncated or followed by other text
)

// Result is the result of a run.
type Result struct {
	RunID     string `json:"run_id"`
	SessionID string `json:"session_id"`
	Status    Status `json:"status"`
	Reason    Reason `json:"reason,omitempty"` // set if the run failed
	Error     string `json:"error,omitempty"`  // one sentence

	// Output is the JSON that a program wrote to stdout, or an agent's last message as a JSON
	// string. OutputRef replaces it above [MaxOutput].
	Output    json.RawMessage `json:"output,omitempty"`
	OutputRef *ace.Ref        `json:"output_ref,omitempty"`
	OutputIs  string          `json:"output_is,omitempty"`
	// Stdout and Stderr are the beginning and the end, at most [MaxText] bytes; the references
	// hold up to [MaxCapture]. Dropped counts bytes that were not stored.
	Stdout    string   `json:"stdout"`
	Stderr    string   `json:"stderr"`
	StdoutRef *ace.Ref `json:"stdout_ref,omitempty"`
	StderrRef *ace.Ref `json:"stderr_ref,omitempty"`
	Dropped   int64    `json:"dropped_bytes,omitempty"`

	ExitCode        *int      `json:"exit_code"` // nil unless the program exited by itself
	Signal          string    `json:"signal,omitempty"`
	DurationSeconds float64   `json:"duration_seconds"`
	StartedAt       time.Time `json:"started_at,omitzero"`

	Log     *ace.Ref  `json:"log,omitempty"` // the complete live log
	LogPath string    `json:"log_path,omitempty"`
	Usage   ace.Usage `json:"usage"`
	Turn    int       `json:"turn,omitempty"` // of the session
	Runner  string    `json:"runner_id,omitempty"`
	Claim   int64     `json:"claim,omitempty"`
}
