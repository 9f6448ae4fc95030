package views

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// run is the detail of the selected run: a strip of its phases, then two panels that
// scroll, what is known of it and its log.
type run struct {
	*console
	styles        theme.Styles
	width, height int
	detail        *sources.Detail // of the selected run, or nil
	facts         panel
	log           logPanel
	onLog         bool // the log has the keys
	doc           document
}

// panel is a window on lines; top is the first visible one.
type panel struct{ top, lines, height int }

func (p *panel) scroll(by int) { p.top = clamp(p.top+by, 0, max(p.lines-p.height, 0)) }

func newRun(c *console) *run { return &run{console: c} }

func (v *run) Name() string { return "Run" }

func (v *run) Title() string {
	if !v.selected.ok {
		return "Run"
	}
	return text.Safe(v.selected.run.WorkflowID, " ")
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
	return append(motions("run", v), tui.Binding{
		Action: "run.panel", Keys: []string{"l"}, Help: "go between facts and log", Short: "facts/log",
		Do: func(tui.Shell) tea.Cmd { v.onLog = !v.onLog; return nil },
	}, tui.Binding{
		Action: "run.whole", Keys: []string{"enter", "o"}, Help: "open the run, whole, on its own screen", Short: "whole run",
		Do: func(s tui.Shell) tea.Cmd { s.Open("run"); return nil },
	})
}

// Copy is the workflow id of the run.
func (v *run) Copy() (what, text string) {
	if !v.selected.ok {
		return "", ""
	}
	return "workflow id", v.selected.run.WorkflowID
}

// Update goes to a run that was started from here.
func (v *run) Update(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(anewMsg); ok {
		v.show(m.run)
		v.Controls.Refresh()
	}
	return nil
}

// Commands are those for what is done to the selected run.
func (v *run) Commands() []tui.Command { return v.mutationCommands() }

func (v *run) SetShown(bool) {}

func (v *run) SetStyles(s theme.Styles) {
	v.styles = s
	v.doc.clear()
}

func (v *run) SetSize(width, height int) { v.width, v.height = width, height }

// SetSnapshot takes the detail if it is the selected run's; one of a run that was
// selected before is not shown under the wrong name.
func (v *run) SetSnapshot(s *sources.Snapshot) {
	d := s.Detail
	if d != nil && !v.selected.is(d.WorkflowID, d.RunID) {
		d = nil
	}
	v.detail = d
}

// current is the detail if it still belongs to the selected run; the cursor may have
// moved since the last snapshot. Another run starts at its top.
func (v *run) current() *sources.Detail {
	if d := v.detail; d != nil && v.selected.is(d.WorkflowID, d.RunID) {
		if !v.doc.of(d) {
			v.facts.top, v.log = 0, logPanel{}
			v.doc.clear()
			v.doc.workflowID, v.doc.runID = d.WorkflowID, d.RunID
		}
		return d
	}
	return nil
}

func (v *run) page() int {
	if v.onLog {
		return max(v.log.height, 1)
	}
	return max(v.facts.height, 1)
}

func (v *run) scroll(by int) {
	if v.onLog {
		v.log.scroll(by, v.detail)
		return
	}
	v.facts.scroll(by)
}

func (v *run) Draw(now time.Time, focused bool) []string {
	v.following = v.following && !focused
	d := v.current()
	if d == nil {
		return centre(nothing(v.console, v.styles.Glyphs), v.width, v.height, v.styles)
	}
	now = d.Clock(now)
	lines := append(make([]string, 0, v.height), stripLine(d, v.width, now, v.styles), summaryLine(d, v.width, now, v.styles))
	facts := v.doc.build(d, v.width, now, v.styles, v.Location)
	rest := max(v.height-len(lines)-2, 0)
	v.split(rest, len(facts), len(d.Log))
	lines = append(lines, v.rule("Facts", v.facts.position(), focused && !v.onLog))
	lines = append(lines, fill(append([]string(nil), facts[v.facts.top:min(v.facts.top+v.facts.height, len(facts))]...), v.width, v.facts.height)...)
	lines = append(lines, v.rule("Log", v.log.state(d), focused && v.onLog))
	lines = append(lines, v.log.draw(d, v.width, v.styles, v.Location)...)
	return fill(lines, v.width, v.height)
}

// split shares the room: the panel that has the keys gets more, and none more than it
// can fill while the other needs it.
func (v *run) split(rest, facts, log int) {
	share := rest * 2 / 3
	if v.onLog {
		share = rest / 3
	}
	v.facts.height = min(facts, max(share, rest-log))
	v.log.height = rest - v.facts.height
	v.facts.lines = facts
	v.facts.scroll(0)
}

// position is which lines are visible, "" where all of them are.
func (p *panel) position() string {
	if p.lines <= p.height {
		return ""
	}
	return text.Count(int64(p.top+1)) + "-" + text.Count(int64(min(p.top+p.height, p.lines))) + " of " + text.Count(int64(p.lines))
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
func summaryLine(d *sources.Detail, width int, now time.Time, s theme.Styles) string {
	g := s.Glyphs
	m := s.Status(string(d.Phase.ExitStatus))
	l := text.Line{Max: width, Tail: g.Ellipsis}
	l.Add(m.Ink, " "+m.Glyph+" "+orDash(m.Word, g))
	if d.Phase.CancelRequested && d.Close.IsZero() {
		l.Add(s.Warning, ", asked to cancel")
	}
	sep := "  " + g.Dot + "  "
	if !d.Start.IsZero() {
		l.Add(s.Muted, sep+tookOf(sources.Run{Start: d.Start, Close: d.Close}, now))
	}
	u := d.Phase.Usage
	if d.Experiment != nil {
		u = d.Experiment.Usage
	}
	if n := u.InputTokens + u.OutputTokens; n > 0 {
		l.Add(s.Muted, sep+text.Count(n)+" tokens")
	}
	if u != (ace.Usage{}) {
		l.Add(s.Muted, sep+costCell(u, g))
	}
	if d.Input.Model != "" {
		l.Add(s.Muted, sep+text.Safe(d.Input.Model, " "))
	}
	return l.String(s.Text)
}
