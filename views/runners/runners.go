// Package runners lists runners, task queues and blueprint runs that wait for a runner.
package runners

import (
	"context"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/engine/tasks/runner"
	"acescope/sources/cluster"
	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// row is a row of the list.
type row interface {
	key() string             // identifies the row in its section
	name() (what, id string) // what is copied
	runs(v *list) []runs.Run // the runs that the detail lists
	cells(v *list, width int, now time.Time) []widget.SizedCell
	// facts writes the row into the detail and returns the title of its runs.
	facts(v *detail, w *widget.Writer) string
}

type (
	runnerRow  struct{ runner.RunnerView }
	queueRow   struct{ runner.QueueView }
	waitingRow struct{ runner.PendingView }
)

// list lists the runners, the queues by requirements, and the waiting runs.
type list struct {
	nav      *console.Navigation
	actor    *console.Actor
	pipeline *console.Pipeline
	actions  console.RunnerActions // nil for a console that only reads
	controls console.Controls
	location *time.Location
	feed     Feed
	console.Pane
	data *runners.Runners
	conn cluster.Connection
	list widget.SectionList[row]
}

// Feed lists runners, and the runs of one of them.
type Feed interface {
	console.Feed[*runners.Runners]
	// Refine reads the runs of a runner, or of no runner for "".
	Refine(id string)
}

// Screen returns the screen with the list of runners and the selected row.
func Screen(c *console.Console, actions console.RunnerActions, feed Feed) tui.Screen {
	v := &list{Pane: console.NewPane("Runners"), nav: c.Navigation, actor: c.Actor,
		pipeline: c.Pipeline, actions: actions, controls: c.Controls, location: c.Location, feed: feed}
	v.list.Key = row.key
	return tui.Screen{Name: "runners", Aliases: []string{"queues"}, Short: "rnrs", Keys: []string{"Q"},
		Share: 62, Help: "runners, waiting runs, and the requirements that no runner meets",
		Views: []tui.View{v, newDetail(v)}}
}

func (v *list) Footer() string { return v.list.Position() }

func (v *list) Bindings() []tui.Binding {
	all := append(widget.Motions("runners", v),
		console.Key("runners.open", "open the waiting run, or go to the runs of a runner or a queue", "open",
			v.open, "enter"))
	all = append(all, console.SectionKeys("runners", "part", "section", "", &v.list)...)
	return append(all, v.runnerActions("runners", v.waiting)...)
}

func (v *list) SetShown(shown bool) {
	v.feed.Look(shown)
	if shown {
		v.choose()
	}
}

func (v *list) Page() int { return v.list.Page() }

func (v *list) Refresh() {
	was := v.data
	if v.data, v.conn = v.feed.Value(), v.controls.Connection(); v.data != was {
		v.arrange()
	}
}

func (v *list) Scroll(by int) {
	v.list.Scroll(by)
	v.choose()
}

// choose reads the runs of the runner under the cursor.
func (v *list) choose() {
	r, _ := v.selected().(runnerRow)
	v.feed.Refine(r.ID)
}

func (v *list) Copy() (what, copied string) {
	if r := v.selected(); r != nil {
		return r.name()
	}
	return "", ""
}

func (r runnerRow) name() (what, id string)  { return "runner ID", r.ID }
func (r queueRow) name() (what, id string)   { return "requirements", r.key() }
func (r waitingRow) name() (what, id string) { return "run ID", r.RunID }

// view returns the last answer of the dispatcher.
func (v *list) view() runner.View {
	if v.data == nil {
		return runner.View{}
	}
	return v.data.View
}

// arrange lists the newest answer.
func (v *list) arrange() {
	view := v.view()
	sections := []widget.Section[row]{
		{Name: "Runners", Remark: runnersRemark(view, v.Styles), Limit: 12},
		{Name: "Queues", Remark: queuesRemark(view), Limit: 6},
		{Name: "Waiting", Remark: waitingRemark(view), Limit: 8},
	}
	for _, r := range view.Runners {
		sections[0].Rows = append(sections[0].Rows, runnerRow{r})
	}
	for _, q := range view.Queues {
		sections[1].Rows = append(sections[1].Rows, queueRow{q})
	}
	for _, w := range view.Pending {
		sections[2].Rows = append(sections[2].Rows, waitingRow{w})
	}
	v.list.Set(sections)
	v.choose()
}

func (r runnerRow) key() string  { return r.ID }
func (r queueRow) key() string   { return requirementsText(r.Requirements) }
func (r waitingRow) key() string { return r.RunID }

// selected returns the row under the cursor, or nil.
func (v *list) selected() row {
	r, _ := v.list.Current()
	return r
}

// waiting returns the waiting run under the cursor.
func (v *list) waiting() (runs.Run, bool) {
	w, ok := v.selected().(waitingRow)
	return waitingRun(w.PendingView), ok
}

func waitingRun(w runner.PendingView) runs.Run {
	r := runners.BlueprintRun(w.RunID)
	r.Phase, r.Start, r.Blueprint = "pending", w.Since, w.Name
	return r
}

func (v *list) open(s tui.Shell) tea.Cmd {
	if r, ok := v.waiting(); ok {
		return v.nav.OpenRun(s, r)
	}
	if v.list.Empty() {
		s.Note("the list is empty")
		return nil
	}
	s.Focus(1)
	return nil
}

func (v *list) Draw(now time.Time, focused bool) []string {
	lines := v.head(now)
	if reason := v.empty(); reason != nil {
		return v.Message(lines, reason...)
	}
	v.list.SetSize(v.Width, max(v.Height-len(lines), 0))
	lines = append(lines, v.list.Draw(v.Styles, focused, func(r row, width int) []widget.SizedCell {
		return r.cells(v, width, now)
	})...)
	return widget.Fill(lines, v.Width, v.Height)
}

// head shows the totals of the dispatcher and, if the data is old, why.
func (v *list) head(now time.Time) []string {
	d, s := v.data, v.Styles
	if d == nil {
		return nil
	}
	var lines []string
	if summary := staleText(d, now); summary != "" {
		all := text.Wrap(summary, max(v.Width-4, 1))
		for _, l := range all[:min(len(all), 3)] {
			lines = append(lines, s.Warning.Paint(text.Fit(" "+s.Glyphs.Failed+" "+l, v.Width,
				s.Glyphs.Ellipsis)))
		}
	}
	if !d.Answered.IsZero() {
		lines = append(lines, countsLine(d.View, v.Width, s))
	}
	return lines[:min(len(lines), max(v.Height, 0))]
}

// staleText says why there is no newer data and what to do, or returns "".
func staleText(d *runners.Runners, now time.Time) string {
	if d.Err == "" {
		return ""
	}
	summary := "no answer: " + text.Safe(d.Err, " ")
	if d.NoWorker {
		summary = "no dispatcher is running; start one with acescope serve"
	}
	if !d.Answered.IsZero() {
		summary += ". The data shown is " + text.Span(now.Sub(d.Answered)) + " old"
	}
	return summary
}

func countsLine(view runner.View, width int, s theme.Styles) string {
	l := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	for i, c := range []struct {
		n    int64
		what string
		bad  theme.Ink
	}{{int64(view.Running), "running", s.Text}, {int64(view.Waiting), "waiting", s.Text},
		{view.Matched, "matched", s.Text},
		{view.Expired, "expired", s.Warning}, {view.Refused, "refused", s.Warning},
		{view.Lost, "lost", s.Failed}} {
		if i > 0 {
			l.Add(s.Muted, " "+s.Glyphs.Dot)
		}
		l.Add(widget.If(c.n == 0, s.Muted, c.bad), " "+ace.Number(c.n)+" "+c.what)
	}
	return l.String(s.Text)
}

// empty explains why the list is empty, or returns nil.
func (v *list) empty() []string {
	d := v.data
	switch {
	case v.conn.Mode == cluster.ModeFile:
		return []string{"a history file has no runners",
			"run acescope without FILE to see those of the data directory"}
	case d == nil || d.Answered.IsZero() && d.Err == "" && !d.Absent:
		return []string{"asking the dispatcher" + v.Styles.Glyphs.Ellipsis}
	case d.Answered.IsZero() && d.Err != "":
		return []string{"no data about runners yet"}
	case !v.list.Empty():
		return nil
	}
	return []string{"no runners, and no waiting runs", "",
		v.nav.Command("runner", "start", "--tags", "gpu,linux") + "   starts a runner",
		v.nav.Command("serve") + "   serves this directory with a runner",
		v.nav.Command("agent", "list") + "   lists the blueprints",
		v.nav.Command("agent", "start", "NAME") + "   starts a blueprint run"}
}

func runnersRemark(view runner.View, s theme.Styles) string {
	count := map[runner.Status]int{}
	busy, slots := 0, 0
	for _, r := range view.Runners {
		count[r.Status]++
		if busy += r.Busy; r.Status == runner.Online {
			slots += r.Capabilities.Slots
		}
	}
	var parts []string
	for _, st := range []runner.Status{runner.Online, runner.Draining,
		runner.Stale, runner.Gone} {
		if n := count[st]; n > 0 {
			parts = append(parts, ace.Number(n)+" "+string(st))
		}
	}
	if len(parts) == 0 {
		return "none: acescope runner start"
	}
	return strings.Join(parts, ", ") + " " + s.Glyphs.Dot + " " + ace.Number(busy) + " of " +
		ace.Count(slots, "slot") + " busy"
}

func queuesRemark(view runner.View) string {
	if len(view.Queues) == 0 {
		return "no waiting runs"
	}
	return ace.Count(view.Waiting, "waiting run") + ", by requirements"
}

func waitingRemark(view runner.View) string {
	switch {
	case len(view.Pending) == 0:
		return "none"
	case len(view.Pending) < view.Waiting:
		return "the oldest " + ace.Number(len(view.Pending)) + " of " + ace.Number(view.Waiting)
	}
	return "the oldest first"
}

func runnerMark(status runner.Status, s theme.Styles) theme.Mark {
	m := theme.Mark{Word: text.Cut(text.Safe(string(status), " "), 8, "")}
	switch status {
	case runner.Online:
		m.Glyph, m.Ink = s.Glyphs.Running, s.Success
	case runner.Draining:
		m.Glyph, m.Ink = s.Glyphs.Pending, s.Warning
	case runner.Stale:
		m.Glyph, m.Ink = s.Glyphs.Unknown, s.Warning
	case runner.Gone:
		m.Glyph, m.Ink = s.Glyphs.Canceled, s.Muted
	default:
		m.Glyph, m.Ink = s.Glyphs.Unknown, s.Muted
	}
	return m
}

// requirementsText formats requirements on one line.
func requirementsText(d runner.Requirements) string {
	var parts []string
	for _, p := range []struct{ name, value string }{{"", d.ExecutorType},
		{"tags", strings.Join(d.Tags, ",")}, {"host", d.Hostname},
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

// wideWidth is the minimum width of rows with host and directory.
const wideWidth = 110

func (r runnerRow) cells(v *list, width int, now time.Time) []widget.SizedCell {
	s, c := v.Styles, r.Capabilities
	m := runnerMark(r.Status, s)
	cells := []widget.SizedCell{{m.Glyph + " " + m.Word, 10, m.Ink}, {text.Safe(r.ID, " "), 17, s.Text},
		{strconv.Itoa(r.Busy) + "/" + strconv.Itoa(c.Slots) + " busy", -10,
			widget.If(r.Busy > 0, s.Text, s.Muted)}, {ace.Number(r.Done) + " done", -10, s.Muted},
		{text.Span(now.Sub(r.Since)), -5, s.Muted}}
	offers := strings.Join(c.ExecutorTypes, ", ")
	if len(c.Tags) > 0 {
		offers += "; " + strings.Join(c.Tags, ",")
	}
	cells = append(cells, widget.SizedCell{text.Safe(offers, " "), 0, s.Text})
	if width >= wideWidth {
		project := widget.If(c.AnyProject, "any directory", text.Safe(c.ProjectDir, " "))
		cells = append(cells, widget.SizedCell{text.Safe(c.Hostname, " "), 14, s.Muted},
			widget.SizedCell{project, 26, s.Muted})
	}
	return cells
}

func (q queueRow) cells(v *list, _ int, now time.Time) []widget.SizedCell {
	s := v.Styles
	able, ink := ace.Number(q.Able)+" able", s.Text
	if q.Able == 0 {
		able, ink = s.Glyphs.Failed+" none able", s.Error
	}
	summary := requirementsText(q.Requirements)
	summary += widget.If(q.Nearest != "", ": "+text.Safe(q.Nearest, " "), "")
	return []widget.SizedCell{{ace.Number(q.Waiting) + " wait", -11, s.Text},
		{"oldest " + v.oldest(q.QueueView, now), 13, s.Muted}, {able, 11, ink}, {summary, 0, s.Text}}
}

// oldest returns how long the first run of a queue has waited.
func (v *list) oldest(q runner.QueueView, now time.Time) string {
	for _, w := range v.view().Pending {
		if w.RunID == q.Oldest {
			return text.Span(now.Sub(w.Since))
		}
	}
	return v.Styles.Glyphs.Dash
}

func (w waitingRow) cells(v *list, width int, now time.Time) []widget.SizedCell {
	s := v.Styles
	cells := []widget.SizedCell{{s.Glyphs.Pending + " " + console.OrDash(w.Name, s.Glyphs), 20, s.Text},
		{text.Safe(w.RunID, " "), 17, s.Muted},
		{text.Span(now.Sub(w.Since)), -5, s.Muted},
		{deadlineText(w.Deadline, now), 16, deadlineInk(w.Deadline, now, s)},
		{requirementsText(w.Requirements), 0, s.Text}}
	if width >= wideWidth && w.Parent != "" {
		cells = append(cells, widget.SizedCell{"for " + text.Safe(w.Parent, " "), 22, s.Muted})
	}
	return cells
}

// deadlineText shows the time until a waiting run expires.
func deadlineText(at, now time.Time) string {
	switch left := at.Sub(now); {
	case at.IsZero():
		return "no deadline"
	case left <= 0:
		return "expires now"
	default:
		return "expires in " + text.Span(left)
	}
}

// soon is the time before a deadline at which it is marked.
const soon = 30 * time.Second

func deadlineInk(at, now time.Time, s theme.Styles) theme.Ink {
	return widget.If(at.IsZero() || at.Sub(now) > soon, s.Muted, s.Warning)
}

// runnerActions returns the keys that act on the runner or the run under a cursor.
func (v *list) runnerActions(view string, run func() (runs.Run, bool)) []tui.Binding {
	if v.actions == nil {
		return nil
	}
	stop := func(s tui.Shell) tea.Cmd {
		r, ok := run()
		if !ok {
			s.Note("no run is selected; the other pane lists the runs of a runner")
			return nil
		}
		v.actor.AskStop(s, r)
		return nil
	}
	return []tui.Binding{
		console.MutatingKey(view+".cancel", "stop the run under the cursor (asks first)", "stop", stop, "x"),
		console.MutatingKey(view+".drain", "drain the runner: it gets no more runs (asks first)", "drain",
			v.askDrain, "D"),
	}
}

func (v *list) askDrain(s tui.Shell) tea.Cmd {
	v.arrange()
	r, ok := v.selected().(runnerRow)
	switch {
	case !ok:
		s.Note("no runner is selected")
		return nil
	case r.Status == runner.Draining || r.Status == runner.Gone:
		s.Note("runner " + text.Safe(r.ID, " ") + " is already " + text.Safe(string(r.Status), " "))
		return nil
	}
	lines := []string{"runner    " + text.Safe(r.ID, " "), "host      " + text.Safe(r.Capabilities.Hostname,
		" ")}
	if r.Busy > 0 {
		lines = append(lines, ace.Count(r.Busy, "run")+" in progress; not stopped")
	}
	v.pipeline.Confirm(s, "drain "+r.ID, runs.Prepared{Title: "Drain this runner?",
		Lines: append(lines, "it gets no more runs; its process exits after its last run"),
		Yes:   "drain the runner",
		Do: console.Doing("runner "+r.ID+" gets no more runs",
			func(ctx context.Context) error { return v.actions.DrainRunner(ctx, r.ID) })})
	return nil
}
