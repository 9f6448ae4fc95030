package agents

import (
	"regexp"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"acescope/sources/sessions"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/run"
)

// Conversation is a conversation, whole. It stays at the end until somebody moves up. Only
// what is in sight is drawn, so that its length does not matter.
type Conversation struct {
	*Agents
	styles        theme.Styles
	width, height int
	search        *regexp.Regexp
	unfolded      map[int]bool // by number of the entry
	all           bool         // unfolded, so that unfolded says which are folded

	path    string // whose conversation the places are of
	C       *sessions.Conversation
	Away    bool // not at the end
	At, top TalkPlace
	painted map[talkKey][]string
}

// TalkPlace is a line of an entry. Entries are numbered from the first that was read.
type TalkPlace struct{ Entry, line int }

type talkKey struct {
	e    *sessions.TranscriptEntry
	open bool
}

// maxPainted bounds the entries that are kept drawn.
const maxPainted = 512

func newAgentTalk(a *Agents) *Conversation {
	return &Conversation{Agents: a, unfolded: map[int]bool{}}
}

func (v *Conversation) Name() string { return "Conversation" }

func (v *Conversation) Title() string {
	r, ok := v.Row()
	if !ok {
		return "Conversation"
	}
	title := "Conversation"
	if a, ok := v.part(); ok {
		title += " of subagent " + text.Safe(a.ID, " ") + " in"
	}
	name := r.Name
	if name == "" {
		name = r.ID
	}
	return title + " " + text.Safe(firstLine(name), " ")
}

func (v *Conversation) Footer() string {
	v.take()
	if v.C == nil {
		return ""
	}
	dot := " " + v.styles.Glyphs.Dot + " "
	n := len(v.C.Entries)
	parts := []string{"following"}
	if v.Away {
		parts[0] = text.Count(int64(max(v.C.First+n-1-v.At.Entry, 0))) + " below, G follows"
	}
	if t := v.live(); t != nil && v.reads == v.Cursor {
		parts = append(parts, string(t.From))
	}
	parts = append(parts, text.Count(int64(min(v.At.Entry+1, v.C.First+n)))+"/"+text.Count(int64(v.C.First+n)))
	if v.C.First > 0 {
		parts = append(parts, text.Count(int64(v.C.First))+" earlier left out")
	}
	if v.C.Skipped > 0 {
		parts = append(parts, megabytes(float64(v.C.Skipped))+" at the start not read")
	}
	if v.search != nil {
		parts = append(parts, "/"+text.Safe(v.search.String(), " "))
	}
	return strings.Join(parts, dot)
}

func (v *Conversation) Bindings() []tui.Binding {
	b := func(name, help, short string, do func(tui.Shell), keys ...string) tui.Binding {
		return tui.Binding{Action: "conversation." + name, Keys: keys, Help: help, Short: short, Do: func(s tui.Shell) tea.Cmd { do(s); return nil }}
	}
	list := append(widget.Motions("conversation", v),
		b("fold", "unfold this entry, or fold it", "unfold", func(tui.Shell) { v.fold() }, "o"),
		tui.Binding{Action: "conversation.enter", Keys: []string{"enter"}, Help: "write a message to the session; where it does not listen, unfold this entry", Do: v.enter},
		b("fold_all", "unfold all entries, or fold them", "all", func(tui.Shell) { v.all = !v.all; clear(v.unfolded); v.At.line = 0 }, "O"),
		b("next_entry", "next entry", "", func(tui.Shell) { v.jump(1) }, "]"),
		b("previous_entry", "previous entry", "", func(tui.Shell) { v.jump(-1) }, "["),
		b("search", "search with a regular expression; empty ends it", "search", v.ask, "/"),
		b("next", "next match", "", func(s tui.Shell) { v.find(s, 1) }, "n"),
		b("previous", "previous match", "", func(s tui.Shell) { v.find(s, -1) }, "N"),
		b("next_error", "next error, or call that failed", "", func(s tui.Shell) { v.toError(s, 1) }, "e"),
		b("previous_error", "previous error, or call that failed", "", func(s tui.Shell) { v.toError(s, -1) }, "E"),
		b("part", "the next subagent's conversation, then the session's again", v.partShort(), func(s tui.Shell) { v.nextPart(s, 1) }, "a"))
	runs := v.runsBinding("conversation")
	runs.Do = v.openCallback
	return append(append(list, v.talkBindings("conversation", v.waitingHere)...), runs, v.eventBinding("conversation"))
}

