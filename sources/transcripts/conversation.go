package transcripts

import (
	"context"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"acescope/engine/agentcli"
	"acescope/engine/transcript"
)

// Bounds of a conversation. What is cut or left out is counted.
const (
	MaxEntries = 5000
	MaxText    = 16 << 20 // bytes of all entries
	// MaxBytes is how much of the end of a transcript is read at first.
	MaxBytes = 64 << 20
	maxSaid  = 64 << 10 // bytes of one text
	maxValue = 32 << 10 // bytes of the arguments or the result of a call
)

// Entry is one thing that was said or done. It is never changed once it was handed out.
// Texts are untrusted.
type Entry struct {
	Kind  agentcli.Kind // user, text, thinking, tool_use (with its result), status, error
	Name  string        // of a tool, or of a status
	At    time.Time
	Model string
	Text  string // what was said; of a call its arguments
	Cut   int    // bytes that Text lacks
	// Of a call:
	CallID    string
	Done      bool // it has a result
	OK        bool
	Denied    bool
	Result    string
	ResultCut int
	Took      time.Duration // 0 where nothing tells
	// Of a session on the engine: Note says who decided a call, or why something waits;
	// Waits tells that it waits for a person, Open that it is still being written, Callback
	// that what was said is the report of another run, which Name names.
	Note     string
	Waits    bool
	Open     bool
	Callback bool
}

// Failed tells whether the entry is an error, or a call that failed or was denied.
func (e *Entry) Failed() bool {
	return e.Kind == agentcli.KindError || e.Kind == agentcli.KindToolUse && e.Done && !e.OK
}

func (e *Entry) size() int { return len(e.Text) + len(e.Result) + len(e.Name) + 128 }

// Conversation is what was said in one transcript, its newest part.
type Conversation struct {
	Path    string
	Entries []*Entry // oldest first
	First   int      // how many were left out before them, of those that were read
	Skipped int64    // bytes at the beginning of the file that were not read
	Garbage int      // lines that were no JSON
	Offset  int64    // how far it was read
	Err     string
	Updated time.Time
	Queued  int // entries at the end that wait for the agent, of a session on the engine
}

// Follower reads the conversation of a transcript as it grows. It is for one goroutine.
type Follower struct {
	c      Conversation // but for what the teller has
	told   Teller
	reader *transcript.Reader
	buf    transcript.Buffer
	info   os.FileInfo // at the last reading
}

// Follow begins at the start of a transcript, or MaxBytes before its end.
func Follow(path string) *Follower {
	return &Follower{c: Conversation{Path: path}}
}

// Read takes what is new, and tells whether there was anything.
func (f *Follower) Read(ctx context.Context) (changed bool) {
	info, err := os.Stat(f.c.Path)
	if err != nil {
		return f.fail(err)
	}
	if f.info != nil && os.SameFile(f.info, info) && f.info.Size() == info.Size() && f.info.ModTime().Equal(info.ModTime()) && f.c.Err == "" {
		return false
	}
	if f.reader == nil {
		f.reader = transcript.NewReader(f.c.Path, &f.buf)
		if skip := info.Size() - MaxBytes; skip > 0 {
			f.reader.SkipTo(skip)
			f.c.Skipped = skip
		}
	}
	before := f.c.Offset
	p, err := f.reader.Read(ctx, 0, f.restart, func(raw []byte, _ int64) { f.take(raw) })
	if err != nil {
		return f.fail(err)
	}
	changed = p.Restarted || p.Offset != before || f.c.Err != "" || f.info == nil
	f.info, f.c.Offset, f.c.Err = info, p.Offset, ""
	for range p.Oversized {
		f.told.Add(&Entry{Kind: agentcli.KindError, Name: "line", Text: "a line of more than 16 MB is passed by"})
		changed = true
	}
	return changed
}

func (f *Follower) fail(err error) bool {
	changed := f.c.Err != err.Error()
	f.c.Err = err.Error()
	return changed
}

func (f *Follower) restart() {
	f.c = Conversation{Path: f.c.Path}
	f.told = Teller{}
}

// Conversation is what was read so far; it may be kept.
func (f *Follower) Conversation() Conversation {
	c := f.c
	c.Entries, c.First = f.told.Entries()
	return c
}

func (f *Follower) take(raw []byte) {
	for _, e := range transcript.Events(raw) {
		if e.Kind == agentcli.KindGarbage {
			f.c.Garbage++
			continue
		}
		f.told.Event(e)
	}
}

func cut(s string, limit int) (string, int) {
	if len(s) <= limit {
		return s, 0
	}
	n := limit
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.Clone(s[:n]), len(s) - n
}
