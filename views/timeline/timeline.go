// Package timeline shows the events of a run as bars over time or as a list, with an inspector.
package timeline

import (
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Feed reads the events of the selected run.
type Feed interface {
	console.Feed[*histories.EventLog]
	Filter(histories.EventFilter)
	// Open decodes one event completely; it is called for each event that the cursor passes.
	Open(id int64)
}

func TimelineScreen(c *console.Console, feed Feed) tui.Screen {
	v := &Timeline{Console: c, feed: feed}
	v.bars.folded = map[foldKey]bool{}
	v.list.table = widget.NewTable(eventHeadings()...)
	return tui.Screen{Name: "timeline", Short: "time", Keys: []string{"3"}, Help: "the events of the selected run on a time axis", Share: 64,
		Views: []tui.View{v, &eventInspector{t: v}}}
}

// Timeline is the events of the selected run: as bars on a time axis, or one by one.
type Timeline struct {
	*console.Console
	feed          Feed
	styles        theme.Styles
	width, height int
	Log           *histories.EventLog // newest, of whatever run
	bars          barPane
	list          listPane
	onList        bool
	everything    bool // rows that the filter keeps out are shown too, without its mark
	filter        histories.EventFilter
	Want          int64 // event to go to when it is read, 0 for none
	asked         int64 // event that was asked for whole
	seen          string
}

func (v *Timeline) Name() string { return "Timeline" }

func (v *Timeline) Title() string {
	if !v.Selected.Ok {
		return "Timeline"
	}
	what := "Timeline "
	if v.onList {
		what = "Events "
	}
	return what + text.Safe(v.Selected.Run.WorkflowID, " ")
}

// Footer is the filter and how many events it lets through, and what is not read.
func (v *Timeline) Footer() string {
	l := v.current()
	if l == nil {
		return ""
	}
	var parts []string
	if v.filter.Include != "" {
		parts = append(parts, "/"+text.Safe(v.filter.Include, " "))
	}
	if v.filter.Exclude != "" {
		parts = append(parts, "not /"+text.Safe(v.filter.Exclude, " "))
	}
	if v.filter.Full {
		parts = append(parts, "full text "+text.Took(l.Took))
	}
	n := text.Count(l.Total()) + " events"
	if l.Matches != nil {
		n = text.Count(int64(l.Shown())) + " of " + n
	}
	parts = append(parts, n)
	if l.ClockBack > 0 {
		parts = append(parts, "the clock went back "+text.Count(int64(l.ClockBack))+" times")
	}
	switch {
	case l.Cut:
		parts = append(parts, text.Count(l.Left)+" older left out")
	case l.Left > 0 && l.Reading:
		parts = append(parts, text.Count(l.Left)+" being read")
	case l.Left > 0:
		parts = append(parts, text.Count(l.Left)+" not read")
	}
	return strings.Join(parts, " "+v.styles.Glyphs.Dot+" ")
}

func (v *Timeline) Bindings() []tui.Binding {
	do := func(fn func()) func(tui.Shell) tea.Cmd {
		return func(tui.Shell) tea.Cmd { fn(); v.look(); return nil }
	}
	jump := func(by int, find func(*histories.EventLog, int64, int) int64, none string) func(tui.Shell) tea.Cmd {
		return func(s tui.Shell) tea.Cmd { v.jumpBy(s, by, find, none); return nil }
	}
	b := append(widget.Motions("timeline", v),
		tui.Binding{Action: "timeline.mode", Keys: []string{"t"}, Help: "bars on a time axis, or a list of events", Short: "bars/list", Do: do(v.toggle)},
		tui.Binding{Action: "timeline.in", Keys: []string{"+", "="}, Help: "zoom in around the selected span", Short: "zoom", Do: do(func() { v.zoom(0.5) })},
		tui.Binding{Action: "timeline.out", Keys: []string{"-"}, Help: "zoom out", Do: do(func() { v.zoom(2) })},
		tui.Binding{Action: "timeline.fit", Keys: []string{"0"}, Help: "show all of the time", Do: do(func() { v.bars.zoomed = false })},
		tui.Binding{Action: "timeline.here", Keys: []string{"."}, Help: "zoom to the selected span", Do: do(v.zoomHere)},
		tui.Binding{Action: "timeline.earlier", Keys: []string{"h", "left"}, Help: "pan to earlier", Do: do(func() { v.pan(-0.25) })},
		tui.Binding{Action: "timeline.later", Keys: []string{"l", "right"}, Help: "pan to later", Do: do(func() { v.pan(0.25) })},
		tui.Binding{Action: "timeline.fold", Keys: []string{"c"}, Help: "fold or unfold what is within the span", Short: "fold", Do: do(v.fold)},
		tui.Binding{Action: "timeline.include", Keys: []string{"/"}, Help: "show only what matches a regular expression; ! before it: what does not", Short: "filter", Do: v.askInclude},
		tui.Binding{Action: "timeline.exclude", Keys: []string{`\`}, Help: "leave out what matches a regular expression", Do: v.askExclude},
		tui.Binding{Action: "timeline.full", Keys: []string{"F"}, Help: "match in payloads too, or not", Do: do(v.toggleFull)},
		tui.Binding{Action: "timeline.everything", Keys: []string{"a"}, Help: "show the rest between the matches too, or not", Do: do(func() { v.everything = !v.everything })},
		tui.Binding{Action: "timeline.next_match", Keys: []string{"n"}, Help: "next match", Do: v.stepOr(v.matches, 1, (*histories.EventLog).NextMatch, "no match after this")},
		tui.Binding{Action: "timeline.previous_match", Keys: []string{"N"}, Help: "match before", Do: v.stepOr(v.matches, -1, (*histories.EventLog).NextMatch, "no match before this")},
		tui.Binding{Action: "timeline.next_error", Keys: []string{"e"}, Help: "next error", Short: "error", Do: v.stepOr(wrong, 1, (*histories.EventLog).NextError, "no error after this")},
		tui.Binding{Action: "timeline.previous_error", Keys: []string{"E"}, Help: "error before", Do: v.stepOr(wrong, -1, (*histories.EventLog).NextError, "no error before this")},
		tui.Binding{Action: "timeline.related", Keys: []string{"B"}, Help: "to the event that follows from this one: started, completed", Do: jump(1, (*histories.EventLog).Related, "nothing follows from this event")},
		tui.Binding{Action: "timeline.cause", Keys: []string{"b"}, Help: "to the event that this one follows from: started, scheduled", Do: jump(-1, (*histories.EventLog).Related, "this event follows from no other")},
		tui.Binding{Action: "timeline.open", Keys: []string{"o"}, Help: "open the run that the event names: the child, the parent, the one before or after", Do: v.openRun},
		tui.Binding{Action: "timeline.back", Keys: []string{"backspace"}, Help: "back to the run that another was opened from", Do: v.Back},
		tui.Binding{Action: "timeline.run", Keys: []string{"J"}, Help: "to the run", Do: func(s tui.Shell) tea.Cmd { s.Open("run"); return nil }},
	)
	return append(b, v.ForkAt("timeline", v.forkPoint)...)
}

// forkPoint is the event under the cursor.
func (v *Timeline) forkPoint() string {
	if id := v.at(); id != 0 {
		return "at=" + strconv.FormatInt(id, 10)
	}
	return ""
}

// SetShown reads events while somebody looks, and goes to the one that another screen
// asked for.
func (v *Timeline) SetShown(shown bool) {
	v.Following = v.Following && !shown
	v.feed.Look(shown)
	if shown && v.Event > 0 {
		v.Want, v.Event, v.onList = v.Event, 0, true
	}
}

func (v *Timeline) SetStyles(s theme.Styles) { v.styles = s }

func (v *Timeline) SetSize(width, height int) {
	v.width, v.height = width, height
	v.list.table.SetSize(width, max(height-1, 0))
}

func (v *Timeline) Refresh() { v.Log = v.feed.Value() }

// current is the events of the selected run, nil until they are read. Another run starts
// at its last event, and with all of its time in sight.
func (v *Timeline) current() *histories.EventLog {
	l := v.Log
	if l == nil || !v.Selected.Is(l.WorkflowID, l.RunID) {
		return nil
	}
	if run := l.WorkflowID + " " + l.RunID; v.seen != run {
		v.seen, v.asked = run, 0
		v.bars = barPane{folded: map[foldKey]bool{}}
		v.list = listPane{table: v.list.table, end: true}
	}
	return l
}

func (v *Timeline) Draw(now time.Time, focused bool) []string {
	l := v.current()
	if l == nil || l.Len() == 0 {
		return widget.Centre(v.nothing(l), v.width, v.height, v.styles)
	}
	v.arrive(l)
	if v.onList {
		return v.drawList(l, focused)
	}
	return v.drawBars(l, l.Clock(now), focused)
}

// arrive goes to the event that is waited for, once it is read.
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
	case !v.Selected.Ok:
		return []string{"no run is selected: choose one on screen 1, runs"}
	case l != nil && l.Err != "":
		return []string{"the events of " + console.NameOf(v.Selected.Run) + " cannot be read:", text.Safe(l.Err, " ")}
	case l != nil && !l.Reading:
		return []string{console.NameOf(v.Selected.Run) + " has no events"}
	}
	return []string{"reading the events of " + console.NameOf(v.Selected.Run) + v.styles.Glyphs.Ellipsis}
}

func (v *Timeline) Scroll(by int) {
	l := v.current()
	if l == nil {
		return
	}
	if v.onList {
		v.list.Scroll(v, l, by)
	} else {
		v.bars.Scroll(by)
	}
	v.look()
}

func (v *Timeline) Page() int {
	if v.onList {
		return v.list.table.Page()
	}
	return max(v.bars.height, 1)
}

// at is the event that the cursor is on, 0 for none.
func (v *Timeline) at() int64 {
	l := v.current()
	if l == nil || l.Len() == 0 {
		return 0
	}
	if v.onList {
		return v.list.at(v, l)
	}
	if s := v.Span(); s != nil {
		return s.Event
	}
	return 0
}

// look asks for the event under the cursor, whole.
func (v *Timeline) look() {
	if id := v.at(); id != v.asked && id != 0 {
		v.asked = id
		v.feed.Open(id)
	}
}

func (v *Timeline) toggle() {
	id := v.at()
	v.onList = !v.onList
	if l := v.current(); l != nil && id != 0 {
		v.goTo(l, id)
	}
}

// goTo puts the cursor on an event, in the list or on the span that it tells of.
// One that the filter keeps out is shown with all the others.
func (v *Timeline) goTo(l *histories.EventLog, id int64) {
	v.everything = v.everything || !l.Matched(id)
	if v.onList {
		v.list.goTo(v, l, id)
	} else {
		v.bars.goTo(v, l, id)
	}
	v.look()
}

func wrong() func(*histories.Span) bool {
	return func(s *histories.Span) bool { return s.State.Bad() }
}

// stepOr goes from span to span among the bars, from event to event in the list.
func (v *Timeline) stepOr(which func() func(*histories.Span) bool, by int, find func(*histories.EventLog, int64, int) int64, none string) func(tui.Shell) tea.Cmd {
	return func(s tui.Shell) tea.Cmd {
		l := v.current()
		switch {
		case l == nil:
		case v.onList:
			v.jumpBy(s, by, find, none)
		case !v.step(l, by, which()):
			s.Note(none)
		}
		return nil
	}
}

func (v *Timeline) jumpBy(s tui.Shell, by int, find func(*histories.EventLog, int64, int) int64, none string) {
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

// openRun goes to the run that the event under the cursor leads to.
func (v *Timeline) openRun(s tui.Shell) tea.Cmd {
	l, id := v.current(), v.at()
	switch {
	case l == nil || id == 0:
	case l.Opened == nil || l.Opened.ID != id:
		v.feed.Open(id)
		s.Note("the event is being read: once more")
	case l.Opened.Leads.WorkflowID == "":
		s.Note("this event names no other run")
	default:
		to := l.Opened.Leads
		v.GoFrom(to)
		s.Note("now " + console.NameOf(to) + "; backspace leads back")
	}
	return nil
}

func (v *Timeline) askInclude(s tui.Shell) tea.Cmd {
	s.Ask(tui.Prompt{Label: "/", Value: v.filter.Include, Hint: "what to show: a regular expression; !what leaves it out", Preview: previewPattern,
		Done: func(typed string) tea.Cmd {
			f := v.filter
			if rest, not := strings.CutPrefix(typed, "!"); not {
				f.Exclude = rest
			} else {
				f.Include = typed
			}
			v.setFilter(s, f)
			return nil
		}})
	return nil
}

func (v *Timeline) askExclude(s tui.Shell) tea.Cmd {
	s.Ask(tui.Prompt{Label: `\`, Value: v.filter.Exclude, Hint: "what to leave out: a regular expression", Preview: previewPattern,
		Done: func(typed string) tea.Cmd {
			f := v.filter
			f.Exclude = typed
			v.setFilter(s, f)
			return nil
		}})
	return nil
}

func previewPattern(typed string) string {
	if _, err := (histories.EventFilter{Include: strings.TrimPrefix(typed, "!")}).Compile(); err != nil {
		return err.Error()
	}
	return ""
}

// setFilter keeps the filter that is in force where the new one does not compile.
func (v *Timeline) setFilter(s tui.Shell, f histories.EventFilter) {
	if _, err := f.Compile(); err != nil {
		s.Note(err.Error())
		return
	}
	v.filter = f
	v.feed.Filter(f)
}

func (v *Timeline) toggleFull() {
	v.filter.Full = !v.filter.Full
	v.feed.Filter(v.filter)
}

// Copy is the event under the cursor as JSON, or its id until that is read.
func (v *Timeline) Copy() (string, string) {
	id := v.at()
	if id == 0 {
		return "", ""
	}
	what := "event " + text.Count(id)
	if l := v.current(); l.Opened != nil && l.Opened.ID == id && l.Opened.Text != "" {
		return what, l.Opened.Text
	}
	return "the id of " + what, text.Count(id)
}

// Keep and Restore are what outlives the process: the filter and the mode.
func (v *Timeline) Keep() map[string]string {
	return map[string]string{"include": v.filter.Include, "exclude": v.filter.Exclude, "list": map[bool]string{true: "yes"}[v.onList]}
}

func (v *Timeline) Restore(kept map[string]string) {
	f := histories.EventFilter{Include: kept["include"], Exclude: kept["exclude"]}
	if _, err := f.Compile(); err == nil && !f.Empty() {
		v.filter = f
		v.feed.Filter(f)
	}
	v.onList = kept["list"] == "yes"
}
