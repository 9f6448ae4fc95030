// Package agentcli gives the command lines of Claude Code, Codex, Gemini and OpenCode one
// model: how each is called, what it prints, what its end means, and Claude's control
// protocol. It starts no process and opens no file. It imports only engine/ace and
// engine/internal/process.
//
// A call goes like this: [For] returns the [Adapter] of a CLI; [Adapter.Command] makes the
// argument vector of a [Call]; a [Reader] turns the output of the process into [Event]
// values; a [Judge] counts them and returns the [Outcome]. A [Meter] derives the cost of one
// turn from cumulative costs.
//
// Order: events come in the order of their lines, and within a line in the order of its
// blocks. Bounds: a line is read up to [MaxLine] bytes; of a longer one the first [MaxText]
// bytes are kept and the rest is skipped. A reader holds one line, its events, and, for CLIs
// that stream texts in parts, one text of at most [maxParts] bytes; a parser remembers at most
// [maxOpen] tool calls. Loss: nothing is dropped silently. Invalid JSON and lines that are too
// long or truncated become events of [KindGarbage]; unknown JSON becomes an event of [KindOther].
package agentcli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"acescope/engine/internal/process"
)

// CLI names the command line of an agent.
type CLI string

// The supported CLIs.
const (
	Claude   CLI = "claude"
	Codex    CLI = "codex"
	Gemini   CLI = "gemini"
	OpenCode CLI = "opencode"
)

// Adapter knows how to call one CLI.
//
// A value never becomes a flag of its own: it shares one argument with its flag (--model=x)
// or goes through standard input. Session IDs must match [ValidSessionID].
type Adapter struct {
	CLI      CLI
	Features Features              // the fields of a [Call] that the CLI supports
	Oldest   Version               // the oldest supported version
	Install  string                // how to install the CLI and log in, in one line
	env      []string              // besides commonEnv
	modes    map[Permission]string // argument for each supported mode
	command  func(c Call, mode string) (Command, error)
}

var adapters = []Adapter{
	{
		CLI: Claude,
		Features: Features{
			SessionID: true, Streaming: true, AllowedTools: true, DisallowTools: true,
			MCP: true, MaxTurns: true, Budget: true, SystemPrompt: true,
		},
		// The first version with the current control protocol and --session-id.
		Oldest:  Version{2, 0, 0},
		Install: "npm install -g @anthropic-ai/claude-code, then claude /login, or set ANTHROPIC_API_KEY",
		// CLAUDECODE and similar variables are left out: they would make a Claude Code that runs
		// acescope look like the parent of the called one.
		env: []string{
			"ANTHROPIC_*", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_*",
			"CLAUDE_CODE_MAX_*",
			"CLAUDE_CODE_DISABLE_*", "CLAUDE_CODE_SKIP_*", "DISABLE_*", "AWS_*", "GOOGLE_*",
			"CLOUD_ML_REGION",
			"VERTEX_*", "BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS", "MCP_*", "GIT_*", "SSH_AUTH_SOCK",
		},
		modes: map[Permission]string{
			PermissionDefault: "", PermissionPlan: "plan", PermissionAcceptEdits: "acceptEdits",
			PermissionDontAsk: "dontAsk", PermissionFull: "bypassPermissions",
		},
		command: claudeCommand,
	},
	{
		CLI:     Codex,
		Oldest:  Version{0, 44, 0}, // the first with these events
		Install: "npm install -g @openai/codex, then codex login",
		env:     []string{"CODEX_*", "OPENAI_*", "GIT_*", "SSH_AUTH_SOCK"},
		modes: map[Permission]string{
			PermissionDefault: "", PermissionPlan: "--sandbox=read-only",
			PermissionAcceptEdits: "--sandbox=workspace-write",
			PermissionFull:        "--dangerously-bypass-approvals-and-sandbox",
		},
		command: codexCommand,
	},
	{
		CLI:      Gemini,
		Features: Features{AllowedTools: true},
		Oldest:   Version{0, 20, 0}, // the first with stream-json and --resume
		Install:  "npm install -g @google/gemini-cli, then log in by starting gemini, or set GEMINI_API_KEY",
		env:      []string{"GEMINI_*", "GOOGLE_*", "CLOUD_*", "GIT_*", "SSH_AUTH_SOCK"},
		modes: map[Permission]string{
			PermissionDefault: "", PermissionPlan: "plan", PermissionAcceptEdits: "auto_edit",
			PermissionFull: "yolo",
		},
		command: geminiCommand,
	},
	{
		CLI:     OpenCode,
		Oldest:  Version{1, 0, 0}, // the first whose events end with step_finish
		Install: "npm install -g opencode-ai, then opencode auth login",
		env: []string{
			"OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "GOOGLE_*", "AWS_*", "OPENROUTER_*", "GIT_*",
			"SSH_AUTH_SOCK",
		},
		// OpenCode's own configuration decides what these agents may do.
		modes: map[Permission]string{
			PermissionDefault: "build", PermissionAcceptEdits: "build", PermissionPlan: "plan",
		},
		command: openCodeCommand,
	},
}

