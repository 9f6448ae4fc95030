package agentcli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

type claudeAdapter struct{}

func (claudeAdapter) CLI() CLI { return Claude }

func (claudeAdapter) Features() Features {
	return Features{
		SessionID: true, Resume: true, Fork: true, Streaming: true, AllowedTools: true, DisallowTools: true, MCP: true,
		MaxTurns: true, Budget: true, SystemPrompt: true, DontAsk: true, ReportsCost: true,
	}
}

func (claudeAdapter) VersionArgv(binary string) []string {
	return []string{Call{Binary: binary}.binary("claude"), "--version"}
}

// Oldest is the first that has the control protocol and pre-minted sessions as they are now.
func (claudeAdapter) Oldest() Version { return Version{2, 0, 0} }

func (claudeAdapter) InstallHint() string {
	return "npm install -g @anthropic-ai/claude-code, then claude /login, or set ANTHROPIC_API_KEY"
}

// Inherit leaves out CLAUDECODE, and the variables by which a Claude Code that runs this
// program would be taken for the parent of the one that is called.
func (claudeAdapter) Inherit() []string {
	return inherit("ANTHROPIC_*", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_*", "CLAUDE_CODE_MAX_*",
		"CLAUDE_CODE_DISABLE_*", "CLAUDE_CODE_SKIP_*", "DISABLE_*", "AWS_*", "GOOGLE_*", "CLOUD_ML_REGION", "VERTEX_*",
		"BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS", "MCP_*", "GIT_*", "SSH_AUTH_SOCK")
}

// Command gives the instruction over standard input, where it cannot be a flag, is bounded
// by no argument's length and is not seen in the list of processes.
func (a claudeAdapter) Command(c Call) (Command, error) {
	if err := c.check(Claude, a.Features()); err != nil {
		return Command{}, err
	}
	if c.SessionID != "" && !uuidShape.MatchString(c.SessionID) {
		return Command{}, &CallError{Claude, "the id of a new session must be a UUID"}
	}
	argv := []string{c.binary("claude"), "-p", "--output-format=stream-json", "--verbose"}
	if c.Streaming {
		argv = append(argv, "--input-format=stream-json", "--replay-user-messages")
	}
	if c.Deltas {
		argv = append(argv, "--include-partial-messages")
	}
	argv = option(argv, "model", c.Model)
	argv = option(argv, "session-id", c.SessionID)
	argv = option(argv, "resume", c.Resume)
	if c.Fork {
		argv = append(argv, "--fork-session")
	}
	mode, err := claudeMode(c.Permission)
	if err != nil {
		return Command{}, err
	}
	argv = option(argv, "permission-mode", mode)
	if c.AskPermission {
		argv = append(argv, "--permission-prompt-tool=stdio")
	}
	argv = option(argv, "allowedTools", strings.Join(c.AllowedTools, ","))
	argv = option(argv, "disallowedTools", strings.Join(c.DisallowedTools, ","))
	servers, err := claudeServers(c)
	if err != nil {
		return Command{}, err
	}
	if servers != "" {
		argv = append(argv, "--mcp-config="+servers, "--strict-mcp-config")
	}
	if c.MaxTurns > 0 {
		argv = option(argv, "max-turns", strconv.Itoa(c.MaxTurns))
	}
	if c.MaxBudgetUSD > 0 {
		argv = option(argv, "max-budget-usd", strconv.FormatFloat(c.MaxBudgetUSD, 'f', -1, 64))
	}
	argv = option(argv, "append-system-prompt", c.SystemPrompt)
	cmd := Command{
		Argv: argv, Dir: c.WorkingDir, Streaming: c.Streaming,
		Env:   []string{"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1"},
		Unset: []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"},
	}
	if !c.Streaming {
		cmd.Input = []byte(c.Instruction)
	}
	return cmd, nil
}

// claudeMode maps a permission mode.
func claudeMode(p Permission) (string, error) {
	switch p {
	case PermissionDefault:
		return "", nil
	case PermissionPlan, PermissionAcceptEdits, PermissionDontAsk:
		return string(p), nil
	case PermissionFull:
		return "bypassPermissions", nil
	}
	return "", noMode(Claude, p)
}

func noMode(cli CLI, p Permission) error {
	return &CallError{cli, fmt.Sprintf("%v: %.40q", errPermission, string(p))}
}

// claudeServers is the JSON of the MCP servers, "" where there are none.
func claudeServers(c Call) (string, error) {
	if c.MCPConfig == "" && c.HostServer == "" {
		return "", nil
	}
	var config struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if c.MCPConfig != "" {
		if err := json.Unmarshal([]byte(c.MCPConfig), &config); err != nil {
			return "", &CallError{Claude, "the MCP configuration is no JSON: " + err.Error()}
		}
	}
	if config.Servers == nil {
		config.Servers = map[string]json.RawMessage{}
	}
	if c.HostServer != "" {
		host, err := json.Marshal(map[string]string{"type": "sdk", "name": c.HostServer})
		if err != nil {
			return "", err
		}
		config.Servers[c.HostServer] = host
	}
	text, err := json.Marshal(config)
	return string(text), err
}

// option adds a flag with its value in one argument, unless the value is empty.
func option(argv []string, name, value string) []string {
	if value == "" {
		return argv
	}
	return append(argv, "--"+name+"="+value)
}

type codexAdapter struct{}

