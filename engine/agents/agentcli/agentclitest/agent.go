//go:build unix

// Package agentclitest provides stand-ins for the agent CLIs (claude, codex, gemini, opencode)
// in tests: a small program, started under their names, prints their streams and behaves like
// them. Only tests may import it. A test makes an [Agent] with [New] and runs [Agent.Binary]
// instead of the CLI.
//
// The instruction decides what the agent does. By default it answers "reply N to: TEXT", where
// N is the number of the turn in the session. After "SCENARIO:" follow steps, separated by
// semicolons:
//
//	say TEXT            a text
//	write FILE TEXT     writes a file in the working directory
//	tools               a text, a Bash call with its result, a text
//	parallel            two Bash calls in one message
//	bash COMMAND        a Bash call, not executed: its output is the command after echo
//	badtool             a Bash call that fails
//	denied              a Bash call that is denied
//	tool NAME JSON      a call of any tool; mcp__SERVER__TOOL goes to the host
//	subagent            an Agent call, with the messages of the subagent
//	slow N MS           a text in N parts (default 5), MS milliseconds apart (default 10)
//	big N KB            N texts (default 100) of KB kilobytes (default 10)
//	longline MB         a line of that many megabytes (default 50)
//	garbage             lines that are not JSON
//	unknown             events of unknown types
//	noise KB            that much on standard error (default 256)
//	gate NAME           waits until [Agent.Open] opens the gate
//	children            starts children that stay: one in its process group, one in another
//	hang                blocks forever
//	ignoreterm          blocks forever and ignores SIGTERM
//	secret              a text with secrets of all shapes
//	env NAME            a text with the value of the variable
//	kill                kills itself with SIGKILL
//	partial             prints half a line and exits with 0, without a result
//	noresult CODE       exits without a result
//	tworesults          two results
//	exit CODE           a successful result, but another exit code
//	error               an error result and exit code 0
//	notloggedin, tooold, overloaded, ratelimit, apierror, servererror, refusal, maxturns,
//	budget, maxtokens, usage    fails like the CLI
//
// An instruction without "SCENARIO:" follows the first rule in [RulesFile] of the working directory whose
// text it contains. A rule is a line TEXT => STEPS.
//
// The journal ([Agent.Journal]) records each start, turn, API call and tool call, so that a
// test can check that nothing was done twice.
//
// The stand-in of Claude Code supports turns over standard input, the control protocol,
// transcripts under CLAUDE_CONFIG_DIR, --session-id (refused once its transcript exists),
// --resume (without a lock), and cumulative costs, continued from the cost-state line of the
// last process that was not killed. It drops messages whose uuid it has seen.
package agentclitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// Agent is a stand-in, as its test sees it.
type Agent struct {
	t        testing.TB
	cli      string
	dir      string
	settings settings
}

// settings configure the processes of a stand-in.
type settings struct {
	Version string `json:"version"`
	OldCost bool   `json:"old_cost"` // costs are counted per process
}

// RulesFile is a file in the working directory of an agent, see the package's documentation.
const RulesFile = "stand-in.rules"

// Names in the directory of a stand-in, besides its binary.
const (
	settingsFile = "stand-in.json"
	journalFile  = "journal.jsonl"
	gatesDir     = "gates"
	configDir    = "config"
)

// versions are the reported versions of the stand-ins.
var versions = map[string]string{
	"claude": "2.1.329", "codex": "0.120.0", "gemini": "0.30.0", "opencode": "1.4.0",
}

// New makes a stand-in of the CLI in its own directory.
func New(t testing.TB, cli string) *Agent {
	t.Helper()
	if versions[cli] == "" {
		t.Fatalf("no stand-in for %q", cli)
	}
	dir := t.TempDir()
	a := &Agent{t: t, cli: cli, dir: dir, settings: settings{Version: versions[cli]}}
	for _, name := range []string{configDir, gatesDir} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	program, err := program()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{cli, childName} {
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	a.save()
	return a
}

func (a *Agent) save() {
	data, err := json.Marshal(a.settings)
	if err == nil {
		err = os.WriteFile(filepath.Join(a.dir, settingsFile), data, 0o600)
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

// Binary is the program to run instead of the CLI.
func (a *Agent) Binary() string { return filepath.Join(a.dir, a.cli) }

// Dir is the directory of the program, for PATH.
func (a *Agent) Dir() string { return a.dir }

// ConfigDir is the directory of transcripts, unless CLAUDE_CONFIG_DIR is set.
func (a *Agent) ConfigDir() string { return filepath.Join(a.dir, configDir) }

// SetVersion changes the version of processes that start later.
func (a *Agent) SetVersion(version string) {
	a.settings.Version = version
	a.save()
}

// SetOldCost makes processes count costs from zero, as versions of Claude Code do that write
// no cost-state line (2.1.240, but not 2.1.290).
func (a *Agent) SetOldCost(old bool) {
	a.settings.OldCost = old
	a.save()
}

// Transcript returns the path of a session's transcript, for processes in the directory.
func (a *Agent) Transcript(workingDir, session string) string {
	return transcriptPath(a.ConfigDir(), workingDir, session)
}

// notAlphanumeric are the runes that Claude Code replaces in the directory of a project.
var notAlphanumeric = regexp.MustCompile("[^0-9A-Za-z]")

func transcriptPath(config, workingDir, session string) string {
	if real, err := filepath.EvalSymlinks(workingDir); err == nil {
		workingDir = real
	}
	slug := notAlphanumeric.ReplaceAllString(workingDir, "-")
	return filepath.Join(config, "projects", slug, session+".jsonl")
}

// Open opens a gate for good.
func (a *Agent) Open(gate string) {
	a.t.Helper()
	if err := os.WriteFile(filepath.Join(a.dir, gatesDir, gate), nil, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// Entry is one action of a stand-in.
type Entry struct {
	// What is start, turn, api_call, tool, host_tool, gate, hang, child, swallowed or end.
	What    string          `json:"what"`
	PID     int             `json:"pid"`
	Session string          `json:"session,omitempty"`
	UUID    string          `json:"uuid,omitempty"` // of a turn's message
	Text    string          `json:"text,omitempty"` // of a turn or a gate; the arguments of a start
	Tool    string          `json:"tool,omitempty"`
	ToolID  string          `json:"tool_id,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
}

// Journal returns all complete entries so far, of all processes, in order.
func (a *Agent) Journal() []Entry {
	a.t.Helper()
	data, err := os.ReadFile(filepath.Join(a.dir, journalFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.t.Fatal(err)
	}
	var list []Entry
	for line := range bytes.Lines(data) {
		var e Entry
		if json.Unmarshal(line, &e) == nil {
			list = append(list, e)
		}
	}
	return list
}

// Did returns the entries of one kind.
func (a *Agent) Did(what string) []Entry {
	a.t.Helper()
	var list []Entry
	for _, e := range a.Journal() {
		if e.What == what {
			list = append(list, e)
		}
	}
	return list
}

// Await waits up to a minute until there are at least n entries of one kind.
func (a *Agent) Await(what string, n int) []Entry {
	a.t.Helper()
	for until := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		if list := a.Did(what); len(list) >= n {
			return list
		}
		if time.Now().After(until) {
			a.t.Fatalf("%d entries %q, want %d; the journal is %+v", len(a.Did(what)), what, n, a.Journal())
		}
	}
}
