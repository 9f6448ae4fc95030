// Package run is the screen of one run: the outline, which lists it row by row, the inspector of the
// selected row, and the detail pane of the list of runs. All three draw the sections in rows.go.
package run

import (
	"slices"
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

// run is the detail pane of the selected run: its header, then two panels that scroll, facts and log.
type run struct {
	nav      *console.Navigation
	listing  *console.Listing
	forks    *console.Forks
	location *time.Location
	feed     console.Value[*histories.Detail]
	console.Pane

	detail *histories.Detail // of the selected run, or nil
	facts  widget.Panel
	log    logPanel
	onLog  bool // keys go to the log
	doc    widget.Document
}

func NewRun(c *console.Console, feed console.Value[*histories.Detail]) *run {
	return &run{Pane: console.NewPane("Run"), nav: c.Navigation, listing: c.Listing, forks: c.Forks,
		location: c.Location, feed: feed}
}

func (v *run) Title() string { return title(v.nav) }

// title returns the workflow ID of the selected run.
func title(c *console.Navigation) string {
	return widget.If(!c.Selected.Ok, "Run", text.Safe(c.Selected.Run.WorkflowID, " "))
}

func (v *run) Footer() string {
	if v.detail == nil {
		return ""
	}
	return origin(v.detail, v.Styles.Glyphs)
}

// origin returns the number of events of a run, and whether its worker answered.
func origin(d *histories.Detail, g theme.Glyphs) string {
	events := ace.Count(d.Events, "event")
	return widget.If(d.From == runs.FromQuery, string(d.From)+" "+g.Dot+" "+events, events)
}

func (v *run) Bindings() []tui.Binding {
	return append(widget.Motions("run", v),
		console.Key("run.mode", "switch between facts and log", "facts/log", func() { v.onLog = !v.onLog },
			"m"),
		console.Key("run.whole", "open the run on its own screen", "open",
			func(s tui.Shell) { s.Open("run") }, "enter"))
}

func (v *run) Copy() (what, text string) {
	return "workflow id", v.nav.Selected.Run.WorkflowID
}

func (v *run) Copies() []tui.Copy { return v.nav.SelectedCopies() }

// Update goes to a run that was started from this pane.
func (v *run) Update(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(console.Started); ok {
		v.nav.Show(m.Run)
	}
	return nil
}

func (v *run) Commands() []tui.Command { return v.forks.MutationCommands() }

func (v *run) SetStyles(s theme.Styles) {
	v.Styles = s
	v.doc.Clear()
}

// Refresh takes the detail if it belongs to the selected run.
func (v *run) Refresh() {
	d := v.feed.Value()
	if d != nil && !v.nav.Selected.Is(d.WorkflowID, d.RunID) {
		d = nil
	}
	v.detail = d
}

// current returns the detail if it still belongs to the selected run: the cursor may have moved since
// the last snapshot. Another run starts at its top.
func (v *run) current() *histories.Detail {
	if d := v.detail; d != nil && v.nav.Selected.Is(d.WorkflowID, d.RunID) {
		if v.doc.WorkflowID != d.WorkflowID || v.doc.RunID != d.RunID {
			v.facts.Top, v.log = 0, logPanel{}
			v.doc.Clear()
			v.doc.WorkflowID, v.doc.RunID = d.WorkflowID, d.RunID
		}
		_, d = histories.Reconcile(v.nav.Selected.Run, d)
		return d
	}
	return nil
}

func (v *run) Page() int {
	return widget.If(v.onLog, max(v.log.height, 1), max(v.facts.Height, 1))
}

func (v *run) Scroll(by int) {
	if v.onLog {
		v.log.Scroll(by, v.detail)
		return
	}
	v.facts.Scroll(by)
}

func (v *run) Draw(now time.Time, focused bool) []string {
	v.nav.Following = v.nav.Following && !focused
	d := v.current()
	if d == nil {
		return v.Message(nil, emptyLines(v.nav, v.listing, v.Styles.Glyphs)...)
	}
	now = d.Clock(now)
	lines := header(d, v.Width, now, v.Styles)
	facts := v.build(d, now)
	rest := max(v.Height-len(lines)-2, 0)
	v.split(rest, len(facts), len(d.Log))
	lines = append(lines, v.rule("Facts", v.facts.Position(), focused && !v.onLog))
	shown := slices.Clone(facts[v.facts.Top:min(v.facts.Top+v.facts.Height, len(facts))])
	lines = append(lines, widget.Fill(shown, v.Width, v.facts.Height)...)
	lines = append(lines, v.rule("Log", v.log.state(d), focused && v.onLog))
	lines = append(lines, v.log.draw(d, v.Width, v.Styles, v.location)...)
	return widget.Fill(lines, v.Width, v.Height)
}

// maxPaneLines bounds the lines of one row in the detail pane. The run screen shows all of them.
const maxPaneLines = 12

// build returns the facts of a run. It writes them again if the detail, the width or the second changed.
func (v *run) build(d *histories.Detail, now time.Time) []string {
	doc := &v.doc
	if second := now.Unix(); doc.Of != d || doc.Width != v.Width || doc.Second != second {
		w := &widget.Writer{Doc: doc, S: v.Styles, Width: v.Width, Now: now, Loc: v.location}
		for _, p := range partsOf(d) {
			if p.pane() != noRows {
				writePart(w, p, d, p.pane(), maxPaneLines)
			}
		}
		doc.Of, doc.Width, doc.Second, doc.Lines = d, v.Width, second, w.Lines
	}
	return doc.Lines
}

// split divides the height between the panels. The panel with the focus gets more lines, but no more
// than it can fill if the other one needs them.
func (v *run) split(rest, facts, log int) {
	share := widget.If(v.onLog, rest/3, rest*2/3)
	v.facts.Height = min(facts, max(share, rest-log))
	v.log.height = rest - v.facts.Height
	v.facts.Lines = facts
	v.facts.Scroll(0)
}

// rule returns the heading of a panel.
func (v *run) rule(title, state string, active bool) string {
	if s := v.Styles; active {
		return v.Rule(s.Glyphs.Pointer, s.Title, title, state)
	}
	return v.Rule(v.Styles.Glyphs.Plain.Top, v.Styles.Strong, title, state)
}

// logPanel is a window on the log of a run. It follows the end until the user scrolls up. Then it stays
// on its lines, even when older ones are dropped.
type logPanel struct {
	away   bool // scrolled up
	top    int  // number of the first visible line, counted from the start of the log
	height int
}

func (p *logPanel) Scroll(by int, d *histories.Detail) {
	if d == nil {
		return
	}
	first, end := p.window(d)
	oldest, last := d.LogDropped, d.LogDropped+len(d.Log)
	p.top = widget.Clamp(first+by, oldest, max(last-p.height, oldest))
	p.away = p.top+(end-first) < last
}

// window returns the number of the first visible line and that of the line after the last visible one.
func (p *logPanel) window(d *histories.Detail) (int, int) {
	oldest, last := d.LogDropped, d.LogDropped+len(d.Log)
	top := max(last-p.height, oldest)
	if p.away {
		top = widget.Clamp(p.top, oldest, top)
	}
	return top, min(top+p.height, last)
}

// state returns whether the log follows the run, and how many lines were dropped.
func (p *logPanel) state(d *histories.Detail) string {
	summary := widget.If(!d.Close.IsZero(), "complete", "following")
	if p.away {
		_, end := p.window(d)
		summary = ace.Number(d.LogDropped+len(d.Log)-end) + " below, G follows"
	}
	return summary + ", " + ace.Number(d.LogDropped) + " dropped"
}

func (p *logPanel) draw(d *histories.Detail, width int, s theme.Styles, loc *time.Location) []string {
	if len(d.Log) == 0 {
		return widget.Fill([]string{s.Muted.Paint(text.Fit(" no log lines yet", width, ""))}, width, p.height)
	}
	from, to := p.window(d)
	lines := make([]string, 0, p.height)
	for _, l := range d.Log[from-d.LogDropped : to-d.LogDropped] {
		lines = append(lines, logLine(l, width, s, loc))
	}
	return widget.Fill(lines, width, p.height)
}

func logLine(l runs.LogLine, width int, s theme.Styles, loc *time.Location) string {
	out := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	out.Add(s.Muted, clock(l.At, loc)+" ").Add(kindInk(l.Kind, s), text.Fit(text.Safe(l.Kind, " "), 7, ""))
	ink := widget.If(l.Kind != "error", s.Text, s.Error)
	out.Add(ink, text.Safe(widget.Bounded(l.Text, width), " "+s.Glyphs.Newline+" "))
	return out.String(s.Text)
}

func kindInk(kind string, s theme.Styles) theme.Ink {
	switch kind {
	case "phase":
		return s.Accent
	case "skill":
		return s.Tagged
	case "delta":
		return s.Added
	case "error":
		return s.Error
	case "status":
		return s.Strong
	case "err":
		return s.Warning
	}
	return s.Muted
}
