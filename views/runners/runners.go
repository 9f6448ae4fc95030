// Package runners lists runners, task queues and blueprint runs that wait for a runner.
package runners

import (
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/cluster"
	runnerspkg "acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Parts of the list of runners, in order.
const (
	runnerRows = iota
	queueRows
	waitingRows
)

// runners lists the runners, what waiting runs demand, and the runs that wait.
type runnerList struct {
	nav           *console.Navigation
	actor         *console.Actor
	controls      console.Controls
	location      *time.Location
	feed          Feed
	styles        theme.Styles
	width, height int
	data          *runnerspkg.Runners
	conn          cluster.Connection
	arranged      *runnerspkg.Runners // that the list was last arranged for
	list          widget.SectionList
}

// Feed lists runners, and the runs of the one that it is asked for by ID.
type Feed interface {
	console.Feed[*runnerspkg.Runners]
	Refine(id string)
}

func RunnersScreen(c *console.Console, feed Feed) tui.Screen {
	v := &runnerList{nav: c.Navigation, actor: c.Actor, controls: c.Controls, location: c.Location, feed: feed}
	return tui.Screen{Name: "runners", Aliases: []string{"queues"}, Short: "rnrs", Keys: []string{"Q"}, Share: 62,
		Help: "runners, and the runs that wait for one: who is there, what is demanded, what is lacking", Views: []tui.View{v, newRunnerDetail(v)}}
}

func (v *runnerList) Name() string   { return "Runners" }
func (v *runnerList) Title() string  { return "Runners" }
func (v *runnerList) Footer() string { return v.list.Position() }

func (v *runnerList) Bindings() []tui.Binding {
	b := func(name, help, short string, do func(tui.Shell) tea.Cmd, keys ...string) tui.Binding {
		return tui.Binding{Action: "runners." + name, Keys: keys, Help: help, Short: short, Do: do}
	}
	quiet := func(do func()) func(tui.Shell) tea.Cmd {
		return func(tui.Shell) tea.Cmd { v.arrange(); do(); return nil }
	}
	all := append(widget.Motions("runners", v),
		b("open", "open the run that waits; of a runner or a queue, go to its runs", "open", v.open, "enter", "o"),
		b("next_part", "to the next part", "part", quiet(func() { v.list.Jump(1) }), "]"),
		b("previous_part", "to the part before", "", quiet(func() { v.list.Jump(-1) }), "["),
		b("whole", "show a part whole, or its beginning", "", quiet(v.list.Toggle), "a"),
	)
	return append(all, v.runnerActions("runners", v.waiting)...)
}

// SetShown asks the dispatcher while the screen is looked at.
func (v *runnerList) SetShown(shown bool) {
	v.feed.Look(shown)
	if shown {
		v.choose()
	}
}

func (v *runnerList) SetStyles(s theme.Styles)  { v.styles = s }
func (v *runnerList) SetSize(width, height int) { v.width, v.height = width, height }
func (v *runnerList) Refresh()                  { v.data, v.conn = v.feed.Value(), v.controls.Connection() }
func (v *runnerList) Page() int                 { return v.list.Page() }

func (v *runnerList) Scroll(by int) {
	v.arrange()
	v.list.Scroll(by)
	v.choose()
}

// choose wants the runs of the runner under the cursor.
func (v *runnerList) choose() {
	if r, ok := v.runner(); ok {
		v.feed.Refine(r.ID)
		return
	}
	v.feed.Refine("")
}

// Copy is the id of what the cursor is on, of a queue what it demands.
func (v *runnerList) Copy() (what, copied string) {
	v.arrange()
	if r, ok := v.runner(); ok {
		return "the runner's id", r.ID
	}
	if w, ok := v.waiting(); ok {
		return "the run's id", runnerspkg.BlueprintRunID(w.WorkflowID)
	}
	if q, ok := v.queue(); ok {
		return "what is demanded", demandsText(q.Requirements)
	}
	return "", ""
}

// view is what the dispatcher last said.
func (v *runnerList) view() runnerspkg.RunnersView {
	if v.data == nil {
		return runnerspkg.RunnersView{}
	}
	return v.data.View
}

// arrange puts the newest answer into the list. The cursor stays on what it was on.
func (v *runnerList) arrange() {
	if v.data == nil || v.data == v.arranged {
		return
	}
	was := v.keyOf(v.arranged, v.list.Cursor)
	v.arranged = v.data
	view := v.data.View
	v.list.Set([]widget.SectionPart{
		{"Runners", runnersRemark(view, v.styles), len(view.Runners), 12},
		{"Queues", queuesRemark(view), len(view.Queues), 6},
		{"Waiting", waitingRemark(view), len(view.Pending), 8},
	})
	if part := v.list.Cursor.Part; was != "" && part < len(v.list.Parts) {
		for row := range v.list.Parts[part].Rows {
			if at := (widget.SectionRow{part, row}); v.keyOf(v.data, at) == was {
				v.list.Cursor = at
				break
			}
		}
		v.list.Settle()
	}
	v.choose()
}

// keyOf tells a row from its neighbours, "" where there is none.
func (v *runnerList) keyOf(d *runnerspkg.Runners, at widget.SectionRow) string {
	switch {
	case d == nil:
	case at.Part == runnerRows && at.Row < len(d.View.Runners):
		return d.View.Runners[at.Row].ID
	case at.Part == queueRows && at.Row < len(d.View.Queues):
		return demandsText(d.View.Queues[at.Row].Requirements)
	case at.Part == waitingRows && at.Row < len(d.View.Pending):
		return d.View.Pending[at.Row].RunID
	}
	return ""
}

func (v *runnerList) runner() (r runnerspkg.RunnerView, ok bool) {
	if at := v.list.Cursor; at.Part == runnerRows && at.Row < len(v.view().Runners) {
		return v.view().Runners[at.Row], true
	}
	return r, false
}

func (v *runnerList) queue() (q runnerspkg.RunQueue, ok bool) {
	if at := v.list.Cursor; at.Part == queueRows && at.Row < len(v.view().Queues) {
		return v.view().Queues[at.Row], true
	}
	return q, false
}

func (v *runnerList) pending() (w runnerspkg.WaitingRun, ok bool) {
	if at := v.list.Cursor; at.Part == waitingRows && at.Row < len(v.view().Pending) {
		return v.view().Pending[at.Row], true
	}
	return w, false
}

// waiting is the run under the cursor that waits.
func (v *runnerList) waiting() (runs.Run, bool) {
	v.arrange()
	w, ok := v.pending()
	return waitingRun(w), ok
}

func waitingRun(w runnerspkg.WaitingRun) runs.Run {
	r := runnerspkg.BlueprintRun(w.RunID)
	r.Phase, r.Start, r.Blueprint = "pending", w.Since, w.Name
	return r
}

func (v *runnerList) open(s tui.Shell) tea.Cmd {
	v.arrange()
	if r, ok := v.waiting(); ok {
		return v.nav.OpenRun(s, r)
	}
	if v.list.Empty() {
		s.Note("there is nothing to open yet")
		return nil
	}
	s.Focus(1)
	return nil
}

func (v *runnerList) Draw(now time.Time, focused bool) []string {
	v.arrange()
	lines := v.head(now)
	if say := v.empty(); say != nil {
		return widget.Fill(append(lines, widget.Centre(say, v.width, v.height-len(lines), v.styles)...), v.width, v.height)
	}
	v.list.SetSize(v.width, max(v.height-len(lines), 0))
	lines = append(lines, v.list.Draw(v.styles, focused, func(at widget.SectionRow, width int, plain bool) string { return v.row(at, width, plain, now) })...)
	return widget.Fill(lines, v.width, v.height)
}

// head is what all runners have done, and why nothing newer is known.
func (v *runnerList) head(now time.Time) []string {
	d, s := v.data, v.styles
	if d == nil {
		return nil
	}
	var lines []string
	if said := deafText(d, now); said != "" {
		all := text.Wrap(said, max(v.width-4, 1))
		for _, l := range all[:min(len(all), 3)] {
			lines = append(lines, s.Warning.Paint(text.Fit(" "+s.Glyphs.Failed+" "+l, v.width, s.Glyphs.Ellipsis)))
		}
	}
	if !d.Answered.IsZero() {
		lines = append(lines, countsLine(d.View, v.width, s))
	}
	return lines[:min(len(lines), max(v.height, 0))]
}

// deafText says why nothing newer is known, and what to do; "" where all is well.
func deafText(d *runnerspkg.Runners, now time.Time) string {
	if d.Err == "" {
		return ""
	}
	said := "no answer: " + text.Safe(d.Err, " ")
	if d.Deaf {
		said = "nobody serves this: acescope serve does"
	}
	if !d.Answered.IsZero() {
		said += ". What stands here is " + text.Span(now.Sub(d.Answered)) + " old"
	}
	return said
}

func countsLine(view runnerspkg.RunnersView, width int, s theme.Styles) string {
	l := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	for i, c := range []struct {
		n    int64
		what string
		bad  theme.Ink
	}{{int64(view.Running), "running", s.Text}, {int64(view.Waiting), "waiting", s.Text}, {view.Matched, "matched", s.Text},
		{view.Expired, "expired", s.Warning}, {view.Refused, "refused", s.Warning}, {view.Lost, "lost", s.Failed}} {
		if i > 0 {
			l.Add(s.Muted, " "+s.Glyphs.Dot)
		}
		l.Add(widget.Unless(c.n == 0, s.Muted, c.bad), " "+text.Count(c.n)+" "+c.what)
	}
	return l.String(s.Text)
}

// empty is what is said where there is nothing to list; nil where there is.
func (v *runnerList) empty() []string {
	d := v.data
	switch {
	case v.conn.Mode == cluster.ModeFile:
		return []string{"a file has no runners", "acescope without FILE shows those of the data directory"}
	case d == nil || d.Answered.IsZero() && d.Err == "" && !d.Absent:
		return []string{"asking the dispatcher" + v.styles.Glyphs.Ellipsis}
	case d.Answered.IsZero() && d.Err != "":
		return []string{"nothing is known of runners yet"}
	case !v.list.Empty():
		return nil
	}
	return []string{"no runner is there, and no run waits for one", "", "acescope runner start --tags gpu,linux   starts a runner",
		"acescope serve   serves this directory and brings one along", "acescope agent list   has the blueprints of agents and programs",
		"acescope agent start NAME   starts a run of one"}
}

func runnersRemark(view runnerspkg.RunnersView, s theme.Styles) string {
	count := map[runnerspkg.RunnerStatus]int{}
	busy, slots := 0, 0
	for _, r := range view.Runners {
		count[r.Status]++
		if busy += r.Busy; r.Status == runnerspkg.RunnerOnline {
			slots += r.Capabilities.Slots
		}
	}
	var parts []string
	for _, st := range []runnerspkg.RunnerStatus{runnerspkg.RunnerOnline, runnerspkg.RunnerDraining, runnerspkg.RunnerStale, runnerspkg.RunnerGone} {
		if n := count[st]; n > 0 {
			parts = append(parts, text.Count(int64(n))+" "+string(st))
		}
	}
	if len(parts) == 0 {
		return "none: acescope runner start"
	}
	return strings.Join(parts, ", ") + " " + s.Glyphs.Dot + " " + text.Count(int64(busy)) + " of " + text.Count(int64(slots)) + " slots busy"
}

func queuesRemark(view runnerspkg.RunnersView) string {
	if len(view.Queues) == 0 {
		return "no run waits"
	}
	if view.Waiting == 1 {
		return "1 run waits, by what it demands"
	}
	return widget.HowMany(view.Waiting, "run") + " wait, by what they demand"
}

func waitingRemark(view runnerspkg.RunnersView) string {
	switch {
	case len(view.Pending) == 0:
		return "none"
	case len(view.Pending) < view.Waiting:
		return "the oldest " + text.Count(int64(len(view.Pending))) + " of " + text.Count(int64(view.Waiting))
	}
	return "the oldest first"
}

func runnerMark(status runnerspkg.RunnerStatus, s theme.Styles) theme.Mark {
	m := theme.Mark{Word: text.Cut(text.Safe(string(status), " "), 8, "")}
	switch status {
	case runnerspkg.RunnerOnline:
		m.Glyph, m.Ink = s.Glyphs.Running, s.Success
	case runnerspkg.RunnerDraining:
		m.Glyph, m.Ink = s.Glyphs.Pending, s.Warning
	case runnerspkg.RunnerStale:
		m.Glyph, m.Ink = s.Glyphs.Unknown, s.Warning
	case runnerspkg.RunnerGone:
		m.Glyph, m.Ink = s.Glyphs.Cancelled, s.Muted
	default:
		m.Glyph, m.Ink = s.Glyphs.Unknown, s.Muted
	}
	return m
}

// demandsText is what is demanded, in one line.
func demandsText(d runnerspkg.RunDemands) string {
	var parts []string
	for _, p := range []struct{ name, value string }{{"", d.ExecutorType}, {"tags", strings.Join(d.Tags, ",")}, {"host", d.Hostname},
		{"project", d.ProjectDir}} {
		if p.value != "" {
			parts = append(parts, strings.TrimSpace(p.name+" "+p.value))
		}
	}
	if len(parts) == 0 {
		return "any runner"
	}
	return text.Safe(strings.Join(parts, ", "), " ")
}

// row draws one row of the list.
func (v *runnerList) row(at widget.SectionRow, width int, plain bool, now time.Time) string {
	view := v.view()
	switch {
	case at.Part == runnerRows && at.Row < len(view.Runners):
		return v.runnerRow(view.Runners[at.Row], width, plain, now)
	case at.Part == queueRows && at.Row < len(view.Queues):
		return v.queueRow(view.Queues[at.Row], width, plain, now)
	case at.Part == waitingRows && at.Row < len(view.Pending):
		return v.waitingRow(view.Pending[at.Row], width, plain, now)
	}
	return ""
}

// wideRunner is the width from which a runner's row tells its host and directory too.
const wideRunner = 110

func (v *runnerList) runnerRow(r runnerspkg.RunnerView, width int, plain bool, now time.Time) string {
	s, c := v.styles, r.Capabilities
	m := runnerMark(r.Status, s)
	cells := []widget.SizedCell{{m.Glyph + " " + m.Word, 10, m.Ink}, {text.Safe(r.ID, " "), 17, s.Text},
		{strconv.Itoa(r.Busy) + "/" + strconv.Itoa(c.Slots) + " busy", -10, widget.Unless(r.Busy > 0, s.Text, s.Muted)}, {text.Count(r.Done) + " done", -10, s.Muted},
		{text.Span(now.Sub(r.Since)), -5, s.Muted}}
	offers := strings.Join(c.ExecutorTypes, ", ")
	if len(c.Tags) > 0 {
		offers += "; " + strings.Join(c.Tags, ",")
	}
	cells = append(cells, widget.SizedCell{text.Safe(offers, " "), 0, s.Text})
	if width >= wideRunner {
		cells = append(cells, widget.SizedCell{text.Safe(c.Hostname, " "), 14, s.Muted}, widget.SizedCell{projectText(r), 26, s.Muted})
	}
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis, cells...)
}

