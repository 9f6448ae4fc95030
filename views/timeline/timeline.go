// Package timeline shows the events of a run as bars over time or as a list, with an inspector.
package timeline

import (
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Feed reads the events of the selected run.
type Feed interface {
	console.Feed[*histories.EventLog]
	Filter(histories.EventFilter)
	// Open decodes one event completely. It is called for each event that the cursor passes.
	Open(id int64)
}

// Screen returns the events of the selected run with an inspector beside them.
func Screen(c *console.Console, feed Feed) tui.Screen {
	v := &Timeline{scope: &scope{Pane: console.NewPane("Timeline")}, nav: c.Navigation, forks: c.Forks,
		location: c.Location, feed: feed}
	v.bars = newBarPane(v.scope)
	v.list = &listPane{scope: v.scope, table: widget.NewTable(eventHeadings()...)}
	return tui.Screen{Name: "timeline", Short: "time", Keys: []string{"3"}, Detail: true, Share: 64,
		Help: "the events of the selected run on a time axis", Argument: c.RunArgument("timeline"),
		Views: []tui.View{v, &eventInspector{t: v, Reader: console.NewReader("Event", c.Location)}}}
}

// scope is what the bars and the list share.
type scope struct {
	console.Pane
	filter     histories.EventFilter
	everything bool // show rows that do not match the filter too, unmarked
}

// matches returns the filter of spans. Without a filter nothing matches.
func (s *scope) matches() func(*histories.Span) bool {
	m, err := s.filter.Compile()
	if err != nil || s.filter.Empty() {
		return func(*histories.Span) bool { return false }
	}
	return m.Span
}

// pane shows the events as bars or as a list.
type pane interface {
	draw(l *histories.EventLog, now time.Time, focused bool, status string) []string
	scroll(l *histories.EventLog, by int)
	page() int
	at(l *histories.EventLog) int64 // the selected event, or 0
	goTo(l *histories.EventLog, id int64)
}

// Timeline shows the events of the selected run, as bars on a time axis or as a list.
type Timeline struct {
	*scope
	nav      *console.Navigation
	forks    *console.Forks
	location *time.Location
	feed     Feed
	Log      *histories.EventLog // newest, of any run
	bars     *barPane
	list     *listPane
	onList   bool
	Want     int64  // event to go to as soon as it is read, or 0
	asked    int64  // event that was opened last
	seen     string // run that was shown last
}

// shown returns the pane that is shown.
func (v *Timeline) shown() pane {
	return widget.If[pane](v.onList, v.list, v.bars)
}

// Span returns the selected span, or nil.
func (v *Timeline) Span() *histories.Span { return v.bars.span(v.current()) }

// Shown returns the visible time.
func (v *Timeline) Shown() histories.Window { return v.bars.shown() }

func (v *Timeline) Title() string {
	if !v.nav.Selected.Ok {
		return "Timeline"
	}
	what := widget.If(v.onList, "Events ", "Timeline ")
	return what + text.Safe(v.nav.Selected.Run.WorkflowID, " ")
}

func (v *Timeline) Footer() string {
	l := v.current()
	if l == nil {
		return ""
	}
	f, unread := v.filter, ""
	if l.Unread > 0 {
		unread = ace.Number(l.Unread) + widget.If(l.Reading, " being read", " not read")
	}
	return v.Join(widget.If(f.Include != "", "/"+text.Safe(f.Include, " "), ""),
		widget.If(f.Exclude != "", "not /"+text.Safe(f.Exclude, " "), ""),
		widget.If(f.Full, "full text "+text.Duration(l.FilterDuration), ""),
		widget.If(l.Matches != nil, ace.Number(l.Shown())+" of ", "")+ace.Count(l.Total(), "event"),
		widget.If(l.ClockBack > 0, "clock went back "+ace.Count(l.ClockBack, "time"), ""), unread)
}

func (v *Timeline) Bindings() []tui.Binding {
	do := func(fn func()) func(tui.Shell) {
		return func(tui.Shell) { fn(); v.look() }
	}
	jump := func(by int, find finder, none string) func(tui.Shell) {
		return func(s tui.Shell) { v.jumpBy(s, by, find, none) }
	}
	b := func(name, help, short string, do func(tui.Shell), keys ...string) tui.Binding {
		return console.Key("timeline."+name, help, short, do, keys...)
	}
	all := append(widget.Motions("timeline", v),
		b("mode", "switch between bars and a list of events", "bars/list", do(v.toggle), "m"),
		b("more", "zoom in around the selected span", "zoom", do(func() { v.bars.zoom(v.current(), 0.5) }),
			"+"),
		b("less", "zoom out", "", do(func() { v.bars.zoom(v.current(), 2) }), "-"),
		b("fit", "show the whole run", "", do(func() { v.bars.zoomed = false }), ","),
		b("window", "zoom to the selected span", "", do(func() { v.bars.zoomHere(v.current()) }), "."),
		b("earlier", "pan to earlier", "", do(func() { v.bars.pan(-0.25) }), "h", "left"),
		b("later", "pan to later", "", do(func() { v.bars.pan(0.25) }), "l", "right"),
		b("fold", "fold or unfold the span", "fold", do(v.fold), "c"),
		b("search", "show only matches of a regular expression, or of !expression all others", "filter",
			v.askInclude, "/"),
		b("exclude", "hide matches of a regular expression", "", v.askExclude, `\`),
		b("full", "match payloads too, or not", "", do(v.toggleFull), "P"),
		b("all", "show everything, with matches marked, or only matches", "",
			do(func() { v.everything = !v.everything }), "a"),
		b("next_match", "next match", widget.If(v.filter.Include != "", "next match", ""),
			v.stepOr(v.matches, 1, nextMatch, "no later match"), "ctrl+n"),
		b("previous_match", "previous match", "", v.stepOr(v.matches, -1, nextMatch, "no earlier match"),
			"ctrl+p"),
		b("next_error", "next error", "error", v.stepOr(failed, 1, nextError, "no later error"), "e"),
		b("previous_error", "previous error", "", v.stepOr(failed, -1, nextError, "no earlier error"), "E"),
		b("effect", "next related event: started, completed", "",
			jump(1, related, "no later related event"), ")"),
		b("origin", "previous related event: started, scheduled", "",
			jump(-1, related, "no earlier related event"), "("),
		b("related", "open the run of the event: child, parent, previous or next run", "", v.openRun, "O"),
		console.Key("timeline.back", "back to the previous run", "", v.nav.Back, "backspace"),
	)
	return append(all, v.forks.ForkAt("timeline", v.forkPoint)...)
}

// forkPoint returns the selected event.
func (v *Timeline) forkPoint() string {
	if id := v.at(); id != 0 {
		return "at=" + strconv.FormatInt(id, 10)
	}
	return ""
}

// SetShown reads events while the timeline is shown, and goes to the event that another screen chose.
func (v *Timeline) SetShown(shown bool) {
	v.nav.Following = v.nav.Following && !shown
	v.feed.Look(shown)
	if shown && v.nav.Event > 0 {
		v.Want, v.nav.Event, v.onList = v.nav.Event, 0, true
	}
}

func (v *Timeline) SetSize(width, height int) {
	v.Width, v.Height = width, height
	v.list.table.SetSize(width, max(height-1, 0))
}

func (v *Timeline) Refresh() { v.Log = v.feed.Value() }

// current returns the events of the selected run, or nil until they are read. Another run starts at
// its last event, not zoomed.
func (v *Timeline) current() *histories.EventLog {
	l := v.Log
	if l == nil || !v.nav.Selected.Is(l.WorkflowID, l.RunID) {
		return nil
	}
	if run := l.WorkflowID + " " + l.RunID; v.seen != run {
		v.seen, v.asked = run, 0
		v.bars = newBarPane(v.scope)
		v.list = &listPane{scope: v.scope, table: v.list.table, end: true}
	}
	return l
}

func (v *Timeline) Draw(now time.Time, focused bool) []string {
	l := v.current()
	if l == nil || l.Len() == 0 {
		return v.Message(nil, v.nothing(l)...)
	}
	v.arrive(l)
	return v.shown().draw(l, l.Clock(now), focused, v.status(l, l.Clock(now)))
}

// arrive goes to the event v.Want as soon as it is read.
func (v *Timeline) arrive(l *histories.EventLog) {
	if v.Want == 0 {
		return
	}
	if l.Event(v.Want) != nil {
		v.goTo(l, v.Want)
		v.Want = 0
	} else if !l.Reading && v.Want < l.Row(0).ID {
		v.Want = 0
	}
}

func (v *Timeline) nothing(l *histories.EventLog) []string {
	switch {
	case !v.nav.Selected.Ok:
		return []string{"no run is selected", "press 1 to choose one"}
	case l != nil && l.Err != "":
		return []string{"the events of " + console.NameOf(v.nav.Selected.Run) + " cannot be read:",
			text.Safe(l.Err, " ")}
	case l != nil && !l.Reading:
		return []string{console.NameOf(v.nav.Selected.Run) + " has no events"}
	}
	return []string{"reading the events of " + console.NameOf(v.nav.Selected.Run) + v.Styles.Glyphs.Ellipsis}
}

func (v *Timeline) Scroll(by int) {
	l := v.current()
	if l == nil {
		return
	}
	v.shown().scroll(l, by)
	v.look()
}

func (v *Timeline) Page() int { return v.shown().page() }

// at returns the selected event, or 0.
func (v *Timeline) at() int64 {
	l := v.current()
	if l == nil || l.Len() == 0 {
		return 0
	}
	return v.shown().at(l)
}

// look opens the selected event.
func (v *Timeline) look() {
	if id := v.at(); id != v.asked && id != 0 {
		v.asked = id
		v.feed.Open(id)
	}
}

func (v *Timeline) fold() {
	if !v.onList {
		v.bars.fold(v.current())
	}
}

func (v *Timeline) toggle() {
	id := v.at()
	v.onList = !v.onList
	if l := v.current(); l != nil && id != 0 {
		v.goTo(l, id)
	}
}

// goTo selects an event, or the span that contains it. If it does not match the filter, all events are
// shown.
func (v *Timeline) goTo(l *histories.EventLog, id int64) {
	v.everything = v.everything || !l.Matched(id)
	v.shown().goTo(l, id)
	v.look()
}

func failed() func(*histories.Span) bool {
	return func(s *histories.Span) bool { return s.State.Bad() }
}

// finder returns the next event after id, or with by -1 the previous one; 0 if there is no such event.
type finder func(l *histories.EventLog, id int64, by int) int64

var (
	nextMatch finder = (*histories.EventLog).NextMatch
	nextError finder = (*histories.EventLog).NextError
	related   finder = (*histories.EventLog).Related
)

// stepOr returns a handler that goes to the next span that satisfies the result of which. In the list,
// it goes to the event that find returns.
func (v *Timeline) stepOr(which func() func(*histories.Span) bool, by int, find finder,
	none string) func(tui.Shell) {
	return func(s tui.Shell) {
		l := v.current()
		switch {
		case l == nil:
		case v.onList:
			v.jumpBy(s, by, find, none)
		case v.bars.step(l, by, which()):
			v.look()
		default:
			s.Note(none)
		}
	}
}

func (v *Timeline) jumpBy(s tui.Shell, by int, find finder, none string) {
	l := v.current()
	if l == nil {
		return
	}
	id := find(l, v.at(), by)
	if id == 0 {
		s.Note(none)
		return
	}
	v.goTo(l, id)
}

// openRun goes to the run that the selected event leads to.
func (v *Timeline) openRun(s tui.Shell) {
	l, id := v.current(), v.at()
	switch {
	case l == nil || id == 0:
	case l.Opened == nil || l.Opened.ID != id:
		v.feed.Open(id)
		s.Note("reading the event; press O again")
	case l.Opened.Target.WorkflowID == "":
		s.Note("this event leads to no other run")
	default:
		to := l.Opened.Target
		v.nav.GoFrom(to)
		s.Note("now " + console.NameOf(to) + "; backspace leads back")
	}
}

func (v *Timeline) askInclude(s tui.Shell) {
	s.Ask(tui.Prompt{Label: "/", Value: v.filter.Include, Check: checkPattern,
		Hint: "a regular expression; !expression hides its matches",
		Done: func(typed string) tea.Cmd {
			f := v.filter
			if rest, not := strings.CutPrefix(typed, "!"); not {
				f.Exclude = rest
			} else {
				f.Include = typed
			}
			v.setFilter(f)
			return nil
		}})
}

func (v *Timeline) askExclude(s tui.Shell) {
	s.Ask(tui.Prompt{Label: `\`, Value: v.filter.Exclude, Check: checkPattern,
		Hint: "a regular expression to hide",
		Done: func(typed string) tea.Cmd {
			f := v.filter
			f.Exclude = typed
			v.setFilter(f)
			return nil
		}})
}

func checkPattern(typed string) error {
	_, err := histories.EventFilter{Include: strings.TrimPrefix(typed, "!")}.Compile()
	return err
}

func (v *Timeline) setFilter(f histories.EventFilter) {
	v.filter = f
	v.feed.Filter(f)
}

func (v *Timeline) toggleFull() {
	v.filter.Full = !v.filter.Full
	v.feed.Filter(v.filter)
}

func (v *Timeline) Copy() (string, string) {
	id := v.at()
	if id == 0 {
		return "", ""
	}
	what := "event " + ace.Number(id)
	if l := v.current(); l.Opened != nil && l.Opened.ID == id && l.Opened.Text != "" {
		return what, l.Opened.Text
	}
	return "ID of " + what, ace.Number(id)
}

func (v *Timeline) Commands() []tui.Command {
	return []tui.Command{{Name: "event", Args: "NUMBER", Number: true, Help: "go to an event on the timeline",
		Check: func(args string) error { _, err := console.NumberOf(args); return err },
		Do: func(s tui.Shell, args string) tea.Cmd {
			v.nav.Event, _ = console.NumberOf(args)
			s.Open("timeline")
			v.SetShown(true)
			return nil
		}}}
}

func (v *Timeline) Copies() []tui.Copy {
	list := []tui.Copy{{Key: "i", What: "workflow ID", Text: v.nav.Selected.Run.WorkflowID}}
	id := v.at()
	if id == 0 {
		return list
	}
	list = append(list, tui.Copy{Key: "n", What: "event number", Text: strconv.FormatInt(id, 10)})
	if l := v.current(); l.Opened != nil && l.Opened.ID == id {
		list = append(list, tui.Copy{Key: "j", What: "JSON", Text: l.Opened.Text})
	}
	return append(list, v.nav.CommandCopy("timeline", ace.TaskIDOf(v.nav.Selected.Run.WorkflowID),
		"--events"))
}

func (v *Timeline) Keep() map[string]string {
	return map[string]string{"include": v.filter.Include, "exclude": v.filter.Exclude,
		"list": map[bool]string{true: "yes"}[v.onList]}
}

func (v *Timeline) Restore(kept map[string]string) {
	f := histories.EventFilter{Include: kept["include"], Exclude: kept["exclude"]}
	if _, err := f.Compile(); err == nil && !f.Empty() {
		v.filter = f
		v.feed.Filter(f)
	}
	v.onList = kept["list"] == "yes"
}
