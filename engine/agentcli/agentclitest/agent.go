package agentclitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Agent is a stand-in as a test sees it.
type Agent struct {
	t   testing.TB
	cli string
	dir string
	mu  sync.Mutex
	set settings
}

// versions are what the stand-ins say they are.
var versions = map[string]string{"claude": "2.1.329", "codex": "0.120.0", "gemini": "0.30.0", "opencode": "1.4.0"}

// New makes a stand-in of the CLI in a directory of its own.
func New(t testing.TB, cli string) *Agent {
	t.Helper()
	if !known(cli) {
		t.Fatalf("%q is no CLI that there is a stand-in for", cli)
	}
	dir := t.TempDir()
	a := &Agent{t: t, cli: cli, dir: dir, set: settings{
		Version: versions[cli], ConfigDir: filepath.Join(dir, "config"),
		Journal: filepath.Join(dir, "journal.jsonl"), Gates: filepath.Join(dir, "gates"),
	}}
	for _, d := range []string{a.set.ConfigDir, a.set.Gates} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{cli, stayName} {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	a.save()
	return a
}

func (a *Agent) save() {
	data, err := json.Marshal(a.set)
	if err == nil {
		err = os.WriteFile(filepath.Join(a.dir, settingsFile), data, 0o600)
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

// Binary is the program to run in the CLI's place.
func (a *Agent) Binary() string { return filepath.Join(a.dir, a.cli) }

// Dir is where the program is, for the begin of a PATH.
func (a *Agent) Dir() string { return a.dir }

// ConfigDir is where transcripts are written when CLAUDE_CONFIG_DIR says nothing else.
func (a *Agent) ConfigDir() string { return a.set.ConfigDir }

// SetVersion changes the version that processes started from now on have.
func (a *Agent) SetVersion(version string) { a.change(func(s *settings) { s.Version = version }) }

// SetOldCost has costs counted per process, as versions of Claude Code do that write no
// cost-state (2.1.240 does not, 2.1.290 does).
func (a *Agent) SetOldCost(old bool) { a.change(func(s *settings) { s.OldCost = old }) }

// SetLoggedOut has every call fail for want of a login.
func (a *Agent) SetLoggedOut(out bool) { a.change(func(s *settings) { s.LoggedOut = out }) }

func (a *Agent) change(f func(*settings)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.set)
	a.save()
}

// Transcript is the path of a session's transcript, for processes in the directory.
func (a *Agent) Transcript(workingDir, session string) string {
	return transcriptPath(a.set.ConfigDir, workingDir, session)
}

// Open opens a gate, for good.
func (a *Agent) Open(gate string) {
	a.t.Helper()
	if err := os.WriteFile(filepath.Join(a.set.Gates, gate), nil, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// Entry is something that a stand-in did.
type Entry struct {
	What    string          `json:"what"` // start, turn, api_call, tool, host_tool, gate, child, swallowed, end
	PID     int             `json:"pid"`
	Session string          `json:"session,omitempty"`
	UUID    string          `json:"uuid,omitempty"` // of a turn's message
	Text    string          `json:"text,omitempty"` // of a turn, a gate; the arguments of a start
	Tool    string          `json:"tool,omitempty"`
	ToolID  string          `json:"tool_id,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
	At      time.Time       `json:"at"`
}

// Journal is what was done so far, in order, by all processes. A line that is being written
// is left out.
func (a *Agent) Journal() []Entry {
	a.t.Helper()
	data, err := os.ReadFile(a.set.Journal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
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

// Did is the entries of a kind.
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

// Await waits until there are at least n entries of a kind, for thirty seconds at most.
func (a *Agent) Await(what string, n int) []Entry {
	a.t.Helper()
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		if list := a.Did(what); len(list) >= n {
			return list
		}
		if time.Now().After(until) {
			a.t.Fatalf("the stand-in did %q %d times, not %d; it did %+v", what, len(a.Did(what)), n, a.Journal())
		}
	}
}