// commonEnv are variables that every program needs: paths, locale and proxies.
var commonEnv = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TEMP", "TMP", "LANG", "LC_*", "TZ", "TERM",
	"XDG_*", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"all_proxy",
	"SystemRoot", "APPDATA", "LOCALAPPDATA", "USERPROFILE", "PATHEXT", "COMSPEC",
}

// For returns the adapter of a CLI.
func For(cli CLI) (Adapter, error) {
	var names []string
	for _, a := range adapters {
		if a.CLI == cli {
			return a, nil
		}
		names = append(names, string(a.CLI))
	}
	return Adapter{}, fmt.Errorf("unknown agent CLI %.40q; use one of %s", cli, strings.Join(names, ", "))
}

// CLIs lists the supported CLIs.
func CLIs() []CLI { return []CLI{Claude, Codex, Gemini, OpenCode} }

// Environ returns the environment of the CLI's process: the variables that the CLI needs from its
// parent, those in names (* at the end matches any rest), and those of the command. It turns
// acescope's hook off, because the calls of acescope's own agents are recorded already.
func (a Adapter) Environ(cmd Command, names ...string) []string {
	own := append(slices.Clone(cmd.Env), "ACESCOPE_HOOK=off")
	return process.Environ(slices.Concat(commonEnv, a.env, names), cmd.Unset, own)
}

// VersionArgv is the command that prints the version; [ParseVersion] reads its output.
func (a Adapter) VersionArgv(binary string) []string {
	return []string{cmp.Or(binary, string(a.CLI)), "--version"}
}

// Command makes the command of a call. Errors are of type [*CallError].
func (a Adapter) Command(c Call) (Command, error) {
	if err := c.check(a.CLI, a.Features); err != nil {
		return Command{}, err
	}
	mode, ok := a.modes[c.Permission]
	if !ok {
		reason := fmt.Sprintf("permission mode %.40q is not supported", string(c.Permission))
		return Command{}, &CallError{a.CLI, reason}
	}
	c.Binary = cmp.Or(c.Binary, string(a.CLI))
	return a.command(c, mode)
}

