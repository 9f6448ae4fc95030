package agentcli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Permission says what an agent may do without asking.
type Permission string

// Permission modes. Each adapter maps them to the modes of its CLI.
const (
	PermissionDefault     Permission = ""            // the CLI's default
	PermissionPlan        Permission = "plan"        // read only
	PermissionAcceptEdits Permission = "acceptEdits" // may change files in the working directory
	PermissionDontAsk     Permission = "dontAsk"     // denies everything not allowed beforehand (Claude only)
	PermissionFull        Permission = "full"        // anything; needs Call.AllowFull
)

// Call is one call of an agent. A field that a CLI does not support is an error; see
// [Features].
type Call struct {
	Binary      string // a path or a name; "" for the CLI's own name
	Instruction string // "" only with Streaming
	WorkingDir  string
	Model       string // "" for the CLI's default
	// SessionID is the ID for a new session, chosen by the caller. Resume is the ID of a session
	// to continue. At most one of them is set.
	SessionID string
	Resume    string

	Permission      Permission
	AllowFull       bool     // policy: PermissionFull may be used
	AllowedTools    []string // run without asking
	DisallowedTools []string
	// HostServer names an MCP server that the caller implements over the control protocol
	// (mcp_message). Needs Streaming. MCPConfig is the JSON of further servers.
	HostServer string
	MCPConfig  string

	MaxTurns     int     // 0 for no limit
	MaxBudgetUSD float64 // 0 for no limit
	SystemPrompt string  // appended to the CLI's own
	// Streaming makes turns come over standard input, as [UserTurn] lines. The CLI then asks for
	// permissions over the control protocol (can_use_tool), and also streams texts in parts.
	Streaming bool
}

// Command is the process of a call. It is never run by a shell.
type Command struct {
	Argv []string
	Dir  string
	// Env is added to the environment, as NAME=value; Unset is removed from it.
	Env   []string
	Unset []string
	// Input is written to standard input, which is then closed. With Streaming, Input is nil and
	// standard input is a pipe. Otherwise an empty Input means /dev/null: Claude waits three
	// seconds for input from a pipe.
	Input     []byte
	Streaming bool
}

// Features reports which fields of a [Call] a CLI supports. All resume sessions.
type Features struct {
	SessionID     bool // the caller chooses the IDs of new sessions
	Streaming     bool // turns over standard input, and the control protocol
	AllowedTools  bool
	DisallowTools bool
	MCP           bool
	MaxTurns      bool
	Budget        bool
	SystemPrompt  bool
}

// CallError says why a call cannot be made.
type CallError struct {
	CLI    CLI
	Reason string
}

func (e *CallError) Error() string { return fmt.Sprintf("%s: %s", e.CLI, e.Reason) }

// Bounds of a call.
const (
	maxInstruction = 8 << 20
	// maxArg is the longest argument, in bytes: Linux allows 128 KiB.
	maxArg = 96 << 10
)

// sessionShape matches the session IDs of every CLI: words that can be neither a flag nor a
// path out of a directory.
var sessionShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

// uuidShape matches the IDs that Claude accepts for new sessions.
var uuidShape = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// ValidSessionID reports whether id can be a session ID of any CLI.
func ValidSessionID(id string) bool { return len(id) <= 128 && sessionShape.MatchString(id) }

// check returns the first problem of a call for a CLI with these features.
func (c Call) check(cli CLI, features Features) error {
	for _, rule := range c.rules(features) {
		if rule.broken {
			return &CallError{CLI: cli, Reason: rule.reason}
		}
	}
	for _, text := range []struct{ name, value string }{
		{"model", c.Model},
		{"working directory", c.WorkingDir},
		{"system prompt", c.SystemPrompt},
		{"MCP configuration", c.MCPConfig},
		{"name of the MCP server", c.HostServer},
		{"list of tools", strings.Join(slices.Concat(c.AllowedTools, c.DisallowedTools), ",")},
		{"binary", c.Binary},
	} {
		if strings.ContainsRune(text.value, 0) {
			return &CallError{CLI: cli, Reason: "the " + text.name + " contains a NUL byte"}
		}
		if len(text.value) > maxArg {
			return &CallError{CLI: cli, Reason: fmt.Sprintf("the %s is longer than %d KB", text.name,
				maxArg>>10)}
		}
	}
	return nil
}

type rule struct {
	broken bool
	reason string
}

func (c Call) rules(f Features) []rule {
	badID := func(id string) rule {
		return rule{id != "" && !ValidSessionID(id), fmt.Sprintf("invalid session ID %.60q", id)}
	}
	unsupported := func(used, supported bool, what string) rule {
		return rule{used && !supported, what + " is not supported"}
	}
	return []rule{
		{c.Instruction == "" && !c.Streaming, "the instruction is empty"},
		{c.Instruction != "" && c.Streaming, "with streaming input, send the instruction as a turn"},
		{len(c.Instruction) > maxInstruction, fmt.Sprintf("the instruction exceeds %d MB",
			maxInstruction>>20)},
		{c.SessionID != "" && c.Resume != "", "a session ID and a session to resume exclude each other"},
		badID(c.SessionID),
		badID(c.Resume),
		{c.Permission == PermissionFull && !c.AllowFull, "full permission is not allowed by policy"},
		{c.HostServer != "" && !c.Streaming, "the control protocol needs streaming input"},
		{c.MaxTurns < 0 || c.MaxBudgetUSD < 0, "a limit cannot be negative"},
		{strings.HasPrefix(c.Binary, "-"), "the name of the binary begins with a dash"},
		unsupported(c.SessionID != "", f.SessionID, "choosing the session ID"),
		unsupported(c.Streaming, f.Streaming, "streaming input"),
		unsupported(len(c.AllowedTools) > 0, f.AllowedTools, "allowing single tools"),
		unsupported(len(c.DisallowedTools) > 0, f.DisallowTools, "disallowing single tools"),
		unsupported(c.MCPConfig != "" || c.HostServer != "", f.MCP, "configuring MCP servers"),
		unsupported(c.MaxTurns > 0, f.MaxTurns, "a limit of turns"),
		unsupported(c.MaxBudgetUSD > 0, f.Budget, "a budget"),
		unsupported(c.SystemPrompt != "", f.SystemPrompt, "a system prompt"),
	}
}
