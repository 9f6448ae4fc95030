// Package transcripts is an index of the sessions that Claude Code has kept on this
// machine, and a follower of the conversation of one. It imports engine/ace,
// engine/agentcli and engine/transcript and knows no screen.
//
// Order: the newest transcripts are read first, so that what somebody looks for is there
// before the rest. Back-pressure: one goroutine reads, a bounded piece at a time, and looks
// between two pieces whether something newer has been written; nobody waits for it. Bounds:
// the newest [MaxFiles] transcripts, MaxEntries and MaxText of a conversation; what is left
// out is counted. What was read is kept in a cache file, and read again only where a file
// is another than it was. Nothing but that file is ever written.
package transcripts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"acescope/engine/transcript"
)

// MaxFiles bounds the transcripts of an index, those of subagents among them. The oldest
// are left out, and counted.
const MaxFiles = 20_000

// Roots is where Claude Code keeps its configuration: what $CLAUDE_CONFIG_DIR says, else
// ~/.claude; none where there is no home directory.
func Roots(getenv func(string) string) []string {
	if dir := getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return []string{dir}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	return []string{filepath.Join(home, ".claude")}
}

// State says how fresh a session is.
type State string

// States. Live is written to: its last line is under LiveFor old, or under WorkingFor
// while a turn is unfinished. Idle was touched within EndedAfter. Transcripts do not
// tell when a session has ended for good, so Ended means no more than a long silence.
const (
	Live  State = "live"
	Idle  State = "idle"
	Ended State = "ended"
)

// What is taken for live, idle and ended.
const (
	LiveFor    = time.Minute
	WorkingFor = 15 * time.Minute
	EndedAfter = 12 * time.Hour
)

// Session is a transcript and those of its subagents. It is never changed once it was
// handed out. Texts are untrusted.
type Session struct {
	ID       string
	Path     string
	Project  string // name of its directory below projects/
	Size     int64  // of all its transcripts
	ModTime  time.Time
	Read     bool // false while only the names, sizes and times of its files are known
	Err      string
	Summary  transcript.Summary
	Agents   []Agent // in the order of their beginning
	Inherits transcript.Totals
	// ForkedFrom is the session whose beginning this one has copied, Shared how many lines
	// of it; Inherits is what they had cost there.
	ForkedFrom string
	Shared     int
}

// Agent is a subagent of a session.
type Agent struct {
	ID          string
	Path        string
	Parent      string // id of the subagent that called it, "" for the session
	Type        string
	Description string
	Size        int64
	ModTime     time.Time
	Summary     transcript.Summary
}

// Totals is what the session has spent with its subagents, without what was spent before it
// was forked.
func (s *Session) Totals() transcript.Totals {
	t := s.Summary.Totals
	t.Tokens = t.Tokens.Sub(s.Inherits.Tokens)
	t.CostUSD -= s.Inherits.CostUSD
	t.Priced, t.Unpriced = t.Priced-s.Inherits.Priced, t.Unpriced-s.Inherits.Unpriced
	t.Calls, t.Failed, t.Denied = t.Calls-s.Inherits.Calls, t.Failed-s.Inherits.Failed, t.Denied-s.Inherits.Denied
	for _, a := range s.Agents {
		t = t.Add(a.Summary.Totals)
	}
	return t
}

// State is how fresh the session is now.
func (s *Session) State(now time.Time) State {
	age := now.Sub(s.Touched())
	switch {
	case age < LiveFor, s.Summary.Unfinished && age < WorkingFor:
		return Live
	case age < EndedAfter:
		return Idle
	}
	return Ended
}

// Touched is when somebody was at work on it last: as its transcripts tell, but no later
// than their files do, since a clock may have been wrong and a file may have been copied.
func (s *Session) Touched() time.Time {
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

// Last is when something was said last, as its transcript tells, else as the file does.
func (s *Session) Last() time.Time {
	if s.Summary.Last.IsZero() {
		return s.ModTime
	}
	return s.Summary.Last
}

// Name is what the session is about: its title, its first prompt, or nothing.
func (s *Session) Name() string {
	if s.Summary.Title != "" {
		return s.Summary.Title
	}
	return s.Summary.Prompt
}

// Dir is the directory that it worked in, as far as it is known.
func (s *Session) Dir() string {
	if s.Summary.WorkDir != "" {
		return s.Summary.WorkDir
	}
	return s.Project
}

// Failed tells whether something went wrong: a call that failed, or an error of the API.
func (s *Session) Failed() bool {
	return s.Err != "" || s.Summary.Errors > 0 || s.Totals().Failed > 0
}

// Progress says how far the reading has come.
type Progress struct {
	Sessions, Files int // that are held
	Done            int // files of them that are read as far as they go
	Cached          int // of those, without reading
	Bytes           int64
	BytesDone       int64
	Read            int64         // bytes that were read since the start
	Busy            time.Duration // that this took
	Dropped         int           // files that are left out, the oldest
	Scanned         time.Time     // when the directories were looked through last
	Reading         string        // the file that is being read, "" for none
	Trouble         string        // what lasts: a directory that may not be read
}

// Rate is how many bytes a second were read, 0 before the first.
func (p Progress) Rate() float64 {
	if p.Busy <= 0 {
		return 0
	}
	return float64(p.Read) / p.Busy.Seconds()
}

// Find is the sessions that an id, the beginning of one, or the path of a transcript names.
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

func newest(a, b *Session) int {
	if c := b.Last().Compare(a.Last()); c != 0 {
		return c
	}
	return strings.Compare(a.Path, b.Path)
}

func sortNewest(list []*Session) { slices.SortFunc(list, newest) }
