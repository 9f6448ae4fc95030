package ace

import "slices"

// Activities that call an agent's CLI, for any workflow.
const (
	ActivityAgentCLI  = "execute_agent_cli"
	ActivityReadLog   = "read_cli_log"
	ActivityBreakdown = "request_task_breakdown"
)

// Agents lists the agent CLIs by their provider names.
func Agents() []string { return []string{"claude", "codex", "gemini", "opencode"} }

// IsAgent reports whether a provider is an agent's CLI.
func IsAgent(provider string) bool { return slices.Contains(Agents(), provider) }

// ClaudeCode is the executor type of claude. Observed runs of earlier versions have it as their source.
const ClaudeCode = "claude-code"

// AgentOf returns the agent that an executor type or the source of an observed run names, or "".
func AgentOf(name string) string {
	switch {
	case name == ClaudeCode:
		return "claude"
	case IsAgent(name):
		return name
	}
	return ""
}

// AgentCall is the input of [ActivityAgentCLI].
type AgentCall struct {
	// Provider is one of [Agents]; "" means claude.
	Provider string `json:"provider,omitempty"`
	// InstructionRef replaces an Instruction above InlineBytes. Task appends a task of a breakdown to the
	// instruction.
	Instruction    string    `json:"instruction,omitempty"`
	InstructionRef *Ref      `json:"instruction_ref,omitempty"`
	Task           *TaskPick `json:"task,omitempty"`
	WorkingDir     string    `json:"working_dir"` // absolute, on the worker's machine
	// SessionID is the session to resume; "" starts one.
	SessionID string `json:"session_id,omitempty"`
	Model     string `json:"model,omitempty"`
	// PermissionMode is default, plan, acceptEdits, dontAsk or full; "" is default.
	PermissionMode  string   `json:"permission_mode,omitempty"`
	AllowedTools    []string `json:"allowed_tools,omitempty"`
	DisallowedTools []string `json:"disallowed_tools,omitempty"`
	SystemPrompt    string   `json:"system_prompt,omitempty"` // appended to the agent's own
	MaxTurns        int      `json:"max_turns,omitempty"`
	MaxBudgetUSD    float64  `json:"max_budget_usd,omitempty"`
	// TimeoutMS limits one attempt; 0 means the activity's own timeout.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// ActivityName and SequenceNumber name the log. The default is the activity's type and its
	// number in the run.
	ActivityName   string `json:"activity_name,omitempty"`
	SequenceNumber *int   `json:"sequence_number,omitempty"`
}

// TaskPick selects one task of a breakdown by its 0-based index.
type TaskPick struct {
	Breakdown Ref `json:"breakdown"`
	Index     int `json:"index"`
}

// AgentResult is the result of [ActivityAgentCLI]. It holds facts and references, not the text
// of the session. Error is "" if Success is true.
type AgentResult struct {
	Success    bool    `json:"success"`
	ExitClass  string  `json:"exit_class"` // see docs/guides/agents.md
	Summary    string  `json:"summary"`
	Error      string  `json:"error,omitempty"`
	Provider   string  `json:"provider"`
	Model      string  `json:"model,omitempty"`
	Version    string  `json:"version,omitempty"`
	SessionID  string  `json:"session_id,omitempty"`
	CostUSD    float64 `json:"cost_usd"`
	Usage      Usage   `json:"usage"`
	DurationMS float64 `json:"duration_ms"`
	// Log is the artifact of the log, or nil; LogPath is its path in the data directory.
	// LogComplete is false if some lines could not be written.
	Log         *Ref   `json:"log,omitempty"`
	LogPath     string `json:"log_path,omitempty"`
	LogComplete bool   `json:"log_complete"`
	Events      int64  `json:"events"`
	Denials     int    `json:"denials,omitempty"` // denied tool calls
	TaskID      string `json:"task_id,omitempty"` // of a task of a breakdown
	Attempt     int32  `json:"attempt,omitempty"`
	// Recovered means that the result is an earlier attempt's; Continued means that this attempt
	// resumed the session of an earlier one.
	Recovered bool `json:"recovered,omitempty"`
	Continued bool `json:"continued,omitempty"`
}

// ReadLogInput is the input of [ActivityReadLog]. If Limit is above 0, the result includes a
// page of events from the 0-based number From.
type ReadLogInput struct {
	Log   Ref   `json:"log"`
	From  int64 `json:"from,omitempty"`
	Limit int   `json:"limit,omitempty"`
}

// LogContent is the result of [ActivityReadLog]. If the agent's final message is longer than
// [MaxLogResult] bytes, Result is truncated and ResultRef refers to the full message.
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
	// Next is the number of the event after the page, or 0 at the end.
	Next int64 `json:"next,omitempty"`
}

// MaxLogResult bounds the final message in a [LogContent], in bytes. MaxLogPage bounds its
// events, each of which has at most PreviewBytes of text.
const (
	MaxLogResult = 16 << 10
	MaxLogPage   = 100
)

// LogEvent is one event of an agent's log, truncated.
type LogEvent struct {
	N    int64  `json:"n"` // 0-based number in the log
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	Text string `json:"text,omitempty"`
	OK   *bool  `json:"ok,omitempty"`
}

// BreakdownInput is the input of [ActivityBreakdown]. References replace contents above
// InlineBytes.
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

// BreakdownResult is the result of [ActivityBreakdown]. Breakdown refers to an artifact of type
// [Breakdown]; it is nil if Success is false.
type BreakdownResult struct {
	AgentResult
	Breakdown *Ref `json:"breakdown,omitempty"`
	Tasks     int  `json:"tasks"`
}

// Breakdown is an agent's division of a plan into tasks.
type Breakdown struct {
	Tasks   []BreakdownTask `json:"tasks"`
	Outline string          `json:"outline,omitempty"`
}

// BreakdownTask is one task of a [Breakdown]. Details holds the agent's other fields.
type BreakdownTask struct {
	ID          string         `json:"id"`
	Title       string         `json:"title,omitempty"`
	Description string         `json:"description"`
	Details     map[string]any `json:"details,omitempty"`
}
