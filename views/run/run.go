// Package run is the screen of one run: its rows, the inspector beside them and the detail pane of the list.
package run

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// run is the detail of the selected run: a strip of its phases, then two panels that
// scroll, what is known of it and its log.
type run struct {
	*console.Console
	feed          console.Value[*histories.Detail]
	styles        theme.Styles
	width, height int
	detail        *histories.Detail // of the selected run, or nil
	facts         widget.Panel
	log           logPanel
	onLog         bool // the log has the keys
	doc           widget.Document
}

func NewRun(c *console.Console, feed console.Value[*histories.Detail]) *run {
	return &run{Console: c, feed: feed}
}

func (v *run) Name() string { return "Run" }

func (v *run) Title() string {
	if !v.Selected.Ok {
		return "Run"
	}
	return text.Safe(v.Selected.Run.WorkflowID, " ")
}

// Footer is where the knowledge comes from, and how much of it there is.
func (v *run) Footer() string {
	if v.detail == nil {
		return ""
	}
	g := v.styles.Glyphs
	return string(v.detail.From) + " " + g.Dot + " " + text.Count(v.detail.Events) + " events"
}

func (v *run) Bindings() []tui.Binding {
	return append(widget.Motions("run", v), tui.Binding{
		Action: "run.panel", Keys: []string{"l"}, Help: "go between facts and log", Short: "facts/log",
		Do: func(tui.Shell) tea.Cmd { v.onLog = !v.onLog; return nil },
	}, tui.Binding{
		Action: "run.whole", Keys: []string{"enter", "o"}, Help: "open the run, whole, on its own screen", Short: "whole run",
		Do: func(s tui.Shell) tea.Cmd { s.Open("run"); return nil },
	})
}

// Copy is the workflow id of the run.
func (v *run) Copy() (what, text string) {
	if !v.Selected.Ok {
		return "", ""
	}
	return "workflow id", v.Selected.Run.WorkflowID
}

// Update goes to a run that was started from here.
func (v *run) Update(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(console.Started); ok {
		v.Show(m.Run)
	}
	return nil
}

// Commands are those for what is done to the selected run.
func (v *run) Commands() []tui.Command { return v.MutationCommands() }

func (v *run) SetStyles(s theme.Styles) {
	v.styles = s
	v.doc.Clear()
}

func (v *run) SetSize(width, height int) { v.width, v.height = width, height }

// Refresh takes the detail if it is the selected run's; one of a run that was
// selected before is not shown under the wrong name.
func (v *run) Refresh() {
	d := v.feed.Value()
	if d != nil && !v.Selected.Is(d.WorkflowID, d.RunID) {
		d = nil
	}
	v.detail = d
}

// current is the detail if it still belongs to the selected run; the cursor may have
// moved since the last snapshot. Another run starts at its top.
func (v *run) current() *histories.Detail {
	if d := v.detail; d != nil && v.Selected.Is(d.WorkflowID, d.RunID) {
		if !of(&v.doc, d) {
			v.facts.Top, v.log = 0, logPanel{}
			v.doc.Clear()
			v.doc.WorkflowID, v.doc.RunID = d.WorkflowID, d.RunID
		}
		return d
	}
	return nil
}

func (v *run) Page() int {
	if v.onLog {
		return max(v.log.height, 1)
	}
	return max(v.facts.Height, 1)
}

func (v *run) Scroll(by int) {
	if v.onLog {
		v.log.Scroll(by, v.detail)
		return
	}
	v.facts.Scroll(by)
}

func (v *run) Draw(now time.Time, focused bool) []string {
	v.Following = v.Following && !focused
	d := v.current()
	if d == nil {
		return widget.Centre(nothing(v.Console, v.styles.Glyphs), v.width, v.height, v.styles)
	}
	now = d.Clock(now)
	lines := append(make([]string, 0, v.height), stripLine(d, v.width, now, v.styles), summaryLine(d, v.width, now, v.styles))
	facts := build(&v.doc, d, v.width, now, v.styles, v.Location)
	rest := max(v.height-len(lines)-2, 0)
	v.split(rest, len(facts), len(d.Log))
	lines = append(lines, v.rule("Facts", Position(&v.facts), focused && !v.onLog))
	lines = append(lines, widget.Fill(append([]string(nil), facts[v.facts.Top:min(v.facts.Top+v.facts.Height, len(facts))]...), v.width, v.facts.Height)...)
	lines = append(lines, v.rule("Log", v.log.state(d), focused && v.onLog))
	lines = append(lines, v.log.draw(d, v.width, v.styles, v.Location)...)
	return widget.Fill(lines, v.width, v.height)
}

// split shares the room: the panel that has the keys gets more, and none more than it
// can fill while the other needs it.
func (v *run) split(rest, facts, log int) {
	share := rest * 2 / 3
	if v.onLog {
		share = rest / 3
	}
	v.facts.Height = min(facts, max(share, rest-log))
	v.log.height = rest - v.facts.Height
	v.facts.Lines = facts
	v.facts.Scroll(0)
}

// Position is which lines are visible, "" where all of them are.
func Position(p *widget.Panel) string {
	if p.Lines <= p.Height {
		return ""
	}
	return text.Count(int64(p.Top+1)) + "-" + text.Count(int64(min(p.Top+p.Height, p.Lines))) + " of " + text.Count(int64(p.Lines))
}

// rule is the heading of a panel.
func (v *run) rule(title, state string, active bool) string {
	s := v.styles
	l := text.Line{Max: v.width, Tail: s.Glyphs.Ellipsis}
	ink, mark := s.Strong, s.Glyphs.Plain.Top
	if active {
		ink, mark = s.Title, s.Glyphs.Pointer
	}
	l.Add(s.Border, mark+" ").Add(ink, title+" ")
	if state != "" {
		l.Add(s.Muted, s.Glyphs.Dot+" "+state+" ")
	}
	l.Add(s.Border, strings.Repeat(s.Glyphs.Plain.Top, max(l.Room(), 0)))
	return l.String(s.Border)
}

// summaryLine is the run in a line: status, time, tokens, cost and the model.
func summaryLine(d *histories.Detail, width int, now time.Time, s theme.Styles) string {
	g := s.Glyphs
	m := s.Status(string(d.Phase.ExitStatus))
	l := text.Line{Max: width, Tail: g.Ellipsis}
	l.Add(m.Ink, " "+m.Glyph+" "+console.OrDash(m.Word, g))
	if d.Phase.CancelRequested && d.Close.IsZero() {
		l.Add(s.Warning, ", asked to cancel")
	}
	sep := "  " + g.Dot + "  "
	if !d.Start.IsZero() {
		l.Add(s.Muted, sep+console.TookOf(runs.Run{Start: d.Start, Close: d.Close}, now))
	}
	u := d.Phase.Usage
	if d.Experiment != nil {
		u = d.Experiment.Usage
	}
	if n := u.InputTokens + u.OutputTokens; n > 0 {
		l.Add(s.Muted, sep+text.Count(n)+" tokens")
	}
	if u != (ace.Usage{}) {
		l.Add(s.Muted, sep+console.CostCell(u, g))
	}
	if d.Input.Model != "" {
		l.Add(s.Muted, sep+text.Safe(d.Input.Model, " "))
	}
	return l.String(s.Text)
}