// claudeCommand passes the instruction through standard input: there it cannot become a flag,
// has no length limit and does not show in the list of processes.
func claudeCommand(c Call, mode string) (Command, error) {
	if c.SessionID != "" && !uuidShape.MatchString(c.SessionID) {
		return Command{}, &CallError{Claude, "the ID of a new session must be a UUID"}
	}
	servers, err := claudeServers(c)
	if err != nil {
		return Command{}, err
	}
	argv := []string{c.Binary, "-p", "--output-format=stream-json", "--verbose"}
	if c.Streaming {
		argv = append(argv, "--input-format=stream-json", "--replay-user-messages",
			"--include-partial-messages",
			"--permission-prompt-tool=stdio")
	}
	argv = option(argv, "model", c.Model)
	argv = option(argv, "session-id", c.SessionID)
	argv = option(argv, "resume", c.Resume)
	argv = option(argv, "permission-mode", mode)
	argv = option(argv, "allowedTools", strings.Join(c.AllowedTools, ","))
	argv = option(argv, "disallowedTools", strings.Join(c.DisallowedTools, ","))
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

// claudeServers returns the JSON of the MCP servers, or "" without servers.
func claudeServers(c Call) (string, error) {
	if c.MCPConfig == "" && c.HostServer == "" {
		return "", nil
	}
	config := struct {
		Servers map[string]any `json:"mcpServers"`
	}{map[string]any{}}
	if c.MCPConfig != "" {
		if err := json.Unmarshal([]byte(c.MCPConfig), &config); err != nil {
			return "", &CallError{Claude, "invalid JSON in the MCP configuration: " + err.Error()}
		}
	}
	if c.HostServer != "" {
		if config.Servers == nil {
			config.Servers = map[string]any{}
		}
		config.Servers[c.HostServer] = map[string]string{"type": "sdk", "name": c.HostServer}
	}
	text, err := json.Marshal(config)
	return string(text), err
}

func codexCommand(c Call, mode string) (Command, error) {
	argv := []string{c.Binary, "exec", "--json", "--skip-git-repo-check", "--color=never"}
	argv = option(argv, "model", c.Model)
	if mode != "" {
		argv = append(argv, mode)
	}
	if c.Resume != "" {
		argv = append(argv, "resume", c.Resume)
	}
	return Command{Argv: append(argv, "-"), Dir: c.WorkingDir, Input: []byte(c.Instruction)}, nil
}

// geminiCommand passes the instruction as an argument, as Gemini expects it, or through
// standard input if it is too long for an argument.
func geminiCommand(c Call, mode string) (Command, error) {
	argv := []string{c.Binary, "--output-format=stream-json"}
	argv = option(argv, "model", c.Model)
	argv = option(argv, "approval-mode", mode)
	argv = option(argv, "allowed-tools", strings.Join(c.AllowedTools, ","))
	argv = option(argv, "resume", c.Resume)
	if len(c.Instruction) > maxArg || strings.ContainsRune(c.Instruction, 0) {
		return Command{Argv: argv, Dir: c.WorkingDir, Input: []byte(c.Instruction)}, nil
	}
	return Command{Argv: option(argv, "prompt", c.Instruction), Dir: c.WorkingDir}, nil
}

// openCodeCommand passes the instruction through standard input, because OpenCode puts
// arguments in quotes.
func openCodeCommand(c Call, mode string) (Command, error) {
	argv := []string{c.Binary, "run", "--format=json"}
	argv = option(argv, "model", c.Model)
	argv = option(argv, "agent", mode)
	argv = option(argv, "session", c.Resume)
	return Command{Argv: argv, Dir: c.WorkingDir, Input: []byte(c.Instruction)}, nil
}

// option appends a flag and its value as one argument, unless the value is empty.
func option(argv []string, name, value string) []string {
	if value == "" {
		return argv
	}
	return append(argv, "--"+name+"="+value)
}

// Version is the version of a CLI.
type Version struct{ Major, Minor, Patch int }

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// Before reports whether v is older than w.
func (v Version) Before(w Version) bool {
	return slices.Compare([]int{v.Major, v.Minor, v.Patch}, []int{w.Major, w.Minor, w.Patch}) < 0
}

var versionShape = regexp.MustCompile(`(?:^|[^0-9.])(\d{1,6}\.\d{1,6}\.\d{1,6})`)

// ParseVersion finds the version in the output of [Adapter.VersionArgv].
func ParseVersion(output string) (v Version, ok bool) {
	m := versionShape.FindStringSubmatch(output[:min(len(output), MaxText)])
	if m == nil {
		return Version{}, false
	}
	_, err := fmt.Sscanf(m[1], "%d.%d.%d", &v.Major, &v.Minor, &v.Patch)
	return v, err == nil
}