func (v *Conversation) partShort() string {
	if r, ok := v.Row(); ok && r.Engine != nil && r.Agents == 0 {
		return ""
	}
	return "subagent"
}

// enter writes to a session that listens; a transcript's entry is unfolded.
func (v *Conversation) enter(s tui.Shell) tea.Cmd {
	if r, ok := v.Row(); ok && r.Engine != nil && r.Engine.Open() && v.actor.Actions != nil {
		return v.message(s)
	}
	v.fold()
	return nil
}

// waitingHere is the call under the cursor where it waits, else the one that waits longest.
func (v *Conversation) waitingHere() *sessions.Approval {
	r, ok := v.Row()
	if e := v.Entry(v.At.Entry); ok && e != nil && e.Waits && r.Engine != nil {
		for _, w := range sessions.ApprovalsOf(r.Key, v.state(r)) {
			if w.Call.ID == e.CallID {
				return &w
			}
		}
	}
	return v.waiting()
}

// SetShown goes on reading while the conversation is looked at.
func (v *Conversation) SetShown(shown bool) {
	v.look(shown)
}

func (v *Conversation) SetStyles(s theme.Styles) { v.styles, v.painted = s, nil }

func (v *Conversation) SetSize(width, height int) {
	if width != v.width {
		v.painted = nil
	}
	v.width, v.height = width, height
}

func (v *Conversation) Refresh() { v.refresh() }

// Copy gives the entry under the cursor: what was said, or a call with its result.
func (v *Conversation) Copy() (what, content string) {
	v.take()
	e := v.Entry(v.At.Entry)
	if e == nil {
		return "", ""
	}
	if e.Kind == sessions.EntryTool {
		return "call", e.Name + " " + e.Text + "\n" + e.Result
	}
	return "text", e.Text
}

// take goes over to the conversation that is here now.
func (v *Conversation) take() {
	c := v.Talk()
	if v.path != v.reads {
		v.path, v.Away, v.At, v.top, v.painted = v.reads, false, TalkPlace{}, TalkPlace{}, nil
		clear(v.unfolded)
	}
	if v.C = c; c == nil || len(c.Entries) == 0 {
		return
	}
	last := c.First + len(c.Entries) - 1
	if v.At.Entry > last {
		v.Away = false // the file is another one
	}
	if !v.Away {
		v.At = TalkPlace{last, len(v.Lines(last)) - 1}
		return
	}
	if v.At.Entry < c.First {
		v.At = TalkPlace{c.First, 0}
	}
	v.At.line = widget.Clamp(v.At.line, 0, len(v.Lines(v.At.Entry))-1)
}

func (v *Conversation) Entry(n int) *sessions.TranscriptEntry {
	if v.C == nil || n < v.C.First || n >= v.C.First+len(v.C.Entries) {
		return nil
	}
	return v.C.Entries[n-v.C.First]
}

// Lines are those of an entry, drawn once.
func (v *Conversation) Lines(n int) []string {
	key := talkKey{v.Entry(n), v.unfolded[n] != v.all}
	if lines, ok := v.painted[key]; ok {
		return lines
	}
	p := talkPainter{s: v.styles, width: max(v.width-2, 1), loc: v.location}
	lines := p.lines(key.e, key.open)
	if len(lines) == 0 {
		lines = []string{text.Spaces(p.width)}
	}
	if v.painted == nil || len(v.painted) >= maxPainted {
		v.painted = map[talkKey][]string{}
	}
	v.painted[key] = lines
	return lines
}

func (v *Conversation) Page() int { return max(v.height-v.headRows(), 1) }

func (v *Conversation) headRows() int {
	n := len(v.banner())
	if v.C != nil && v.C.Err != "" {
		n++
	}
	return n
}

