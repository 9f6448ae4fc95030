package run

import (
	"encoding/json"

	"acescope/engine/runner"
)

// BlueprintType says what a blueprint describes.
type BlueprintType string

// Blueprint types.
const (
	Agent         BlueprintType = "agent"
	Deterministic BlueprintType = "deterministic"
)

// Strategy says how parameters reach a deterministic program.
type Strategy string

// Strategies. StdinJSON is the default.
const (
	StdinJSON Strategy = "stdin_json"
	Args      Strategy = "args"
	Env       Strategy = "env"
	File      Strategy = "file"
)

// OnLoss says what becomes of a run whose runner dies.
type OnLoss string

// What becomes of it: it fails, or is given to another runner, which only an idempotent one
// may be.
const (
	Fail OnLoss = "fail"
	Move OnLoss = "move"
)

// Blueprint is a blueprint as a run carries it: resolved, so that the run does not depend on
// files that may change.
type Blueprint struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Type        BlueprintType   `json:"type"`
	Tags        []string        `json:"tags,omitempty"`
	Demands     *runner.Demands `json:"demands,omitempty"`
	Digest      string          `json:"digest"` // SHA-256 of its files, lower-case hexadecimal
	// Dir is where its files lie on the machine that resolved it; commands name it as
	// {blueprint_dir}.
	Dir            string `json:"dir,omitempty"`
	TimeoutSeconds int    `json:"timeout_seconds,omitempty"` // 0: DefaultTimeout
	OnRunnerLoss   OnLoss `json:"on_runner_loss,omitempty"`  // "": Fail

	// Of an agent.
	SystemPrompt   string                     `json:"system_prompt,omitempty"`
	MCPServers     map[string]json.RawMessage `json:"mcp_servers,omitempty"`
	Model          string                     `json:"model,omitempty"`
	PermissionMode string                     `json:"permission_mode,omitempty"`
	AllowedTools   []string                   `json:"allowed_tools,omitempty"`

	// Of a deterministic program. Argv is the command, split once; Script is the text of
	// agent.command.sh, run in its place. Shell tells that Command goes to /bin/sh.
	Argv     []string `json:"argv,omitempty"`
	Command  string   `json:"command,omitempty"`
	Shell    bool     `json:"shell,omitempty"`
	Script   string   `json:"script,omitempty"`
	Strategy Strategy `json:"parameter_strategy,omitempty"`
	// Schema is the JSON Schema of the parameters, nil where any object will do.
	Schema json.RawMessage `json:"parameters_schema,omitempty"`
	// Env are the names of the runner's variables that the program gets beside the few that
	// every program does.
	Env        []string `json:"env,omitempty"`
	WorkingDir string   `json:"working_dir,omitempty"` // in place of the run's project directory
	// Idempotent tells that the program may be run again after it may have run.
	Idempotent bool `json:"idempotent,omitempty"`
}
