package transcripts

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/transcript"
)

// Bounds of a conversation. What is cut or dropped is counted.
const (
	MaxEntries = 5000
	MaxText    = 16 << 20 // bytes of all entries
	// MaxBytes is how much of the end of a transcript is read at first.
	MaxBytes  = 64 << 20
	maxSpeech = 64 << 10 // bytes of one text
	maxValue  = 32 << 10 // bytes of the arguments or the result of a call
)

// Kinds of entries.
const (
	KindUser     = agentcli.KindUser
	KindText     = agentcli.KindText
	KindThinking = agentcli.KindThinking
	KindCall     = agentcli.KindToolUse // with its result
	KindStatus   = agentcli.KindStatus
	KindError    = agentcli.KindError
)

// Entry is one text, tool call or status of a conversation. It is immutable once it was
// returned. Texts are untrusted.
type Entry struct {
	Kind  agentcli.Kind `json:"-"`
	Name  string        `json:"name,omitempty"` // of a tool or a status
	At    time.Time     `json:"at,omitzero"`
	Model string        `json:"model,omitempty"`
	Text  string        `json:"text,omitempty"` // of a call, its arguments
	Cut   int           `json:"-"`              // bytes that were cut from Text
	// Of a call:
	CallID    string        `json:"call_id,omitempty"`
	Done      bool          `json:"-"` // it has a result
	OK        bool          `json:"-"`
	Denied    bool          `json:"denied,omitempty"`
	Result    string        `json:"result,omitempty"`
	ResultCut int           `json:"-"`
	Took      time.Duration `json:"-"` // 0 if unknown
	// Of a session on the engine: Note says who decided a call or why something waits, Waits
	// is set if it waits for a user, Open if it is still being written, and Callback if the
	// text is the report of another run, whose name is Name.
	Note     string `json:"note,omitempty"`
	Waits    bool   `json:"waits,omitempty"`
	Open     bool   `json:"-"`
	Callback bool   `json:"callback,omitempty"`
}

// Failed reports whether the entry is an error, or a call that failed or was denied.
func (e *Entry) Failed() bool {
	return e.Kind == agentcli.KindError || e.Kind == agentcli.KindToolUse && e.Done && !e.OK
}

func (e *Entry) size() int { return len(e.Text) + len(e.Result) + len(e.Name) + 128 }

// Conversation is the newest part of the conversation in a transcript.
type Conversation struct {
	Path    string
	Entries []*Entry // oldest first
	First   int      // entries that were read and dropped before them
	Skipped int64    // bytes at the beginning of the file that were not read
	Offset  int64    // how far it was read
	Err     string
	Queued  int // entries at the end that wait for the agent, of a session on the engine
}

// Follower reads the conversation of a transcript as it grows. It is for one goroutine.
type Follower struct {
	c       Conversation // without the entries
	builder Builder
	format  transcript.Format
	events  func(raw []byte) []agentcli.Event
	reader  transcript.LineReader
	last    transcript.Entry // at the last reading
}

// Follow returns a follower that begins at the start of a transcript, or MaxBytes before its end.
func Follow(path string) *Follower {
	f := &Follower{format: transcript.FormatOf(path)}
	f.restart(path)
	return f
}

// Read reads new data and reports whether the conversation changed.
func (f *Follower) Read(ctx context.Context) (changed bool) {
	entries, err := f.format.Stat(ctx, f.c.Path)
	if err == nil && len(entries) == 0 {
		err = errors.New(f.c.Path + " is not a transcript")
	}
	if err != nil {
		return f.fail(err)
	}
	now := entries[0]
	if f.last.Size == now.Size && f.last.ModTime.Equal(now.ModTime) && f.last.Path != "" && f.c.Err == "" {
		return false
	}
	if f.reader == nil {
		f.reader = f.format.Open(f.c.Path)
		if skip := now.Size - MaxBytes; skip > 0 {
			f.reader.SkipTo(skip)
			f.c.Skipped = skip
		}
	}
	before := f.c.Offset
	p, err := f.reader.Read(ctx, 0, func() { f.restart(f.c.Path) }, func(raw []byte, _ int64) { f.add(raw) })
	if err != nil {
		return f.fail(err)
	}
	changed = p.Restarted || p.Offset != before || f.c.Err != "" || f.last.Path == ""
	f.last, f.c.Offset, f.c.Err = now, p.Offset, ""
	for range p.Oversized {
		f.builder.Add(&Entry{Kind: agentcli.KindError, Name: "line",
			Text: "a line of more than 16 MB is skipped"})
		changed = true
	}
	return changed
}

func (f *Follower) fail(err error) (changed bool) {
	changed = f.c.Err != err.Error()
	f.c.Err = err.Error()
	return changed
}

func (f *Follower) restart(path string) {
	f.c = Conversation{Path: path}
	f.builder = Builder{}
	f.events = f.format.Events()
}

// Conversation returns what was read so far; the caller may keep it.
func (f *Follower) Conversation() Conversation {
	c := f.c
	c.Entries, c.First = f.builder.Entries()
	return c
}

