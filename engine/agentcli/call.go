package agentcli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Permission says what an agent may do without asking.
type Permission string

// Permission modes. They are mapped on what each CLI has; see docs of [Adapter].
const (
	PermissionDefault     Permission = ""            // what the CLI does unasked
	PermissionPlan        Permission = "plan"        // read only
	PermissionAcceptEdits Permission = "acceptEdits" // may change files in the working directory
	PermissionDontAsk     Permission = "dontAsk"     // what is not allowed beforehand is denied (Claude only)
	PermissionFull        Permission = "full"        // anything; needs Call.AllowFull
)

// Call is one call of an agent. Fields that a CLI has no way for are refused, not left
// out; [Adapter.Features] tells which those are.
type Call struct {
	Binary      string // a path or a name; "" for the CLI's own name
	Instruction string // "" only with Streaming
	WorkingDir  string
	Model       string // "" for the CLI's choice
	// SessionID is the id, minted by the caller, of a session that begins with this call.
	// Resume is that of one that goes on. At most one of them is set.
	SessionID string
	Resume    string
	Fork      bool // with Resume: go on in a copy, under a new id

	Permission Permission
	AllowFull  bool // policy: PermissionFull may be used
	// AskPermission has the CLI ask over the control protocol (can_use_tool). Needs Streaming.
	AskPermission   bool
	AllowedTools    []string // run without asking
	DisallowedTools []string
	// HostServer names an MCP server that the caller plays over the control protocol
	// (mcp_message). Needs Streaming. MCPConfig is JSON of servers besides.
	HostServer string
	MCPConfig  string

	MaxTurns     int     // 0 for no bound
	MaxBudgetUSD float64 // 0 for no bound
	SystemPrompt string  // added to the CLI's own
	Streaming    bool    // turns come over standard input, as [UserTurn] lines
	Deltas       bool    // texts are sent in parts too, where that can be chosen
}

// Command is how a call is made: by a process, never by a shell.
type Command struct {
	Argv []string
	Dir  string
	// Env is added to the environment, as NAME=value; Unset is taken out of it.
	Env   []string
	Unset []string
	// Input is written to standard input, which is closed then. With Streaming it is nil, and
	// standard input is a pipe. Where neither is the case, standard input is empty
	// (/dev/null): Claude waits three seconds for a pipe in which nothing comes.
	Input     []byte
	Streaming bool
}

// Features tells which fields of a [Call] a CLI has a way for.
type Features struct {
	SessionID     bool `json:"session_id"`     // ids can be minted by the caller
	Resume        bool `json:"resume"`         //
	Fork          bool `json:"fork"`           //
	Streaming     bool `json:"streaming"`      // turns over standard input, and the control protocol
	AllowedTools  bool `json:"allowed_tools"`  //
	MCP           bool `json:"mcp"`            //
	MaxTurns      bool `json:"max_turns"`      //
	Budget        bool `json:"budget"`         //
	SystemPrompt  bool `json:"system_prompt"`  //
	DontAsk       bool `json:"dont_ask"`       //
	ReportsCost   bool `json:"reports_cost"`   // in dollars
	DisallowTools bool `json:"disallow_tools"` //
}

// CallError says that a call cannot be made as it is asked for.
type CallError struct {
	CLI    CLI
	Reason string
}

func (e *CallError) Error() string { return fmt.Sprintf("%s: %s", e.CLI, e.Reason) }

// Bounds of a call.
const (
	maxInstruction = 8 << 20
	// maxArg is how long an argument may get: Linux takes 128 KiB at most of each.
	maxArg = 96 << 10
)

// sessionShape is what ids of sessions look like, of every CLI: a word that cannot be a flag
// nor lead out of a directory.
var sessionShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// uuidShape is what Claude takes as the id of a new session.
var uuidShape = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// ValidSessionID tells whether a text can be a session's id, of any CLI.
func ValidSessionID(id string) bool { return sessionShape.MatchString(id) }

// check is what is wrong with a call, for a CLI with such features.
func (c Call) check(cli CLI, can Features) error {
	var wrong []string
	refuse := func(when bool, reason string) {
		if when {
			wrong = append(wrong, reason)
		}
	}
	lacks := func(asked, can bool, what string) { refuse(asked && !can, "it has no way to "+what) }
	refuse(c.Instruction == "" && !c.Streaming, "there is no instruction")
	refuse(c.Instruction != "" && c.Streaming, "with streaming input the instruction is sent as a turn")
	refuse(len(c.Instruction) > maxInstruction, fmt.Sprintf("the instruction is longer than %d MB", maxInstruction>>20))
	refuse(c.SessionID != "" && c.Resume != "", "a session either begins or is resumed")
	refuse(c.SessionID != "" && !sessionShape.MatchString(c.SessionID), fmt.Sprintf("%.60q is no session id", c.SessionID))
	refuse(c.Resume != "" && !sessionShape.MatchString(c.Resume), fmt.Sprintf("%.60q is no session id", c.Resume))
	refuse(c.Fork && c.Resume == "", "only a session that is resumed can be forked")
	refuse(c.Permission == PermissionFull && !c.AllowFull, "full permission is not allowed by policy")
	refuse((c.AskPermission || c.HostServer != "") && !c.Streaming, "the control protocol needs streaming input")
	refuse(c.MaxTurns < 0 || c.MaxBudgetUSD < 0, "a bound cannot be negative")
	lacks(c.SessionID != "", can.SessionID, "begin a session with a given id")
	lacks(c.Resume != "", can.Resume, "resume a session")
	lacks(c.Fork, can.Fork, "fork a session")
	lacks(c.Streaming, can.Streaming, "take turns over standard input")
	lacks(len(c.AllowedTools) > 0, can.AllowedTools, "allow single tools")
	lacks(len(c.DisallowedTools) > 0, can.DisallowTools, "disallow single tools")
	lacks(c.MCPConfig != "" || c.HostServer != "", can.MCP, "be given MCP servers")
	lacks(c.MaxTurns > 0, can.MaxTurns, "bound the turns")
	lacks(c.MaxBudgetUSD > 0, can.Budget, "bound the cost")
	lacks(c.SystemPrompt != "", can.SystemPrompt, "add to the system prompt")
	lacks(c.Permission == PermissionDontAsk, can.DontAsk, "deny instead of asking")
	for what, s := range map[string]string{
		"model": c.Model, "working directory": c.WorkingDir, "system prompt": c.SystemPrompt, "MCP configuration": c.MCPConfig,
		"name of the MCP server": c.HostServer, "list of tools": strings.Join(slices.Concat(c.AllowedTools, c.DisallowedTools), ","),
		"binary": c.Binary,
	} {
		refuse(strings.ContainsRune(s, 0), "there is a NUL in the "+what)
		refuse(len(s) > maxArg, fmt.Sprintf("the %s is longer than %d KB", what, maxArg>>10))
	}
	refuse(strings.HasPrefix(c.Binary, "-"), "the binary's name begins with a dash")
	if len(wrong) == 0 {
		return nil
	}
	return &CallError{CLI: cli, Reason: wrong[0]}
}

// errPermission is of permission modes that are none.
var errPermission = errors.New("no such permission mode")
