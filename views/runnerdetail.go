package views

import (
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// runnerDetail is what is known of the runner, the queue or the run under the cursor of the
// list of runners, and below it the runs that go with it.
type runnerDetail struct {
	*console
	from          *runners
	styles        theme.Styles
	width, height int
	doc           document
	table         *table
	key           string // of what is shown
	list          []sources.Run
}

func newRunnerDetail(from *runners) *runnerDetail {
	return &runnerDetail{console: from.console, from: from, table: newTable(
		heading{title: "STATUS", width: 11},
		heading{title: "BLUEPRINT", minimum: 12},
		heading{title: "RUN", width: 17, drop: 1},
		heading{title: "AGE", width: 5, right: true},
		heading{title: "TOOK", width: 7, right: true, drop: 2},
	)}
}

func (v *runnerDetail) Name() string   { return "Runner" }
func (v *runnerDetail) Title() string  { return "Selected" }
func (v *runnerDetail) Footer() string { return v.table.position() }

func (v *runnerDetail) Bindings() []tui.Binding {
	all := append(motions("runner", v), tui.Binding{Action: "runner.open", Keys: []string{"enter", "o"}, Help: "open the run under the cursor", Short: "open",
		Do: func(s tui.Shell) tea.Cmd {
			r, ok := v.run()
			if !ok {
				s.Note("there is no run here")
				return nil
			}
			return v.openRun(s, r)
		}})
	return append(all, v.from.runnerActions("runner", v.run)...)
}

func (v *runnerDetail) Update(tea.Msg) tea.Cmd        { return nil }
func (v *runnerDetail) SetShown(bool)                 {}
func (v *runnerDetail) SetSnapshot(*sources.Snapshot) {}
func (v *runnerDetail) SetSize(width, height int)     { v.width, v.height = width, height }
func (v *runnerDetail) page() int                     { return v.table.page() }

func (v *runnerDetail) SetStyles(s theme.Styles) {
	v.styles = s
	v.doc.clear()
}

func (v *runnerDetail) scroll(by int) {
	v.take()
	v.table.scroll(by)
}

// Copy is the id of the run under the cursor.
func (v *runnerDetail) Copy() (what, copied string) {
	if r, ok := v.run(); ok {
		return "the run's id", sources.BlueprintRunID(r.WorkflowID)
	}
	return v.from.Copy()
}

// run is the one under the cursor.
func (v *runnerDetail) run() (sources.Run, bool) {
	v.take()
	if v.table.cursor < len(v.list) {
		return v.list[v.table.cursor], true
	}
	return sources.Run{}, false
}

// take lists the runs of what is selected, and keeps the cursor on its run.
func (v *runnerDetail) take() {
	v.from.arrange()
	was := ""
	if v.table.cursor < len(v.list) {
		was = v.list[v.table.cursor].WorkflowID
	}
	key := strconv.Itoa(v.from.list.cursor.part) + v.from.keyOf(v.from.data, v.from.list.cursor)
	if key != v.key {
		v.key, v.table.cursor, was = key, 0, ""
	}
	v.list = v.from.runsHere()
	v.table.setRows(len(v.list))
	for i, r := range v.list {
		if r.WorkflowID == was {
			v.table.scroll(i - v.table.cursor)
		}
	}
}

// runsHere are the runs of the runner under the cursor, or those that wait in the queue.
func (v *runners) runsHere() []sources.Run {
	if r, ok := v.runner(); ok {
		if v.data.Wanted != r.ID {
			return nil
		}
		return v.data.Runs
	}
	var list []sources.Run
	if q, ok := v.queue(); ok {
		for _, w := range v.view().Pending {
			if demandsText(w.Demands) == demandsText(q.Demands) {
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
	w := &writer{doc: &v.doc, s: v.styles, width: v.width, now: now, loc: v.Location}
	title := v.facts(w)
	if title == "" {
		return centre([]string{"nothing is selected"}, v.width, v.height, v.styles)
	}
	lines := w.lines[:min(len(w.lines), max(v.height-min(len(v.list)+3, v.height/2), 1))]
	rest := v.height - len(lines) - 1
	if rest < 2 {
		return fill(lines, v.width, v.height)
	}
	lines = append(lines, ruleLine(title, v.remark(), v.width, v.styles, focused))
	v.table.setSize(v.width, rest)
	if len(v.list) == 0 {
		return fill(append(lines, centre([]string{v.none()}, v.width, rest, v.styles)...), v.width, v.height)
	}
	return append(lines, v.table.draw(v.styles, focused, func(i int) []cell { return v.cells(v.list[i], now) })...)
}

func ruleLine(title, remark string, width int, s theme.Styles, active bool) string {
	l := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	l.Add(s.Border, s.Glyphs.Plain.Top+" ").Add(unless(active, s.Title, s.Strong), title+" ")
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
func (v *runnerDetail) facts(w *writer) string {
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

func (w *writer) fact(label string, ink theme.Ink, value string) {
	if value != "" {
		w.prose(" "+text.Fit(label, 11, ""), ink, value)
	}
}

func (v *runnerDetail) runnerFacts(w *writer, r sources.RunnerView) {
	s, c := v.styles, r.Capabilities
	m := runnerMark(r.Status, s)
	w.prose(" ", s.Strong, r.ID)
	w.fact("status", m.Ink, m.Glyph+" "+m.Word+" for "+text.Span(w.now.Sub(r.Since)))
	if r.Status == sources.RunnerStale {
		w.fact("", s.Warning, "nothing was heard of it; it gets no runs until it is back")
	}
	w.fact("slots", s.Text, strconv.Itoa(r.Busy)+" of "+strconv.Itoa(c.Slots)+" busy, "+text.Count(r.Done)+" runs done")
	w.fact("executors", s.Text, strings.Join(c.ExecutorTypes, ", "))
	w.fact("tags", s.Text, orDash(strings.Join(c.Tags, ", "), s.Glyphs))
	w.fact("host", s.Text, c.Hostname)
	if c.AnyProject {
		w.fact("directory", s.Text, c.ProjectDir+", or any other that a run names")
	} else {
		w.fact("directory", s.Text, c.ProjectDir)
	}
	process := ""
	if r.PID > 0 {
		process = strconv.Itoa(r.PID)
	}
	w.fact("process", s.Muted, process)
	w.fact("version", s.Muted, r.Version)
	w.fact("epoch", s.Muted, strconv.FormatInt(r.Epoch, 10))
}

func (v *runnerDetail) queueFacts(w *writer, q sources.RunQueue) {
	s := v.styles
	w.prose(" ", s.Strong, demandsText(q.Demands))
	w.fact("waiting", s.Text, howMany(q.Waiting, "run")+", the oldest for "+v.from.oldest(q, w.now))
	if q.Able > 0 {
		w.fact("able", s.Text, howMany(q.Able, "runner")+" could take them, and have no slot free")
		return
	}
	w.fact("able", s.Error, s.Glyphs.Failed+" no runner that is there")
	w.fact("nearest", s.Warning, q.Nearest)
	w.fact("do", s.Accent, "acescope runner start "+startFlags(q.Demands))
}

// startFlags are the flags of a runner that meets demands.
func startFlags(d sources.RunDemands) string {
	var parts []string
	if len(d.Tags) > 0 {
		parts = append(parts, "--tags "+sources.ShellWord(strings.Join(d.Tags, ",")))
	}
	if d.ProjectDir != "" {
		parts = append(parts, "--project-dir "+sources.ShellWord(d.ProjectDir))
	}
	if d.ExecutorType != "" {
		parts = append(parts, "--executor "+sources.ShellWord(d.ExecutorType))
	}
	said := strings.Join(parts, " ")
	if d.Hostname != "" {
		said += "   on " + d.Hostname
	}
	return strings.TrimSpace(said)
}

func (v *runnerDetail) waitingFacts(w *writer, p sources.WaitingRun) {
	s := v.styles
	w.prose(" ", s.Strong, orDash(p.Name, s.Glyphs)+" "+p.RunID)
	w.fact("waits", s.Text, "for "+text.Span(w.now.Sub(p.Since)))
	w.fact("limit", deadlineInk(p.Deadline, w.now, s), deadlineText(p.Deadline, w.now))
	w.fact("demands", s.Text, demandsText(p.Demands))
	w.fact("parent", s.Text, p.Parent)
	for _, q := range v.from.view().Queues {
		if demandsText(q.Demands) == demandsText(p.Demands) && q.Able == 0 {
			w.fact("able", s.Error, s.Glyphs.Failed+" no runner that is there")
			w.fact("nearest", s.Warning, q.Nearest)
		}
	}
}

func (v *runnerDetail) cells(r sources.Run, now time.Time) []cell {
	s := v.styles
	m := courseMark(r, s)
	age, took := s.Glyphs.Dash, s.Glyphs.Dash
	if !r.Start.IsZero() {
		age, took = text.Span(now.Sub(r.Start)), tookOf(r, now)
	}
	return []cell{{m.Glyph + " " + m.Word, m.Ink}, {orDash(r.Blueprint, s.Glyphs), s.Text}, {orDash(sources.BlueprintRunID(r.WorkflowID), s.Glyphs), s.Muted},
		{age, s.Muted}, {took, s.Muted}}
}
