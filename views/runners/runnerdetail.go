package runners

import (
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// runnerDetail is what is known of the runner, the queue or the run under the cursor of the
// list of runners, and below it the runs that go with it.
type runnerDetail struct {
	nav           *console.Navigation
	actor         *console.Actor
	controls      console.Controls
	location      *time.Location
	from          *runnerList
	styles        theme.Styles
	width, height int
	doc           widget.Document
	table         *widget.Table
	key           string // of what is shown
	list          []runs.Run
}

func newRunnerDetail(from *runnerList) *runnerDetail {
	return &runnerDetail{nav: from.nav, actor: from.actor, location: from.location, from: from, table: widget.NewTable(
		widget.Heading{Title: "STATUS", Width: 11},
		widget.Heading{Title: "BLUEPRINT", Minimum: 12},
		widget.Heading{Title: "RUN", Width: 17, Drop: 1},
		widget.Heading{Title: "AGE", Width: 5, Right: true},
		widget.Heading{Title: "TOOK", Width: 7, Right: true, Drop: 2},
	)}
}

func (v *runnerDetail) Name() string   { return "Runner" }
func (v *runnerDetail) Title() string  { return "Selected" }
func (v *runnerDetail) Footer() string { return v.table.Position() }

func (v *runnerDetail) Bindings() []tui.Binding {
	all := append(widget.Motions("runner", v), tui.Binding{Action: "runner.open", Keys: []string{"enter", "o"}, Help: "open the run under the cursor", Short: "open",
		Do: func(s tui.Shell) tea.Cmd {
			r, ok := v.run()
			if !ok {
				s.Note("there is no run here")
				return nil
			}
			return v.nav.OpenRun(s, r)
		}})
	return append(all, v.from.runnerActions("runner", v.run)...)
}

func (v *runnerDetail) Update(tea.Msg) tea.Cmd    { return nil }
func (v *runnerDetail) Refresh()                  {}
func (v *runnerDetail) SetSize(width, height int) { v.width, v.height = width, height }
func (v *runnerDetail) Page() int                 { return v.table.Page() }

func (v *runnerDetail) SetStyles(s theme.Styles) {
	v.styles = s
	v.doc.Clear()
}

func (v *runnerDetail) Scroll(by int) {
	v.take()
	v.table.Scroll(by)
}

// Copy is the id of the run under the cursor.
func (v *runnerDetail) Copy() (what, copied string) {
	if r, ok := v.run(); ok {
		return "the run's id", runners.BlueprintRunID(r.WorkflowID)
	}
	return v.from.Copy()
}

// run is the one under the cursor.
func (v *runnerDetail) run() (runs.Run, bool) {
	v.take()
	if v.table.Cursor < len(v.list) {
		return v.list[v.table.Cursor], true
	}
	return runs.Run{}, false
}

// take lists the runs of what is selected, and keeps the cursor on its run.
func (v *runnerDetail) take() {
	v.from.arrange()
	was := ""
	if v.table.Cursor < len(v.list) {
		was = v.list[v.table.Cursor].WorkflowID
	}
	key := strconv.Itoa(v.from.list.Cursor.Part) + v.from.keyOf(v.from.data, v.from.list.Cursor)
	if key != v.key {
		v.key, v.table.Cursor, was = key, 0, ""
	}
	v.list = v.from.runsHere()
	v.table.SetRows(len(v.list))
	for i, r := range v.list {
		if r.WorkflowID == was {
			v.table.Scroll(i - v.table.Cursor)
		}
	}
}

// runsHere are the runs of the runner under the cursor, or those that wait in the queue.
func (v *runnerList) runsHere() []runs.Run {
	if r, ok := v.runner(); ok {
		if v.data.Wanted != r.ID {
			return nil
		}
		return v.data.Runs
	}
	var list []runs.Run
	if q, ok := v.queue(); ok {
		for _, w := range v.view().Pending {
			if demandsText(w.Requirements) == demandsText(q.Requirements) {
				list = append(list, waitingRun(w))
			}
		}
	}
	if w, ok := v.pending(); ok {
		list = append(list, waitingRun(w))
	}
	return list
}

func (v *runnerDetail) Draw(now time.Time, focused bool) []string {
	v.take()
	w := &widget.Writer{Doc: &v.doc, S: v.styles, Width: v.width, Now: now, Loc: v.location}
	title := v.facts(w)
	if title == "" {
		return widget.Centre([]string{"nothing is selected"}, v.width, v.height, v.styles)
	}
	lines := w.Lines[:min(len(w.Lines), max(v.height-min(len(v.list)+3, v.height/2), 1))]
	rest := v.height - len(lines) - 1
	if rest < 2 {
		return widget.Fill(lines, v.width, v.height)
	}
	lines = append(lines, ruleLine(title, v.remark(), v.width, v.styles, focused))
	v.table.SetSize(v.width, rest)
	if len(v.list) == 0 {
		return widget.Fill(append(lines, widget.Centre([]string{v.none()}, v.width, rest, v.styles)...), v.width, v.height)
	}
	return append(lines, v.table.Draw(v.styles, focused, func(i int) []widget.Cell { return v.cells(v.list[i], now) })...)
}

func ruleLine(title, remark string, width int, s theme.Styles, active bool) string {
	l := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	l.Add(s.Border, s.Glyphs.Plain.Top+" ").Add(widget.Unless(active, s.Title, s.Strong), title+" ")
	if remark != "" {
		l.Add(s.Muted, s.Glyphs.Dot+" "+remark+" ")
	}
	l.Add(s.Border, strings.Repeat(s.Glyphs.Plain.Top, max(l.Room(), 0)))
	return l.String(s.Border)
}

func (v *runnerDetail) remark() string {
	d := v.from.data
	if _, ok := v.from.runner(); !ok {
		return ""
	}
	switch {
	case d.RunsErr != "":
		return "not read: " + text.Safe(d.RunsErr, " ")
	case d.More:
		return "the newest " + text.Count(int64(len(v.list)))
	}
	return ""
}

func (v *runnerDetail) none() string {
	if r, ok := v.from.runner(); ok && v.from.data.Wanted != r.ID {
		return "reading" + v.styles.Glyphs.Ellipsis
	}
	return "it has had no runs"
}

// facts writes what is known of what is selected, and gives the title of its runs; "" where
// nothing is.
func (v *runnerDetail) facts(w *widget.Writer) string {
	if r, ok := v.from.runner(); ok {
		v.runnerFacts(w, r)
		return "Its runs"
	}
	if q, ok := v.from.queue(); ok {
		v.queueFacts(w, q)
		return "Runs that wait with these demands"
	}
	if p, ok := v.from.pending(); ok {
		v.waitingFacts(w, p)
		return "Run"
	}
	return ""
}

func fact(w *widget.Writer, label string, ink theme.Ink, value string) {
	if value != "" {
		w.Prose(" "+text.Fit(label, 11, ""), ink, value)
	}
}

func (v *runnerDetail) runnerFacts(w *widget.Writer, r runners.RunnerView) {
	s, c := v.styles, r.Capabilities
	m := runnerMark(r.Status, s)
	w.Prose(" ", s.Strong, r.ID)
	fact(w, "status", m.Ink, m.Glyph+" "+m.Word+" for "+text.Span(w.Now.Sub(r.Since)))
	if r.Status == runners.RunnerStale {
		fact(w, "", s.Warning, "nothing was heard of it; it gets no runs until it is back")
	}
	fact(w, "slots", s.Text, strconv.Itoa(r.Busy)+" of "+strconv.Itoa(c.Slots)+" busy, "+text.Count(r.Done)+" runs done")
	fact(w, "executors", s.Text, strings.Join(c.ExecutorTypes, ", "))
	fact(w, "tags", s.Text, console.OrDash(strings.Join(c.Tags, ", "), s.Glyphs))
	fact(w, "host", s.Text, c.Hostname)
	if c.AnyProject {
		fact(w, "directory", s.Text, c.ProjectDir+", or any other that a run names")
	} else {
		fact(w, "directory", s.Text, c.ProjectDir)
	}
	process := ""
	if r.PID > 0 {
		process = strconv.Itoa(r.PID)
	}
	fact(w, "process", s.Muted, process)
	fact(w, "version", s.Muted, r.Version)
	fact(w, "epoch", s.Muted, strconv.FormatInt(r.Epoch, 10))
}

func (v *runnerDetail) queueFacts(w *widget.Writer, q runners.RunQueue) {
	s := v.styles
	w.Prose(" ", s.Strong, demandsText(q.Requirements))
	fact(w, "waiting", s.Text, widget.HowMany(q.Waiting, "run")+", the oldest for "+v.from.oldest(q, w.Now))
	if q.Able > 0 {
		fact(w, "able", s.Text, widget.HowMany(q.Able, "runner")+" could take them, and have no slot free")
		return
	}
	fact(w, "able", s.Error, s.Glyphs.Failed+" no runner that is there")
	fact(w, "nearest", s.Warning, q.Nearest)
	fact(w, "do", s.Accent, "acescope runner start "+startFlags(q.Requirements))
}

// startFlags are the flags of a runner that meets demands.
func startFlags(d runners.RunDemands) string {
	var parts []string
	if len(d.Tags) > 0 {
		parts = append(parts, "--tags "+runners.ShellWord(strings.Join(d.Tags, ",")))
	}
	if d.ProjectDir != "" {
		parts = append(parts, "--project-dir "+runners.ShellWord(d.ProjectDir))
	}
	if d.ExecutorType != "" {
		parts = append(parts, "--executor "+runners.ShellWord(d.ExecutorType))
	}
	said := strings.Join(parts, " ")
	if d.Hostname != "" {
		said += "   on " + d.Hostname
	}
	return strings.TrimSpace(said)
}

func (v *runnerDetail) waitingFacts(w *widget.Writer, p runners.WaitingRun) {
	s := v.styles
	w.Prose(" ", s.Strong, console.OrDash(p.Name, s.Glyphs)+" "+p.RunID)
	fact(w, "waits", s.Text, "for "+text.Span(w.Now.Sub(p.Since)))
	fact(w, "limit", deadlineInk(p.Deadline, w.Now, s), deadlineText(p.Deadline, w.Now))
	fact(w, "demands", s.Text, demandsText(p.Requirements))
	fact(w, "parent", s.Text, p.Parent)
	for _, q := range v.from.view().Queues {
		if demandsText(q.Requirements) == demandsText(p.Requirements) && q.Able == 0 {
			fact(w, "able", s.Error, s.Glyphs.Failed+" no runner that is there")
			fact(w, "nearest", s.Warning, q.Nearest)
		}
	}
}

func (v *runnerDetail) cells(r runs.Run, now time.Time) []widget.Cell {
	s := v.styles
	m := console.RunMark(r, s)
	age, took := s.Glyphs.Dash, s.Glyphs.Dash
	if !r.Start.IsZero() {
		age, took = text.Span(now.Sub(r.Start)), console.TookOf(r, now)
	}
	return []widget.Cell{{m.Glyph + " " + m.Word, m.Ink}, {console.OrDash(r.Blueprint, s.Glyphs), s.Text}, {console.OrDash(runners.BlueprintRunID(r.WorkflowID), s.Glyphs), s.Muted},
		{age, s.Muted}, {took, s.Muted}}
}