func (v *Conversation) Scroll(by int) {
	v.take()
	if v.C == nil || len(v.C.Entries) == 0 {
		return
	}
	last := v.C.First + len(v.C.Entries) - 1
	switch {
	case by >= widget.AllLines:
		v.At = TalkPlace{last, len(v.Lines(last)) - 1}
	case by <= -widget.AllLines:
		v.At = TalkPlace{v.C.First, 0}
	default:
		v.At = v.moved(v.At, by)
	}
	v.Away = v.At != TalkPlace{last, len(v.Lines(last)) - 1}
}

// moved is a place so many lines further, at most at an end.
func (v *Conversation) moved(p TalkPlace, by int) TalkPlace {
	last := v.C.First + len(v.C.Entries) - 1
	for p.line += by; p.line < 0 && p.Entry > v.C.First; {
		p.Entry--
		p.line += len(v.Lines(p.Entry))
	}
	for p.line >= len(v.Lines(p.Entry)) && p.Entry < last {
		p.line -= len(v.Lines(p.Entry))
		p.Entry++
	}
	p.line = widget.Clamp(p.line, 0, len(v.Lines(p.Entry))-1)
	return p
}

func (v *Conversation) goTo(p TalkPlace) {
	v.At = p
	v.Away = true
}

func (v *Conversation) jump(by int) {
	v.take()
	if n := v.At.Entry + by; v.Entry(n) != nil {
		v.goTo(TalkPlace{n, 0})
	} else if by < 0 && v.C != nil {
		v.goTo(TalkPlace{v.At.Entry, 0})
	}
}

func (v *Conversation) fold() {
	v.take()
	if v.Entry(v.At.Entry) == nil {
		return
	}
	v.unfolded[v.At.Entry] = !v.unfolded[v.At.Entry]
	v.goTo(TalkPlace{v.At.Entry, 0})
}

func (v *Conversation) ask(s tui.Shell) {
	value := ""
	if v.search != nil {
		value = v.search.String()
	}
	s.Ask(tui.Prompt{Label: "/", Value: value, Hint: "a regular expression; (?i) in front ignores case",
		Preview: func(typed string) string {
			if _, err := regexp.Compile(typed); err != nil {
				return err.Error()
			}
			return ""
		},
		Done: func(typed string) tea.Cmd {
			v.search = nil
			if typed == "" {
				return nil
			}
			re, err := regexp.Compile(typed)
			if err != nil {
				return func() tea.Msg { return tui.Failed(err) }
			}
			v.search = re
			v.take()
			if !v.Away { // from the end, the newest match is wanted
				v.find(s, -1)
			} else {
				v.find(s, 1)
			}
			return nil
		}})
}

func (v *Conversation) hit(e *sessions.TranscriptEntry) bool {
	return v.search.MatchString(e.Text) || v.search.MatchString(e.Result) || v.search.MatchString(e.Name)
}

// find goes to the next entry that matches, and to the line in it that does; where that is
// folded away it unfolds it.
func (v *Conversation) find(s tui.Shell, by int) {
	v.take()
	if v.search == nil {
		s.Note("search with / first")
		return
	}
	n := v.At.Entry + by
	if !v.Away && by < 0 {
		n = v.At.Entry // the end itself
	}
	for ; v.Entry(n) != nil; n += by {
		if v.hit(v.Entry(n)) {
			v.reveal(n)
			return
		}
	}
	s.Note("no further entry matches")
}

func (v *Conversation) reveal(n int) {
	for range 2 {
		for i, l := range v.Lines(n) {
			if v.search.MatchString(ansi.Strip(l)) {
				v.goTo(TalkPlace{n, i})
				return
			}
		}
		if v.unfolded[n] == v.all {
			v.unfolded[n] = !v.all
		}
	}
	v.goTo(TalkPlace{n, 0}) // it is broken over two lines
}

func (v *Conversation) toError(s tui.Shell, by int) {
	v.take()
	for n := v.At.Entry + by; v.Entry(n) != nil; n += by {
		if v.Entry(n).Failed() {
			v.goTo(TalkPlace{n, 0})
			return
		}
	}
	s.Note("no further error")
}

