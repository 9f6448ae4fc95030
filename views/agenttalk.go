package views

import (
	"regexp"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// agentTalk is a conversation, whole. It stays at the end until somebody moves up. Only
// what is in sight is drawn, so that its length does not matter.
type agentTalk struct {
	*agents
	styles        theme.Styles
	width, height int
	search        *regexp.Regexp
	unfolded      map[int]bool // by number of the entry
	all           bool         // unfolded, so that unfolded says which are folded

	path    string // whose conversation the places are of
	c       *sources.Conversation
	away    bool // not at the end
	at, top talkPlace
	painted map[talkKey][]string
}

// talkPlace is a line of an entry. Entries are numbered from the first that was read.
type talkPlace struct{ entry, line int }

type talkKey struct {
	e    *sources.TranscriptEntry
	open bool
}

// maxPainted bounds the entries that are kept drawn.
const maxPainted = 512

func newAgentTalk(a *agents) *agentTalk {
	return &agentTalk{agents: a, unfolded: map[int]bool{}}
}

func (v *agentTalk) Name() string { return "Conversation" }

func (v *agentTalk) Title() string {
	r, ok := v.row()
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

func (v *agentTalk) Footer() string {
	v.take()
	if v.c == nil {
		return ""
	}
	dot := " " + v.styles.Glyphs.Dot + " "
	n := len(v.c.Entries)
	parts := []string{"following"}
	if v.away {
		parts[0] = text.Count(int64(max(v.c.First+n-1-v.at.entry, 0))) + " below, G follows"
	}
	if t := v.live(); t != nil && v.reads == v.cursor {
		parts = append(parts, string(t.From))
	}
	parts = append(parts, text.Count(int64(min(v.at.entry+1, v.c.First+n)))+"/"+text.Count(int64(v.c.First+n)))
	if v.c.First > 0 {
		parts = append(parts, text.Count(int64(v.c.First))+" earlier left out")
	}
	if v.c.Skipped > 0 {
		parts = append(parts, megabytes(float64(v.c.Skipped))+" at the start not read")
	}
	if v.search != nil {
		parts = append(parts, "/"+text.Safe(v.search.String(), " "))
	}
	return strings.Join(parts, dot)
}

func (v *agentTalk) Bindings() []tui.Binding {
	b := func(name, help, short string, do func(tui.Shell), keys ...string) tui.Binding {
		return tui.Binding{Action: "conversation." + name, Keys: keys, Help: help, Short: short, Do: func(s tui.Shell) tea.Cmd { do(s); return nil }}
	}
	list := append(motions("conversation", v),
		b("fold", "unfold this entry, or fold it", "unfold", func(tui.Shell) { v.fold() }, "o"),
		tui.Binding{Action: "conversation.enter", Keys: []string{"enter"}, Help: "write a message to the session; where it does not listen, unfold this entry", Do: v.enter},
		b("fold_all", "unfold all entries, or fold them", "all", func(tui.Shell) { v.all = !v.all; clear(v.unfolded); v.at.line = 0 }, "O"),
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

func (v *agentTalk) partShort() string {
	if r, ok := v.row(); ok && r.Engine != nil && r.Agents == 0 {
		return ""
	}
	return "subagent"
}

// enter writes to a session that listens; a transcript's entry is unfolded.
func (v *agentTalk) enter(s tui.Shell) tea.Cmd {
	if r, ok := v.row(); ok && r.Engine != nil && r.Engine.Open() && v.Actions != nil {
		return v.message(s)
	}
	v.fold()
	return nil
}

// waitingHere is the call under the cursor where it waits, else the one that waits longest.
func (v *agentTalk) waitingHere() *sources.Approval {
	r, ok := v.row()
	if e := v.entry(v.at.entry); ok && e != nil && e.Waits && r.Engine != nil {
		for _, w := range sources.ApprovalsOf(r.Key, v.state(r)) {
			if w.Call.ID == e.CallID {
				return &w
			}
		}
	}
	return v.waiting()
}

func (v *agentTalk) Update(tea.Msg) tea.Cmd { return nil }

// SetShown goes on reading while the conversation is looked at.
func (v *agentTalk) SetShown(shown bool) {
	v.Controls.Look(sources.PartTranscripts, shown)
	v.Controls.Look(sources.PartSessions, shown)
}

func (v *agentTalk) SetStyles(s theme.Styles) { v.styles, v.painted = s, nil }

func (v *agentTalk) SetSize(width, height int) {
	if width != v.width {
		v.painted = nil
	}
	v.width, v.height = width, height
}

func (v *agentTalk) SetSnapshot(s *sources.Snapshot) { v.set(s) }

// Copy gives the entry under the cursor: what was said, or a call with its result.
func (v *agentTalk) Copy() (what, content string) {
	v.take()
	e := v.entry(v.at.entry)
	if e == nil {
		return "", ""
	}
	if e.Kind == sources.EntryTool {
		return "call", e.Name + " " + e.Text + "\n" + e.Result
	}
	return "text", e.Text
}

// take goes over to the conversation that is here now.
func (v *agentTalk) take() {
	c := v.talk()
	if v.path != v.reads {
		v.path, v.away, v.at, v.top, v.painted = v.reads, false, talkPlace{}, talkPlace{}, nil
		clear(v.unfolded)
	}
	if v.c = c; c == nil || len(c.Entries) == 0 {
		return
	}
	last := c.First + len(c.Entries) - 1
	if v.at.entry > last {
		v.away = false // the file is another one
	}
	if !v.away {
		v.at = talkPlace{last, len(v.lines(last)) - 1}
		return
	}
	if v.at.entry < c.First {
		v.at = talkPlace{c.First, 0}
	}
	v.at.line = clamp(v.at.line, 0, len(v.lines(v.at.entry))-1)
}

func (v *agentTalk) entry(n int) *sources.TranscriptEntry {
	if v.c == nil || n < v.c.First || n >= v.c.First+len(v.c.Entries) {
		return nil
	}
	return v.c.Entries[n-v.c.First]
}

// lines are those of an entry, drawn once.
func (v *agentTalk) lines(n int) []string {
	key := talkKey{v.entry(n), v.unfolded[n] != v.all}
	if lines, ok := v.painted[key]; ok {
		return lines
	}
	p := talkPainter{s: v.styles, width: max(v.width-2, 1), loc: v.Location}
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

func (v *agentTalk) page() int { return max(v.height-v.headRows(), 1) }

func (v *agentTalk) headRows() int {
	n := len(v.banner())
	if v.c != nil && v.c.Err != "" {
		n++
	}
	return n
}

func (v *agentTalk) scroll(by int) {
	v.take()
	if v.c == nil || len(v.c.Entries) == 0 {
		return
	}
	last := v.c.First + len(v.c.Entries) - 1
	switch {
	case by >= allLines:
		v.at = talkPlace{last, len(v.lines(last)) - 1}
	case by <= -allLines:
		v.at = talkPlace{v.c.First, 0}
	default:
		v.at = v.moved(v.at, by)
	}
	v.away = v.at != talkPlace{last, len(v.lines(last)) - 1}
}

// moved is a place so many lines further, at most at an end.
func (v *agentTalk) moved(p talkPlace, by int) talkPlace {
	last := v.c.First + len(v.c.Entries) - 1
	for p.line += by; p.line < 0 && p.entry > v.c.First; {
		p.entry--
		p.line += len(v.lines(p.entry))
	}
	for p.line >= len(v.lines(p.entry)) && p.entry < last {
		p.line -= len(v.lines(p.entry))
		p.entry++
	}
	p.line = clamp(p.line, 0, len(v.lines(p.entry))-1)
	return p
}

func (v *agentTalk) goTo(p talkPlace) {
	v.at = p
	v.away = true
}

func (v *agentTalk) jump(by int) {
	v.take()
	if n := v.at.entry + by; v.entry(n) != nil {
		v.goTo(talkPlace{n, 0})
	} else if by < 0 && v.c != nil {
		v.goTo(talkPlace{v.at.entry, 0})
	}
}

func (v *agentTalk) fold() {
	v.take()
	if v.entry(v.at.entry) == nil {
		return
	}
	v.unfolded[v.at.entry] = !v.unfolded[v.at.entry]
	v.goTo(talkPlace{v.at.entry, 0})
}

func (v *agentTalk) ask(s tui.Shell) {
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
			if !v.away { // from the end, the newest match is wanted
				v.find(s, -1)
			} else {
				v.find(s, 1)
			}
			return nil
		}})
}

func (v *agentTalk) hit(e *sources.TranscriptEntry) bool {
	return v.search.MatchString(e.Text) || v.search.MatchString(e.Result) || v.search.MatchString(e.Name)
}

// find goes to the next entry that matches, and to the line in it that does; where that is
// folded away it unfolds it.
func (v *agentTalk) find(s tui.Shell, by int) {
	v.take()
	if v.search == nil {
		s.Note("search with / first")
		return
	}
	n := v.at.entry + by
	if !v.away && by < 0 {
		n = v.at.entry // the end itself
	}
	for ; v.entry(n) != nil; n += by {
		if v.hit(v.entry(n)) {
			v.reveal(n)
			return
		}
	}
	s.Note("no further entry matches")
}

func (v *agentTalk) reveal(n int) {
	for range 2 {
		for i, l := range v.lines(n) {
			if v.search.MatchString(ansi.Strip(l)) {
				v.goTo(talkPlace{n, i})
				return
			}
		}
		if v.unfolded[n] == v.all {
			v.unfolded[n] = !v.all
		}
	}
	v.goTo(talkPlace{n, 0}) // it is broken over two lines
}

func (v *agentTalk) toError(s tui.Shell, by int) {
	v.take()
	for n := v.at.entry + by; v.entry(n) != nil; n += by {
		if v.entry(n).Failed() {
			v.goTo(talkPlace{n, 0})
			return
		}
	}
	s.Note("no further error")
}

func (v *agentTalk) Draw(_ time.Time, focused bool) []string {
	v.take()
	s := v.styles
	if v.c == nil {
		said := "reading the conversation" + s.Glyphs.Ellipsis
		if t := v.live(); t != nil && t.Err != "" {
			said = text.Safe(t.Err, " ")
		}
		return centre([]string{said}, v.width, v.height, s)
	}
	head := v.banner()
	if v.c.Err != "" {
		head = append(head, s.Error.Paint(text.Fit(" "+s.Glyphs.Failed+" "+text.Safe(v.c.Err, " "), v.width, s.Glyphs.Ellipsis)))
	}
	if len(v.c.Entries) == 0 {
		return fill(append(head, centre([]string{"nothing was said here yet"}, v.width, max(v.height-len(head), 0), s)...), v.width, v.height)
	}
	v.settle()
	lines := head
	for p, n := v.top, v.page(); n > 0; n-- {
		lines = append(lines, v.line(p, focused))
		next := v.moved(p, 1)
		if next == p {
			break
		}
		p = next
	}
	return fill(lines, v.width, v.height)
}

// line is one with the pointer before it: strong at the cursor, and a bar beside the rest of
// its entry.
func (v *agentTalk) line(p talkPlace, focused bool) string {
	s := v.styles
	gutter := "  "
	switch {
	case p == v.at && focused:
		gutter = s.Glyphs.Pointer + " "
	case p.entry == v.at.entry:
		gutter = s.Glyphs.Plain.Side + " "
	}
	l := v.lines(p.entry)[p.line]
	if v.search != nil && v.search.MatchString(ansi.Strip(l)) {
		l = s.Cursor.Paint(ansi.Strip(l))
	}
	return text.Fit(s.Focus.Paint(gutter)+l, v.width, "")
}

// banner is how a session on the engine stands: what waits for a person, above all.
func (v *agentTalk) banner() []string {
	r, ok := v.row()
	if !ok || r.Engine == nil || v.reads != v.cursor {
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
			Add(s.Text, " ").Add(s.Key, "w").Add(s.Text, " "+text.Safe(payload(st.Pending[0].Args), " "))
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
func (v *agentTalk) settle() {
	if v.entry(v.top.entry) == nil || v.top.line >= len(v.lines(v.top.entry)) {
		v.top = v.at
	}
	if before(v.at, v.top) {
		v.top = v.at
	}
	if lowest := v.moved(v.at, 1-v.page()); before(v.top, lowest) {
		v.top = lowest
	}
	last := v.c.First + len(v.c.Entries) - 1
	if full := v.moved(talkPlace{last, len(v.lines(last)) - 1}, 1-v.page()); before(full, v.top) {
		v.top = full
	}
}

func before(a, b talkPlace) bool {
	return a.entry < b.entry || a.entry == b.entry && a.line < b.line
}
