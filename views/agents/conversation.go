package agents

import (
	"regexp"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"acescope/engine/ace"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Conversation is the view of a whole conversation. It follows the end until the user moves up. It draws
// visible entries only, so the length does not matter.
type Conversation struct {
	*Agents
	console.Pane
	search   *regexp.Regexp
	unfolded map[int]bool // by entry number
	all      bool         // all entries are unfolded, except those in unfolded

	path    string // key of the conversation that At and top belong to
	Current *transcripts.Conversation
	Away    bool // the cursor is not at the end
	At, top Place
	painted map[paintedKey][]string
}

// Place is a line of an entry. Entries are numbered from the first of the conversation.
type Place struct{ Entry, line int }

type paintedKey struct {
	e    *transcripts.Entry
	open bool
}

// maxPainted is the number of drawn entries kept.
const maxPainted = 512

func newConversation(a *Agents) *Conversation {
	return &Conversation{Agents: a, Pane: console.NewPane("Conversation"), unfolded: map[int]bool{}}
}

func (v *Conversation) Title() string {
	r, ok := v.Row()
	if !ok {
		return "Conversation"
	}
	title := "Conversation"
	if a, ok := v.part(); ok {
		title += " of subagent " + text.Safe(a.ID, " ") + " in"
	}
	return title + " " + text.Safe(firstLine(sessionName(r)), " ")
}

func (v *Conversation) Footer() string {
	v.sync()
	if v.Current == nil {
		return ""
	}
	end := v.Current.First + len(v.Current.Entries)
	parts := []string{"following"}
	if v.Away {
		parts[0] = ace.Number(max(end-1-v.At.Entry, 0)) + " below, G follows"
	}
	if t := v.live(); t != nil && v.wanted == v.Cursor {
		parts = append(parts, string(t.From))
	}
	return v.Join(append(parts, ace.Number(min(v.At.Entry+1, end))+"/"+ace.Number(end),
		widget.If(v.Current.First > 0, ace.Number(v.Current.First)+" earlier not kept", ""),
		widget.If(v.Current.Skipped > 0, console.Bytes(v.Current.Skipped)+" at the start not read", ""),
		console.SearchText(v.search))...)
}

func (v *Conversation) Bindings() []tui.Binding {
	b := func(name, help, short string, do func(tui.Shell), keys ...string) tui.Binding {
		return console.Key("conversation."+name, help, short, do, keys...)
	}
	find := func(by int) func(tui.Shell) { return func(s tui.Shell) { v.find(s, by) } }
	toError := func(by int) func(tui.Shell) { return func(s tui.Shell) { v.toError(s, by) } }
	list := append(widget.Motions("conversation", v),
		b("fold", "unfold this entry, or fold it", "unfold", func(tui.Shell) { v.fold() }, "c"),
		console.Key("conversation.enter",
			"write a message to the session; in a transcript, unfold this entry", "", v.enter, "enter"),
		b("all", "unfold all entries, or fold them", "all",
			func(tui.Shell) { v.all = !v.all; clear(v.unfolded); v.At.line = 0 }, "a"),
		b("next_entry", "next entry", "", func(tui.Shell) { v.jump(1) }, "]"),
		b("previous_entry", "previous entry", "", func(tui.Shell) { v.jump(-1) }, "["),
		b("search", "search with a regular expression; empty ends the search", "search", v.ask, "/"),
		b("next_match", "next match", widget.If(v.search != nil, "next match", ""), find(1), "ctrl+n"),
		b("previous_match", "previous match", "", find(-1), "ctrl+p"),
		b("next_error", "next error or failed call", "", toError(1), "e"),
		b("previous_error", "previous error or failed call", "", toError(-1), "E"),
		b("branch", "show the conversation of the next subagent, then of the session again", v.partShort(),
			func(s tui.Shell) { v.nextPart(s, 1) }, "B"))
	return slices.Concat(list, v.actionBindings("conversation", v.waitingHere),
		v.runBindings("conversation", v.openCallback))
}

func (v *Conversation) partShort() string {
	if r, ok := v.Row(); ok && r.Engine != nil && r.Agents == 0 {
		return ""
	}
	return "subagent"
}

// enter opens the prompt for a message, or unfolds an entry of a transcript.
func (v *Conversation) enter(s tui.Shell) tea.Cmd {
	if r, ok := v.Row(); ok && r.Engine != nil && r.Engine.Open() && v.actions != nil {
		return v.message(s)
	}
	v.fold()
	return nil
}

// waitingHere returns the call under the cursor if it waits, otherwise the oldest waiting call.
func (v *Conversation) waitingHere() *sessions.Approval {
	r, ok := v.Row()
	if e := v.Entry(v.At.Entry); ok && e != nil && e.Waits && r.Engine != nil {
		for _, w := range sessions.ApprovalsOf(v.state(r)) {
			if w.Call.ID == e.CallID {
				return &w
			}
		}
	}
	return v.waiting()
}

func (v *Conversation) SetShown(shown bool)      { v.look(shown) }
func (v *Conversation) SetStyles(s theme.Styles) { v.Styles, v.painted = s, nil }

func (v *Conversation) SetSize(width, height int) {
	if width != v.Width {
		v.painted = nil
	}
	v.Width, v.Height = width, height
}

func (v *Conversation) Refresh() { v.refresh() }

func (v *Conversation) Copy() (what, content string) {
	v.sync()
	e := v.Entry(v.At.Entry)
	if e == nil {
		return "", ""
	}
	if e.Kind == transcripts.KindCall {
		return "call", e.Name + " " + e.Text + "\n" + e.Result
	}
	return "text", e.Text
}

// sync takes the newest conversation and keeps the cursor valid.
func (v *Conversation) sync() {
	c := v.Loaded()
	if v.path != v.wanted {
		v.path, v.Away, v.At, v.top, v.painted = v.wanted, false, Place{}, Place{}, nil
		clear(v.unfolded)
	}
	if v.Current = c; c == nil || len(c.Entries) == 0 {
		return
	}
	last := c.First + len(c.Entries) - 1
	if v.At.Entry > last {
		v.Away = false // the file was replaced
	}
	if !v.Away {
		v.At = Place{last, len(v.Lines(last)) - 1}
		return
	}
	if v.At.Entry < c.First {
		v.At = Place{c.First, 0}
	}
	v.At.line = widget.Clamp(v.At.line, 0, len(v.Lines(v.At.Entry))-1)
}

func (v *Conversation) Entry(n int) *transcripts.Entry {
	if v.Current == nil || n < v.Current.First || n >= v.Current.First+len(v.Current.Entries) {
		return nil
	}
	return v.Current.Entries[n-v.Current.First]
}

// Lines returns the drawn lines of an entry.
func (v *Conversation) Lines(n int) []string {
	key := paintedKey{v.Entry(n), v.unfolded[n] != v.all}
	if lines, ok := v.painted[key]; ok {
		return lines
	}
	p := entryPainter{s: v.Styles, width: max(v.Width-2, 1), loc: v.location, folds: true}
	lines := p.lines(key.e, key.open)
	if len(lines) == 0 {
		lines = []string{text.Spaces(p.width)}
	}
	if v.painted == nil || len(v.painted) >= maxPainted {
		v.painted = map[paintedKey][]string{}
	}
	v.painted[key] = lines
	return lines
}

func (v *Conversation) Page() int { return max(v.Height-v.headRows(), 1) }

func (v *Conversation) headRows() int {
	n := len(v.banner())
	if v.Current != nil && v.Current.Err != "" {
		n++
	}
	return n
}

func (v *Conversation) Scroll(by int) {
	v.sync()
	if v.Current == nil || len(v.Current.Entries) == 0 {
		return
	}
	last := v.Current.First + len(v.Current.Entries) - 1
	switch {
	case by >= widget.AllLines:
		v.At = Place{last, len(v.Lines(last)) - 1}
	case by <= -widget.AllLines:
		v.At = Place{v.Current.First, 0}
	default:
		v.At = v.moved(v.At, by)
	}
	v.Away = v.At != Place{last, len(v.Lines(last)) - 1}
}

// moved returns the place that is a number of lines further, or the nearest end.
func (v *Conversation) moved(p Place, by int) Place {
	last := v.Current.First + len(v.Current.Entries) - 1
	for p.line += by; p.line < 0 && p.Entry > v.Current.First; {
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

func (v *Conversation) goTo(p Place) {
	v.At = p
	v.Away = true
}

func (v *Conversation) jump(by int) {
	v.sync()
	if n := v.At.Entry + by; v.Entry(n) != nil {
		v.goTo(Place{n, 0})
	} else if by < 0 && v.Current != nil {
		v.goTo(Place{v.At.Entry, 0})
	}
}

func (v *Conversation) fold() {
	v.sync()
	if v.Entry(v.At.Entry) == nil {
		return
	}
	v.unfolded[v.At.Entry] = !v.unfolded[v.At.Entry]
	v.goTo(Place{v.At.Entry, 0})
}

func (v *Conversation) ask(s tui.Shell) {
	console.AskPattern(s, v.search, func(typed string) tea.Cmd {
		v.search = nil
		if typed == "" {
			return nil
		}
		re, err := regexp.Compile(typed)
		if err != nil {
			return console.Failed("search", err)
		}
		v.search = re
		v.sync()
		if !v.Away { // at the end: find the newest match
			v.find(s, -1)
		} else {
			v.find(s, 1)
		}
		return nil
	})
}

func (v *Conversation) matches(e *transcripts.Entry) bool {
	return v.search.MatchString(e.Text) || v.search.MatchString(e.Result) || v.search.MatchString(e.Name)
}

// find goes to the matching line of the next matching entry, and unfolds the entry if that line is hidden.
func (v *Conversation) find(s tui.Shell, by int) {
	v.sync()
	if v.search == nil {
		s.Note("no search; press / to start one")
		return
	}
	n := v.At.Entry + by
	if !v.Away && by < 0 {
		n = v.At.Entry // include the last entry
	}
	for ; v.Entry(n) != nil; n += by {
		if v.matches(v.Entry(n)) {
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
				v.goTo(Place{n, i})
				return
			}
		}
		if v.unfolded[n] == v.all {
			v.unfolded[n] = !v.all
		}
	}
	v.goTo(Place{n, 0}) // the match spans two lines
}

func (v *Conversation) toError(s tui.Shell, by int) {
	v.sync()
	for n := v.At.Entry + by; v.Entry(n) != nil; n += by {
		if v.Entry(n).Failed() {
			v.goTo(Place{n, 0})
			return
		}
	}
	s.Note("no further error")
}

func (v *Conversation) Draw(_ time.Time, focused bool) []string {
	v.sync()
	s := v.Styles
	if v.Current == nil {
		summary := "reading the conversation" + s.Glyphs.Ellipsis
		if t := v.live(); t != nil && t.Err != "" {
			summary = text.Safe(t.Err, " ")
		}
		return v.Message(nil, summary)
	}
	head := v.banner()
	if v.Current.Err != "" {
		head = append(head, v.Problem(s.Error, v.Current.Err))
	}
	if len(v.Current.Entries) == 0 {
		return v.Message(head, "no messages yet")
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
	return widget.Fill(lines, v.Width, v.Height)
}

// line draws a line with a pointer at the cursor, or a bar beside the other lines of its entry.
func (v *Conversation) line(p Place, focused bool) string {
	s := v.Styles
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
	return text.Fit(s.Focus.Paint(gutter)+l, v.Width, "")
}

// banner shows the oldest waiting call, or the state of a session on the engine.
func (v *Conversation) banner() []string {
	r, ok := v.Row()
	if !ok || r.Engine == nil || v.wanted != v.Cursor {
		return nil
	}
	s := v.Styles
	l := v.Line()
	st := v.state(r)
	if st == nil {
		return nil
	}
	if n := len(st.Pending); n > 0 {
		call := st.Pending[0]
		l.Add(s.Alert, " "+s.Glyphs.Failed+" "+waiting(n, "call")+" for approval: "+text.Safe(call.Name, " ")+
			" ").
			Add(s.Text, " ").Add(s.Key, "w").Add(s.Text, " "+text.Payload(call.Args))
		return []string{l.String(s.Text)}
	}
	m := engineMark(st.Status, st.Exit, s)
	l.Add(m.Ink, " "+m.Glyph+" "+m.Word)
	if st.Current != nil {
		l.Add(s.Muted, "  turn "+ace.Number(st.Current.Turn))
	}
	if n := len(st.Queue); n > 0 {
		l.Add(s.Warning, "  "+waiting(n, "message"))
	}
	if t := v.live(); t != nil && t.Err != "" {
		l.Add(s.Error, "  "+s.Glyphs.Failed+" "+text.Safe(t.Err, " "))
	}
	return []string{l.String(s.Text)}
}

// waiting counts things that wait: "1 call waits".
func waiting(n int, what string) string {
	return widget.If(n == 1, "1 "+what+" waits", ace.Count(n, what)+" wait")
}

// settle scrolls so that the cursor is visible and the last page is full.
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
	last := v.Current.First + len(v.Current.Entries) - 1
	if full := v.moved(Place{last, len(v.Lines(last)) - 1}, 1-v.Page()); before(full, v.top) {
		v.top = full
	}
}

func before(a, b Place) bool {
	return a.Entry < b.Entry || a.Entry == b.Entry && a.line < b.line
}