func (v *Conversation) Draw(_ time.Time, focused bool) []string {
	v.take()
	s := v.styles
	if v.C == nil {
		said := "reading the conversation" + s.Glyphs.Ellipsis
		if t := v.live(); t != nil && t.Err != "" {
			said = text.Safe(t.Err, " ")
		}
		return widget.Centre([]string{said}, v.width, v.height, s)
	}
	head := v.banner()
	if v.C.Err != "" {
		head = append(head, s.Error.Paint(text.Fit(" "+s.Glyphs.Failed+" "+text.Safe(v.C.Err, " "), v.width, s.Glyphs.Ellipsis)))
	}
	if len(v.C.Entries) == 0 {
		return widget.Fill(append(head, widget.Centre([]string{"nothing was said here yet"}, v.width, max(v.height-len(head), 0), s)...), v.width, v.height)
	}
	v.settle()
	lines := head
	for p, n := v.top, v.Page(); n > 0; n-- {
		lines = append(lines, v.line(p, focused))
		next := v.moved(p, 1)
		if next == p {
			break
		}
		p = next
	}
	return widget.Fill(lines, v.width, v.height)
}

// line is one with the pointer before it: strong at the cursor, and a bar beside the rest of
// its entry.
func (v *Conversation) line(p TalkPlace, focused bool) string {
	s := v.styles
	gutter := "  "
	switch {
	case p == v.At && focused:
		gutter = s.Glyphs.Pointer + " "
	case p.Entry == v.At.Entry:
		gutter = s.Glyphs.Plain.Side + " "
	}
	l := v.Lines(p.Entry)[p.line]
	if v.search != nil && v.search.MatchString(ansi.Strip(l)) {
		l = s.Cursor.Paint(ansi.Strip(l))
	}
	return text.Fit(s.Focus.Paint(gutter)+l, v.width, "")
}

// banner is how a session on the engine stands: what waits for a person, above all.
func (v *Conversation) banner() []string {
	r, ok := v.Row()
	if !ok || r.Engine == nil || v.reads != v.Cursor {
		return nil
	}
	s := v.styles
	l := text.Line{Max: v.width, Tail: s.Glyphs.Ellipsis}
	st := v.state(r)
	if st == nil {
		return nil
	}
	if n := len(st.Pending); n > 0 {
		l.Add(s.Alert, " "+s.Glyphs.Failed+" "+plural(n, "call")+" "+waitWord(n)+" for you: "+text.Safe(st.Pending[0].Name, " ")+" ").
			Add(s.Text, " ").Add(s.Key, "w").Add(s.Text, " "+text.Safe(run.Payload(st.Pending[0].Args), " "))
		return []string{l.String(s.Text)}
	}
	m := talkMark(st.Status, st.Exit, s)
	l.Add(m.Ink, " "+m.Glyph+" "+m.Word)
	if st.Current != nil {
		l.Add(s.Muted, "  turn "+text.Count(int64(st.Current.Turn)))
	}
	if n := len(st.Queue); n > 0 {
		l.Add(s.Warning, "  "+plural(n, "message")+" "+waitWord(n))
	}
	if t := v.live(); t != nil && t.Err != "" {
		l.Add(s.Error, "  "+s.Glyphs.Failed+" "+text.Safe(t.Err, " "))
	}
	return []string{l.String(s.Text)}
}

func waitWord(n int) string {
	if n == 1 {
		return "waits"
	}
	return "wait"
}

// settle moves what is in sight so that it holds the cursor, and no room is left at the end.
func (v *Conversation) settle() {
	if v.Entry(v.top.Entry) == nil || v.top.line >= len(v.Lines(v.top.Entry)) {
		v.top = v.At
	}
	if before(v.At, v.top) {
		v.top = v.At
	}
	if lowest := v.moved(v.At, 1-v.Page()); before(v.top, lowest) {
		v.top = lowest
	}
	last := v.C.First + len(v.C.Entries) - 1
	if full := v.moved(TalkPlace{last, len(v.Lines(last)) - 1}, 1-v.Page()); before(full, v.top) {
		v.top = full
	}
}

func before(a, b TalkPlace) bool {
	return a.Entry < b.Entry || a.Entry == b.Entry && a.line < b.line
}