func projectText(r runnerspkg.RunnerView) string {
	if r.Capabilities.AnyProject {
		return "any directory"
	}
	return text.Safe(r.Capabilities.ProjectDir, " ")
}

func (v *runnerList) queueRow(q runnerspkg.RunQueue, width int, plain bool, now time.Time) string {
	s := v.styles
	able, ink := text.Count(int64(q.Able))+" able", s.Text
	if q.Able == 0 {
		able, ink = s.Glyphs.Failed+" none able", s.Error
	}
	said := demandsText(q.Requirements)
	if q.Nearest != "" {
		said += ": " + text.Safe(q.Nearest, " ")
	}
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis, widget.SizedCell{text.Count(int64(q.Waiting)) + " wait", -11, s.Text},
		widget.SizedCell{"oldest " + v.oldest(q, now), 13, s.Muted}, widget.SizedCell{able, 11, ink}, widget.SizedCell{said, 0, s.Text})
}

// oldest is how long the first run of a queue has waited.
func (v *runnerList) oldest(q runnerspkg.RunQueue, now time.Time) string {
	for _, w := range v.view().Pending {
		if w.RunID == q.Oldest {
			return text.Span(now.Sub(w.Since))
		}
	}
	return v.styles.Glyphs.Dash
}

func (v *runnerList) waitingRow(w runnerspkg.WaitingRun, width int, plain bool, now time.Time) string {
	s := v.styles
	cells := []widget.SizedCell{{s.Glyphs.Pending + " " + console.OrDash(w.Name, s.Glyphs), 20, s.Text}, {text.Safe(w.RunID, " "), 17, s.Muted},
		{text.Span(now.Sub(w.Since)), -5, s.Muted}, {deadlineText(w.Deadline, now), 16, deadlineInk(w.Deadline, now, s)}, {demandsText(w.Requirements), 0, s.Text}}
	if width >= wideRunner && w.Parent != "" {
		cells = append(cells, widget.SizedCell{"for " + text.Safe(w.Parent, " "), 22, s.Muted})
	}
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis, cells...)
}

// deadlineText counts down to when a run gives up.
func deadlineText(at, now time.Time) string {
	switch left := at.Sub(now); {
	case at.IsZero():
		return "waits on"
	case left <= 0:
		return "gives up now"
	default:
		return "gives up in " + text.Span(left)
	}
}

// soon is when a deadline is near enough to be marked.
const soon = 30 * time.Second

func deadlineInk(at, now time.Time, s theme.Styles) theme.Ink {
	return widget.Unless(at.IsZero() || at.Sub(now) > soon, s.Muted, s.Warning)
}