func (f *Follower) add(raw []byte) {
	for _, e := range f.events(transcript.Redacted(raw)) {
		if e.Kind != agentcli.KindGarbage {
			f.builder.Event(e)
		}
	}
}

// Builder makes the entries of a conversation from an agent's events and joins calls with
// their results. The zero value is ready to use. It is for one goroutine; entries that it
// returned do not change. Its bounds are those of a conversation.
type Builder struct {
	entries []*Entry
	first   int            // entries that were dropped before them
	calls   map[string]int // positions of open calls, counted from the first entry
	bytes   int
	parts   strings.Builder // the text that is being streamed
	stream  *Entry          // its entry without the text, or nil
}

// Entries returns the entries so far, and how many were dropped before them.
func (b *Builder) Entries() ([]*Entry, int) {
	list := slices.Clone(b.entries)
	if b.stream != nil {
		list = append(list, b.streamed(true))
	}
	return list, b.first
}

// Event adds an agent's event. Events that do not belong to a conversation are ignored.
func (b *Builder) Event(e agentcli.Event) {
	switch e.Kind {
	case agentcli.KindDelta:
		b.addPart(e)
		return
	case agentcli.KindText: // the whole text replaces its parts
		b.stopStream()
	case agentcli.KindToolUse, agentcli.KindResult:
		b.End()
	}
	switch e.Kind {
	case agentcli.KindToolUse:
		b.addCall(e)
	case agentcli.KindToolResult:
		b.addResult(e)
	case agentcli.KindUser, agentcli.KindText, agentcli.KindThinking, agentcli.KindStatus, agentcli.KindError:
		n := &Entry{Kind: e.Kind, Name: e.Name, At: e.At, Model: e.Model}
		n.Text, n.Cut = cut(e.Text, maxSpeech)
		if n.Text != "" || n.Name != "" {
			b.Add(n)
		}
	}
}

// End ends a streamed text and keeps what has arrived of it.
func (b *Builder) End() {
	if b.stream != nil {
		b.Add(b.streamed(false))
		b.stopStream()
	}
}

// addPart adds to the streamed text.
func (b *Builder) addPart(e agentcli.Event) {
	if e.Text == "" {
		return
	}
	if b.stream == nil {
		b.stream = &Entry{Kind: agentcli.KindText, At: e.At, Model: e.Model}
	}
	part, rest := cut(e.Text, max(maxSpeech-b.parts.Len(), 0))
	b.parts.WriteString(part)
	b.stream.Cut += rest
}

// streamed returns the entry of the streamed text so far.
func (b *Builder) streamed(open bool) *Entry {
	n := *b.stream
	n.Text, n.Open = b.parts.String(), open
	return &n
}

func (b *Builder) stopStream() {
	b.stream = nil
	b.parts = strings.Builder{}
}

func (b *Builder) addCall(e agentcli.Event) {
	if _, open := b.calls[e.Tool.ID]; open {
		return
	}
	if b.calls == nil {
		b.calls = map[string]int{}
	}
	n := &Entry{Kind: agentcli.KindToolUse, Name: e.Tool.Name, At: e.At, Model: e.Model, CallID: e.Tool.ID}
	n.Text, n.Cut = cut(string(e.Tool.Args), maxValue)
	b.calls[e.Tool.ID] = b.first + len(b.entries)
	b.Add(n)
}

// addResult adds a result to its call, or alone if the call is missing.
func (b *Builder) addResult(e agentcli.Event) {
	at, ok := b.calls[e.Tool.ID]
	if at -= b.first; !ok || at < 0 {
		n := &Entry{Kind: agentcli.KindToolUse, At: e.At, CallID: e.Tool.ID}
		n.setResult(e)
		b.Add(n)
		return
	}
	n := *b.entries[at] // a copy: entries that were returned do not change
	if n.Done {
		return
	}
	before := n.size()
	n.setResult(e)
	if n.Took == 0 && !n.At.IsZero() && e.At.After(n.At) {
		n.Took = e.At.Sub(n.At)
	}
	b.entries[at] = &n
	b.bytes += n.size() - before
	b.bound()
}

func (e *Entry) setResult(result agentcli.Event) {
	e.Done, e.OK, e.Denied = true, result.Tool.OK, result.Tool.Denied
	e.Took = result.Tool.Duration
	e.Result, e.ResultCut = cut(result.Tool.ResultText(), maxValue)
}

// Add appends an entry.
func (b *Builder) Add(e *Entry) {
	b.entries = append(b.entries, e)
	b.bytes += e.size()
	b.bound()
}

// bound drops the oldest entries beyond the bounds.
func (b *Builder) bound() {
	n := 0
	for ; len(b.entries)-n > MaxEntries || b.bytes > MaxText && len(b.entries)-n > 1; n++ {
		b.bytes -= b.entries[n].size()
		delete(b.calls, b.entries[n].CallID)
		b.entries[n] = nil
	}
	b.entries, b.first = b.entries[n:], b.first+n
}

// cut returns at most limit bytes of s, and how many bytes it cut off.
func cut(s string, limit int) (string, int) {
	head := ace.Head(s, limit)
	return strings.Clone(head), len(s) - len(head)
}
