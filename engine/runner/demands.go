package runner

// Executor types that acescope brings along. A runner with an executor of its own names it
// after the executor's directory.
const (
	Deterministic = "deterministic"
	ClaudeCode    = "claude-code"
	Codex         = "codex"
	Gemini        = "gemini"
	OpenCode      = "opencode"
)

// Agent is the agent's command line that an executor type stands for, "" for others.
func Agent(executorType string) string {
	switch executorType {
	case ClaudeCode:
		return "claude"
	case Codex, Gemini, OpenCode:
		return executorType
	}
	return ""
}

// TypeOf is the executor type of an agent's command line, "" for others.
func TypeOf(agent string) string {
	if agent == "claude" {
		return ClaudeCode
	}
	if Agent(agent) == agent {
		return agent
	}
	return ""
}

// Demands are what a run asks of its runner. What is not demanded is "" or empty. Hostname,
// project directory and executor type must be the same, the tags a subset of the runner's.
type Demands struct {
	Hostname     string   `json:"hostname,omitempty"`
	ProjectDir   string   `json:"project_dir,omitempty"`
	ExecutorType string   `json:"executor_type,omitempty"`
	Tags         []string `json:"tags,omitempty"` // sorted, each once
}

// Capabilities are what a runner offers.
type Capabilities struct {
	Hostname string `json:"hostname"`
	// ProjectDir is the directory that it works in. AnyProject tells that it works in any
	// directory of its machine; ProjectDir is then where it does unless a run says otherwise.
	ProjectDir    string   `json:"project_dir"`
	AnyProject    bool     `json:"any_project,omitempty"`
	ExecutorTypes []string `json:"executor_types"`
	Tags          []string `json:"tags,omitempty"`
	Slots         int      `json:"slots"` // runs that it executes at a time
}
