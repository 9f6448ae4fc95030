// Package transcripts indexes the sessions that coding agents have kept on this machine, and follows the
// conversation of one. It imports engine/ace, engine/agents/agentcli, engine/agents/price,
// engine/agents/transcript, whose formats know the agents, and its copies, and knows no screen.
//
// Order: the newest transcripts are read first, so that recent sessions are available before
// the rest. Back-pressure: one goroutine reads a bounded piece at a time and looks for newer
// data about once a second; nothing waits for it. Bounds: the newest [MaxFiles] transcripts,
// and [MaxEntries] and [MaxText] of a conversation; dropped data is counted. What was read is
// kept in a cache file and read again only if its file has changed. No other file is written.
package transcripts

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/transcript"
)

// MaxFiles bounds the transcripts of an index, those of subagents included. The oldest are
// dropped and counted.
const MaxFiles = 20_000

// Root is a directory with the data of an agent.
type Root struct {
	Format transcript.Format
	Dir    string // absolute
	Copies bool   // of other machines
}

// Transcripts returns where the transcripts are, to be shown to a user.
func (r Root) Transcripts() string { return r.Format.Dir(r.Dir) }

// Roots returns the directories of all agents. The setting is a list as in PATH of AGENT=DIR, or DIR for
// Claude Code; the directories of other agents follow from the environment. home expands a directory, "" to
// leave it out.
func Roots(setting string, getenv, home func(string) string) (roots []Root, err error) {
	set := map[transcript.Format]bool{}
	add := func(f transcript.Format, dir string) {
		abs, err := filepath.Abs(dir)
		if root := (Root{Format: f, Dir: abs}); dir != "" && err == nil && !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	for _, item := range filepath.SplitList(setting) {
		agent, dir, named := strings.Cut(item, "=")
		format := transcript.Of(agentcli.CLI(agent))
		switch {
		case !named || strings.ContainsAny(agent, `/\`):
			format, dir = transcript.Of(agentcli.Claude), item
		case format == nil:
			return nil, fmt.Errorf("transcripts: no agent %q; use claude, codex, gemini or opencode", agent)
		}
		set[format] = true
		add(format, home(dir))
	}
	for _, f := range transcript.Formats {
		if !set[f] {
			add(f, f.Root(getenv))
		}
	}
	return roots, nil
}

// State is how recently a session was active.
type State string

// States. A Live session was written to less than LiveFor ago, or less than WorkingFor during
// an unfinished turn; an Idle one less than EndedAfter ago. Transcripts do not record the end
// of a session, so Ended means only a long silence.
const (
	Live  State = "live"
	Idle  State = "idle"
	Ended State = "ended"
)

// Limits of the states.
const (
	LiveFor    = time.Minute
	WorkingFor = 15 * time.Minute
	EndedAfter = 12 * time.Hour
)

// Session is a transcript and those of its subagents. It is immutable. Texts are untrusted.
type Session struct {
	ID      string       `json:"id"`
	Agent   agentcli.CLI `json:"-"`
	Path    string       `json:"path"`
	Machine string       `json:"machine,omitempty"` // where it was written, "" for this one
	// name of the group of its sessions, such as a directory below projects/
	Project string    `json:"-"`
	Size    int64     `json:"bytes"` // of all its transcripts
	ModTime time.Time `json:"-"`
	Read    bool      `json:"-"` // false while only the names, sizes and times of its files are known
	Err     string    `json:"error,omitempty"`
	transcript.Summary
	Agents []Agent `json:"subagents,omitempty"` // by start
	// ForkedFrom is the session that this one was forked from, Shared the number of copied
	// lines, and Inherits their usage, which counts there.
	ForkedFrom string `json:"forked_from,omitempty"`
	Shared     int    `json:"shared_lines,omitempty"`
	Inherits   Usage  `json:"-"`
}

// Agent is a subagent of a session.
type Agent struct {
	ID          string    `json:"id"`
	Path        string    `json:"path"`
	Parent      string    `json:"parent,omitempty"` // ID of the subagent that called it, "" for the session
	Type        string    `json:"agent_type,omitempty"`
	Description string    `json:"description,omitempty"`
	Size        int64     `json:"bytes"`
	ModTime     time.Time `json:"-"`
	transcript.Summary
	Inherits Usage `json:"-"` // of lines copied from another transcript
}

// State returns the session's state at a time.
func (s *Session) State(now time.Time) State {
	age := now.Sub(s.touched())
	switch {
	case age < LiveFor, s.Summary.Unfinished && age < WorkingFor:
		return Live
	case age < EndedAfter:
		return Idle
	}
	return Ended
}

// touched returns when the session was last active: the time of its last line, but not after
// its file's time, since clocks may be wrong and files may be copied.
func (s *Session) touched() time.Time {
	at := earlier(s.ModTime, s.Summary.Last)
	for _, a := range s.Agents {
		if t := earlier(a.ModTime, a.Summary.Last); t.After(at) {
			at = t
		}
	}
	return at
}

func earlier(file, line time.Time) time.Time {
	if !line.IsZero() && line.Before(file) {
		return line
	}
	return file
}

// Last returns the time of the last line, or the file's time.
func (s *Session) Last() time.Time {
	if s.Summary.Last.IsZero() {
		return s.ModTime
	}
	return s.Summary.Last
}

// Name returns the session's title, its first prompt, or "".
func (s *Session) Name() string {
	return cmp.Or(s.Summary.Title, s.Summary.Prompt)
}

// Dir returns the session's working directory, or its project if that is unknown.
func (s *Session) Dir() string {
	return cmp.Or(s.Summary.WorkDir, s.Project)
}

// Failed reports whether the session has a failed call or an error.
func (s *Session) Failed() bool {
	return s.Err != "" || s.Summary.Errors > 0 || s.Totals().Failed > 0
}

// Progress is how far an index has read.
type Progress struct {
	Files   int
	Done    int           // files that are read to their end
	Cached  int           // of those, files from the cache
	Read    int64         // bytes read since the start
	Busy    time.Duration // time that reading them took
	Dropped int           // files beyond MaxFiles
	Scanned time.Time     // when the directories were first scanned
	Trouble string        // a lasting problem, such as an unreadable directory
}

// Rate returns the bytes read per second, or 0 before the first.
func (p Progress) Rate() float64 {
	if p.Busy <= 0 {
		return 0
	}
	return float64(p.Read) / p.Busy.Seconds()
}

// NoHome explains why there are no directories with transcripts.
const NoHome = "no home directory to search for transcripts; set $HOME"

// Find returns the sessions with an ID, the beginning of an ID, or the path of a transcript.
func Find(sessions []*Session, name string) (found []*Session) {
	abs, err := filepath.Abs(name)
	for _, s := range sessions {
		switch {
		case s.ID == name, err == nil && s.Path == abs:
			return []*Session{s}
		case strings.HasPrefix(s.ID, name):
			found = append(found, s)
		}
	}
	return found
}
