package runners

import (
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// detail shows the runner, queue or run under the cursor of the list, and its runs below.
type detail struct {
	from *list
	console.Pane
	doc   widget.Document
	table *widget.Table
	key   string // of the shown row, with its section
	list  []runs.Run
}

func newDetail(from *list) *detail {
	return &detail{Pane: console.NewPane("Runner"), from: from, table: widget.NewTable(
		widget.Heading{Title: "STATUS", Width: 11},
		widget.Heading{Title: "BLUEPRINT", Minimum: 12},
		widget.Heading{Title: "RUN", Width: 17, Drop: 1},
		widget.Heading{Title: "AGE", Width: 5, Right: true},
		widget.Heading{Title: "DURATION", Width: 8, Right: true, Drop: 2},
	)}
}

func (v *detail) Title() string  { return "Selected" }
func (v *detail) Footer() string { return v.table.Position() }

func (v *detail) Bindings() []tui.Binding {
	all := append(widget.Motions("runner", v), console.Key("runner.open", "open the run under the cursor",
		"open", v.open, "enter"))
	return append(all, v.from.runnerActions("runner", v.run)...)
}

func (v *detail) open(s tui.Shell) tea.Cmd {
	return v.from.nav.OpenAt(s, v.run)
}

func (v *detail) Page() int { return v.table.Page() }

func (v *detail) SetStyles(s theme.Styles) {
	v.Styles = s
	v.doc.Clear()
}

func (v *detail) Scroll(by int) {
	v.sync()
	v.table.Scroll(by)
}

func (v *detail) Copy() (what, copied string) {
	if r, ok := v.run(); ok {
		return "run ID", run.IDOf(r.WorkflowID)
	}
	return v.from.Copy()
}

// run returns the run under the cursor.
func (v *detail) run() (runs.Run, bool) {
	v.sync()
	if v.table.Cursor < len(v.list) {
		return v.list[v.table.Cursor], true
	}
	return runs.Run{}, false
}

// sync lists the runs of the selected row and keeps the cursor on its run.
func (v *detail) sync() {
	was := ""
	if v.table.Cursor < len(v.list) {
		was = v.list[v.table.Cursor].WorkflowID
	}
	key := v.from.list.Section()
	selected := v.from.selected()
	if selected != nil {
		key += selected.key()
	}
	if key != v.key {
		v.key, v.table.Cursor, was = key, 0, ""
	}
	v.list = nil
	if selected != nil {
		v.list = selected.runs(v.from)
	}
	v.table.SetRows(len(v.list))
	for i, r := range v.list {
		if r.WorkflowID == was {
			v.table.Scroll(i - v.table.Cursor)
		}
	}
}

func (r runnerRow) runs(v *list) []runs.Run {
	if v.data.Wanted != r.ID {
		return nil
	}
	return v.data.Runs
}

func (r queueRow) runs(v *list) (list []runs.Run) {
	for _, w := range v.view().Pending {
		if requirementsText(w.Requirements) == r.key() {
			list = append(list, waitingRun(w))
		}
	}
	return list
}

func (r waitingRow) runs(*list) []runs.Run { return []runs.Run{waitingRun(r.PendingView)} }

func (v *detail) Draw(now time.Time, focused bool) []string {
	v.sync()
	selected := v.from.selected()
	if selected == nil {
		return v.Message(nil, "no row is selected")
	}
	w := &widget.Writer{Doc: &v.doc, S: v.Styles, Width: v.Width, Now: now, Loc: v.from.location, Labels: 11}
	title := selected.facts(v, w)
	lines := w.Lines[:min(len(w.Lines), max(v.Height-min(len(v.list)+3, v.Height/2), 1))]
	rest := v.Height - len(lines) - 1
	if rest < 2 {
		return widget.Fill(lines, v.Width, v.Height)
	}
	ink := widget.If(focused, v.Styles.Title, v.Styles.Strong)
	lines = append(lines, v.Rule(v.Styles.Glyphs.Plain.Top, ink, title, v.remark()))
	v.table.SetSize(v.Width, rest)
	if len(v.list) == 0 {
		return v.Message(lines, v.empty())
	}
	return append(lines, v.table.Draw(v.Styles, focused, func(i int) []widget.Cell {
		return v.cells(v.list[i], now)
	})...)
}

func (v *detail) remark() string {
	d := v.from.data
	if _, ok := v.from.selected().(runnerRow); !ok {
		return ""
	}
	switch {
	case d.RunsErr != "":
		return "not read: " + text.Safe(d.RunsErr, " ")
	case d.More:
		return "the newest " + ace.Number(len(v.list))
	}
	return ""
}

func (v *detail) empty() string {
	if r, ok := v.from.selected().(runnerRow); ok && v.from.data.Wanted != r.ID {
		return "reading" + v.Styles.Glyphs.Ellipsis
	}
	return "no runs"
}

func (r runnerRow) facts(v *detail, w *widget.Writer) string {
	s, c := v.Styles, r.Capabilities
	m := runnerMark(r.Status, s)
	w.Prose(" ", s.Strong, r.ID)
	w.Fact("status", m.Ink, m.Glyph+" "+m.Word+" for "+text.Span(w.Now.Sub(r.Since)))
	if r.Status == runner.Stale {
		w.Fact("", s.Warning, "no heartbeat; it gets no runs until it is back")
	}
	w.Fact("slots", s.Text, strconv.Itoa(r.Busy)+" of "+strconv.Itoa(c.Slots)+" busy, "+
		ace.Count(r.Done, "run")+" done")
	w.Fact("executors", s.Text, strings.Join(c.ExecutorTypes, ", "))
	w.Fact("tags", s.Text, console.OrDash(strings.Join(c.Tags, ", "), s.Glyphs))
	w.Fact("host", s.Text, c.Hostname)
	w.Fact("directory", s.Text, c.ProjectDir+widget.If(c.AnyProject, ", or any that a run names", ""))
	w.Fact("process", s.Muted, widget.If(r.PID > 0, strconv.Itoa(r.PID), ""))
	w.Fact("version", s.Muted, r.Version)
	w.Fact("epoch", s.Muted, strconv.FormatInt(r.Epoch, 10))
	return "Runs"
}

func (q queueRow) facts(v *detail, w *widget.Writer) string {
	s := v.Styles
	w.Prose(" ", s.Strong, requirementsText(q.Requirements))
	w.Fact("waiting", s.Text, ace.Count(q.Waiting, "run")+", the oldest for "+
		v.from.oldest(q.QueueView, w.Now))
	if q.Able > 0 {
		w.Fact("matching", s.Text, ace.Count(q.Able, "runner")+" without a free slot")
		return "Waiting runs"
	}
	w.Fact("matching", s.Error, s.Glyphs.Failed+" no runner")
	w.Fact("nearest", s.Warning, q.Nearest)
	w.Fact("fix", s.Accent, startCommand(v.from.nav, q.Requirements))
	return "Waiting runs"
}

// startCommand returns the command that starts a runner that meets requirements.
func startCommand(nav *console.Navigation, d runner.Requirements) string {
	words := []string{"runner", "start"}
	if len(d.Tags) > 0 {
		words = append(words, "--tags", strings.Join(d.Tags, ","))
	}
	if d.ProjectDir != "" {
		words = append(words, "--project-dir", d.ProjectDir)
	}
	if d.ExecutorType != "" {
		words = append(words, "--executor", d.ExecutorType)
	}
	return nav.Command(words...) + widget.If(d.Hostname != "", "   on "+d.Hostname, "")
}

func (p waitingRow) facts(v *detail, w *widget.Writer) string {
	s := v.Styles
	w.Prose(" ", s.Strong, console.OrDash(p.Name, s.Glyphs)+" "+p.RunID)
	w.Fact("waits", s.Text, "for "+text.Span(w.Now.Sub(p.Since)))
	w.Fact("limit", deadlineInk(p.Deadline, w.Now, s), deadlineText(p.Deadline, w.Now))
	w.Fact("requires", s.Text, requirementsText(p.Requirements))
	w.Fact("parent", s.Text, p.Parent)
	for _, q := range v.from.view().Queues {
		if requirementsText(q.Requirements) == requirementsText(p.Requirements) && q.Able == 0 {
			w.Fact("matching", s.Error, s.Glyphs.Failed+" no runner")
			w.Fact("nearest", s.Warning, q.Nearest)
		}
	}
	return "Run"
}

func (v *detail) cells(r runs.Run, now time.Time) []widget.Cell {
	s := v.Styles
	m := console.BlueprintMarkOf(r, s)
	age, duration := s.Glyphs.Dash, s.Glyphs.Dash
	if !r.Start.IsZero() {
		age, duration = text.Span(now.Sub(r.Start)), console.DurationOf(r, now)
	}
	return []widget.Cell{{m.Glyph + " " + m.Word, m.Ink}, {console.OrDash(r.Blueprint, s.Glyphs), s.Text},
		{console.OrDash(run.IDOf(r.WorkflowID), s.Glyphs), s.Muted},
		{age, s.Muted}, {duration, s.Muted}}
}
