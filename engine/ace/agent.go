package ace

import "slices"

// Activities that call an agent's command line, for any workflow.
const (
	ActivityAgentCLI  = "execute_agent_cli"
	ActivityReadLog   = "read_cli_log"
	ActivityBreakdown = "request_task_breakdown"
)

// Agents lists the agent command lines by the names that providers and calls give them.
func Agents() []string { return []string{"claude", "codex", "gemini", "opencode"} }

// IsAgent tells whether a provider is an agent's command line.
func IsAgent(provider string) bool { return slices.Contains(Agents(), provider) }

// AgentCall is the input of [ActivityAgentCLI].
type AgentCall struct {
	// Provider is one of [Agents]; "" is claude.
	Provider string `json:"provider,omitempty"`
	// Instruction is what the agent is to do; InstructionRef is its place where it is above
	// InlineBytes. Task adds a task of a breakdown to it.
	Instruction    string    `json:"instruction,omitempty"`
	InstructionRef *Ref      `json:"instruction_ref,omitempty"`
	Task           *TaskPick `json:"task,omitempty"`
	WorkingDir     string    `json:"working_dir"` // absolute, on the worker's machine
	// SessionID is the session to go on with; "" begins one.
	SessionID string `json:"session_id,omitempty"`
	Model     string `json:"model,omitempty"`
	// PermissionMode is default, plan, acceptEdits, dontAsk or full; "" is default.
	PermissionMode  string   `json:"permission_mode,omitempty"`
	AllowedTools    []string `json:"allowed_tools,omitempty"`
	DisallowedTools []string `json:"disallowed_tools,omitempty"`
	SystemPrompt    string   `json:"system_prompt,omitempty"` // added to the agent's own
	MaxTurns        int      `json:"max_turns,omitempty"`
	MaxBudgetUSD    float64  `json:"max_budget_usd,omitempty"`
	// TimeoutMS ends one attempt; 0 leaves it to the activity's own time-out.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// ActivityName and SequenceNumber name the log; without them it is the activity's type
	// and the number of the activity in its run.
	ActivityName   string `json:"activity_name,omitempty"`
	SequenceNumber *int   `json:"sequence_number,omitempty"`
}

// TaskPick is one task of a breakdown, by its place from 0.
type TaskPick struct {
	Breakdown Ref `json:"breakdown"`
	Index     int `json:"index"`
}

// AgentResult is what [ActivityAgentCLI] returns: facts and references, never what was said.
// Error is "" where Success is true.
type AgentResult struct {
	Success    bool    `json:"success"`
	ExitClass  string  `json:"exit_class"` // see docs/agents.md
	Summary    string  `json:"summary"`
	Error      string  `json:"error,omitempty"`
	Provider   string  `json:"provider"`
	Model      string  `json:"model,omitempty"`
	Version    string  `json:"version,omitempty"`
	SessionID  string  `json:"session_id,omitempty"`
	CostUSD    float64 `json:"cost_usd"`
	Usage      Usage   `json:"usage"`
	DurationMS float64 `json:"duration_ms"`
	// Log is the sealed log, nil where there is none; LogPath is its name below the data
	// directory. LogComplete is false where lines of it could not be written.
	Log         *Ref   `json:"log,omitempty"`
	LogPath     string `json:"log_path,omitempty"`
	LogComplete bool   `json:"log_complete"`
	Events      int64  `json:"events"`
	Denials     int    `json:"denials,omitempty"` // tool calls that were not allowed
	Attempt     int32  `json:"attempt,omitempty"`
	// Recovered tells that an earlier attempt had done it; Continued that this one went on
	// with the session of an earlier one.
	Recovered bool `json:"recovered,omitempty"`
	Continued bool `json:"continued,omitempty"`
}

// ReadLogInput is the input of [ActivityReadLog]. A page of events is given where Limit is
// above 0: those from number From, from 0.
type ReadLogInput struct {
	Log   Ref   `json:"log"`
	From  int64 `json:"from,omitempty"`
	Limit int   `json:"limit,omitempty"`
}

// LogContent is what [ActivityReadLog] returns. Where the agent's last words are longer
// than [MaxLogResult] bytes, Result is their beginning and ResultRef names them whole.
type LogContent struct {
	Result     string     `json:"result"`
	ResultRef  *Ref       `json:"result_ref,omitempty"`
	Success    bool       `json:"success"`
	ExitClass  string     `json:"exit_class"`
	Error      string     `json:"error,omitempty"`
	Provider   string     `json:"provider"`
	SessionID  string     `json:"session_id,omitempty"`
	CostUSD    float64    `json:"cost_usd"`
	DurationMS float64    `json:"duration_ms"`
	Events     int64      `json:"events"`
	Page       []LogEvent `json:"page,omitempty"`
	// Next is the number of the event after the page, 0 where there is none.
	Next int64 `json:"next,omitempty"`
}

// MaxLogResult is how much of an agent's last words [LogContent] holds, and MaxLogPage how
// many events, each with at most PreviewBytes of text.
const (
	MaxLogResult = 16 << 10
	MaxLogPage   = 100
)

// LogEvent is one thing that an agent said or did, shortened.
type LogEvent struct {
	N    int64  `json:"n"` // its number in the log, from 0
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	Text string `json:"text,omitempty"`
	OK   *bool  `json:"ok,omitempty"`
}

// BreakdownInput is the input of [ActivityBreakdown]. What is above InlineBytes comes by
// reference.
type BreakdownInput struct {
	Phase               string `json:"phase"` // scaffold or implement
	PlanContent         string `json:"plan_content,omitempty"`
	PlanRef             *Ref   `json:"plan_ref,omitempty"`
	RequirementsContent string `json:"requirements_content,omitempty"`
	RequirementsRef     *Ref   `json:"requirements_ref,omitempty"`
	Provider            string `json:"provider,omitempty"`
	WorkingDir          string `json:"working_dir"`
	SessionID           string `json:"session_id,omitempty"`
	Model               string `json:"model,omitempty"`
	PermissionMode      string `json:"permission_mode,omitempty"`
	TimeoutMS           int64  `json:"timeout_ms,omitempty"`
	SequenceNumber      *int   `json:"sequence_number,omitempty"`
}

// BreakdownResult is what [ActivityBreakdown] returns. Breakdown names an artifact of type
// [Breakdown]; it is nil where Success is false.
type BreakdownResult struct {
	AgentResult
	Breakdown *Ref `json:"breakdown,omitempty"`
	Tasks     int  `json:"tasks"`
}

// Breakdown is a plan in tasks, as an agent gave it.
type Breakdown struct {
	Tasks   []BreakdownTask `json:"tasks"`
	Outline string          `json:"outline,omitempty"`
}

// BreakdownTask is one of them. What else the agent said of it is in Details.
type BreakdownTask struct {
	ID          string         `json:"id"`
	Title       string         `json:"title,omitempty"`
	Description string         `json:"description"`
	Details     map[string]any `json:"details,omitempty"`
}
