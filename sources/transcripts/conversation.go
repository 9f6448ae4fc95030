package transcripts

import (
	"context"
	"encoding/json"
	"os"
	"slices"
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
}

// Follower reads the conversation of a transcript as it grows. It is for one goroutine.
type Follower struct {
	c      Conversation
	reader *transcript.Reader
	buf    transcript.Buffer
	calls  map[string]int // place of open calls, counted from the first entry that was read
	bytes  int
	info   os.FileInfo // at the last reading
}

// Follow begins at the start of a transcript, or MaxBytes before its end.
func Follow(path string) *Follower {
	return &Follower{c: Conversation{Path: path}, calls: map[string]int{}}
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
		f.add(&Entry{Kind: agentcli.KindError, Name: "line", Text: "a line of more than 16 MB is passed by"})
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
	f.calls, f.bytes = map[string]int{}, 0
}

// Conversation is what was read so far; it may be kept.
func (f *Follower) Conversation() Conversation {
	c := f.c
	c.Entries = slices.Clone(f.c.Entries)
	return c
}

func (f *Follower) take(raw []byte) {
	for _, e := range transcript.Events(raw) {
		switch e.Kind {
		case agentcli.KindGarbage:
			f.c.Garbage++
		case agentcli.KindToolUse:
			f.call(e)
		case agentcli.KindToolResult:
			f.result(e)
		case agentcli.KindUser, agentcli.KindText, agentcli.KindThinking, agentcli.KindStatus, agentcli.KindError:
			n := &Entry{Kind: e.Kind, Name: e.Name, At: e.At, Model: e.Model}
			n.Text, n.Cut = cut(e.Text, maxSaid)
			if n.Text != "" || n.Name != "" {
				f.add(n)
			}
		}
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

func (f *Follower) call(e agentcli.Event) {
	if _, open := f.calls[e.Tool.ID]; open {
		return
	}
	n := &Entry{Kind: agentcli.KindToolUse, Name: e.Tool.Name, At: e.At, Model: e.Model, CallID: e.Tool.ID}
	n.Text, n.Cut = cut(string(e.Tool.Args), maxValue)
	f.calls[e.Tool.ID] = f.c.First + len(f.c.Entries)
	f.add(n)
}

// result puts a result to its call; one whose call is not here stands alone.
func (f *Follower) result(e agentcli.Event) {
	at, ok := f.calls[e.Tool.ID]
	if at -= f.c.First; !ok || at < 0 {
		n := &Entry{Kind: agentcli.KindToolUse, At: e.At, CallID: e.Tool.ID}
		f.finish(n, e)
		f.add(n)
		return
	}
	n := *f.c.Entries[at]
	if n.Done {
		return
	}
	before := n.size()
	f.finish(&n, e)
	if n.Took == 0 && !n.At.IsZero() && e.At.After(n.At) {
		n.Took = e.At.Sub(n.At)
	}
	f.c.Entries[at] = &n // who has the list has a copy of it
	f.bytes += n.size() - before
	f.bound()
}

func (f *Follower) finish(n *Entry, e agentcli.Event) {
	n.Done, n.OK, n.Denied, n.Took = true, e.Tool.OK, e.Tool.Denied, e.Tool.Duration
	n.Result, n.ResultCut = cut(plainResult(e.Tool.Result), maxValue)
}

// plainResult is a text, or the texts of a list; else the value as it is.
func plainResult(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var list []struct{ Type, Text string }
	if json.Unmarshal(raw, &list) != nil {
		return string(raw)
	}
	var parts []string
	for _, b := range list {
		if b.Type != "text" && b.Text == "" {
			b.Text = "[" + b.Type + "]"
		}
		parts = append(parts, b.Text)
	}
	return strings.Join(parts, "\n")
}

func (f *Follower) add(e *Entry) {
	f.c.Entries = append(f.c.Entries, e)
	f.bytes += e.size()
	f.bound()
}

// bound leaves out the oldest.
func (f *Follower) bound() {
	n := 0
	for ; len(f.c.Entries)-n > MaxEntries || f.bytes > MaxText && len(f.c.Entries)-n > 1; n++ {
		f.bytes -= f.c.Entries[n].size()
		delete(f.calls, f.c.Entries[n].CallID)
		f.c.Entries[n] = nil
	}
	f.c.Entries, f.c.First = f.c.Entries[n:], f.c.First+n
}