func (codexAdapter) CLI() CLI { return Codex }

func (codexAdapter) Features() Features { return Features{Resume: true} }

func (codexAdapter) VersionArgv(binary string) []string {
	return []string{Call{Binary: binary}.binary("codex"), "--version"}
}

// Oldest is the first with these events.
func (codexAdapter) Oldest() Version { return Version{0, 44, 0} }

func (codexAdapter) InstallHint() string { return "npm install -g @openai/codex, then codex login" }

func (codexAdapter) Inherit() []string {
	return inherit("CODEX_*", "OPENAI_*", "GIT_*", "SSH_AUTH_SOCK")
}

func (a codexAdapter) Command(c Call) (Command, error) {
	if err := c.check(Codex, a.Features()); err != nil {
		return Command{}, err
	}
	argv := []string{c.binary("codex"), "exec", "--json", "--skip-git-repo-check", "--color=never"}
	argv = option(argv, "model", c.Model)
	switch c.Permission {
	case PermissionDefault:
	case PermissionPlan:
		argv = append(argv, "--sandbox=read-only")
	case PermissionAcceptEdits:
		argv = append(argv, "--sandbox=workspace-write")
	case PermissionFull:
		argv = append(argv, "--dangerously-bypass-approvals-and-sandbox")
	default:
		return Command{}, noMode(Codex, c.Permission)
	}
	if c.Resume != "" {
		argv = append(argv, "resume", c.Resume)
	}
	return Command{Argv: append(argv, "-"), Dir: c.WorkingDir, Input: []byte(c.Instruction)}, nil
}

type geminiAdapter struct{}

func (geminiAdapter) CLI() CLI { return Gemini }

func (geminiAdapter) Features() Features { return Features{Resume: true, AllowedTools: true} }

func (geminiAdapter) VersionArgv(binary string) []string {
	return []string{Call{Binary: binary}.binary("gemini"), "--version"}
}

// Oldest is the first with stream-json and --resume.
func (geminiAdapter) Oldest() Version { return Version{0, 20, 0} }

func (geminiAdapter) InstallHint() string {
	return "npm install -g @google/gemini-cli, then log in by starting gemini, or set GEMINI_API_KEY"
}

func (geminiAdapter) Inherit() []string {
	return inherit("GEMINI_*", "GOOGLE_*", "CLOUD_*", "GIT_*", "SSH_AUTH_SOCK")
}

// Command gives the instruction as an argument, as Gemini wants it, or over standard input
// where it is too long for one.
func (a geminiAdapter) Command(c Call) (Command, error) {
	if err := c.check(Gemini, a.Features()); err != nil {
		return Command{}, err
	}
	argv := []string{c.binary("gemini"), "--output-format=stream-json"}
	argv = option(argv, "model", c.Model)
	switch c.Permission {
	case PermissionDefault:
	case PermissionPlan:
		argv = append(argv, "--approval-mode=plan")
	case PermissionAcceptEdits:
		argv = append(argv, "--approval-mode=auto_edit")
	case PermissionFull:
		argv = append(argv, "--approval-mode=yolo")
	default:
		return Command{}, noMode(Gemini, c.Permission)
	}
	argv = option(argv, "allowed-tools", strings.Join(c.AllowedTools, ","))
	argv = option(argv, "resume", c.Resume)
	cmd := Command{Argv: argv, Dir: c.WorkingDir}
	if len(c.Instruction) > maxArg || strings.ContainsRune(c.Instruction, 0) {
		cmd.Input = []byte(c.Instruction)
	} else {
		cmd.Argv = option(argv, "prompt", c.Instruction)
	}
	return cmd, nil
}

type openCodeAdapter struct{}

func (openCodeAdapter) CLI() CLI { return OpenCode }

func (openCodeAdapter) Features() Features {
	return Features{Resume: true, Fork: true, ReportsCost: true}
}

func (openCodeAdapter) VersionArgv(binary string) []string {
	return []string{Call{Binary: binary}.binary("opencode"), "--version"}
}

// Oldest is the first whose events end with step_finish.
func (openCodeAdapter) Oldest() Version { return Version{1, 0, 0} }

func (openCodeAdapter) InstallHint() string {
	return "npm install -g opencode-ai, then opencode auth login"
}

func (openCodeAdapter) Inherit() []string {
	return inherit("OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "GOOGLE_*", "AWS_*", "OPENROUTER_*", "GIT_*", "SSH_AUTH_SOCK")
}

// Command gives the instruction over standard input: OpenCode puts arguments in quotes.
func (a openCodeAdapter) Command(c Call) (Command, error) {
	if err := c.check(OpenCode, a.Features()); err != nil {
		return Command{}, err
	}
	argv := []string{c.binary("opencode"), "run", "--format=json"}
	argv = option(argv, "model", c.Model)
	switch c.Permission {
	case PermissionDefault, PermissionAcceptEdits:
		argv = append(argv, "--agent=build")
	case PermissionPlan:
		argv = append(argv, "--agent=plan")
	default:
		return Command{}, &CallError{OpenCode, fmt.Sprintf("it has no permission mode like %.40q; its own configuration says what it may do", string(c.Permission))}
	}
	argv = option(argv, "session", c.Resume)
	if c.Fork {
		argv = append(argv, "--fork")
	}
	return Command{Argv: argv, Dir: c.WorkingDir, Input: []byte(c.Instruction)}, nil
}
