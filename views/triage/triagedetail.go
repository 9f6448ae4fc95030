package triage

import (
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/sources/triage"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
	"acescope/views/run"
)

// triageDetail is what is known of the row that the triage's cursor is on.
type triageDetail struct {
	nav           *console.Navigation
	actor         *console.Actor
	controls      console.Controls
	location      *time.Location
	from          *triageList
	styles        theme.Styles
	width, height int
	reader        run.RunReader
	doc           widget.Document

	key    string // of the item that the lines are of
	data   *triage.Triage
	second int64
	wide   int
}

func NewTriageDetail(c *console.Console, from *triageList) *triageDetail {
	return &triageDetail{nav: c.Navigation, actor: c.Actor, controls: c.Controls, location: c.Location, from: from}
}

func (v *triageDetail) Name() string { return "Finding" }

func (v *triageDetail) Title() string { return "Finding" }

func (v *triageDetail) Footer() string { return v.reader.Position() }

func (v *triageDetail) Bindings() []tui.Binding {
	return append(widget.Motions("finding", &v.reader),
		tui.Binding{Action: "finding.open", Keys: []string{"enter"}, Help: "open the run under the cursor", Short: "open", Do: v.open},
		tui.Binding{Action: "finding.runs", Keys: []string{"F"}, Help: "list the runs of the group", Short: "list its runs", Do: v.from.filter})
}

func (v *triageDetail) SetStyles(s theme.Styles) {
	v.styles = s
	v.data = nil
}

func (v *triageDetail) SetSize(width, height int) { v.width, v.height = width, height }

func (v *triageDetail) Refresh() {}

// Copy is what the row of the list stands for.
func (v *triageDetail) Copy() (what, copied string) {
	if r, ok := v.reader.Selected(); ok {
		return "the workflow id", r.WorkflowID
	}
	return v.from.Copy()
}

func (v *triageDetail) open(s tui.Shell) tea.Cmd {
	r, ok := v.reader.Selected()
	if !ok {
		return v.from.open(s)
	}
	v.nav.Show(r)
	s.Open("run")
	return nil
}

func (v *triageDetail) Draw(now time.Time, focused bool) []string {
	v.from.arrange()
	if v.from.key(v.from.list.Cursor) == "" {
		return widget.Centre([]string{"nothing is selected"}, v.width, v.height, v.styles)
	}
	v.reader.SetSize(v.width, v.height)
	v.build(now)
	return v.reader.Draw(v.styles, focused)
}

// build writes the lines anew where the item, its data, the width or the second changed.
func (v *triageDetail) build(now time.Time) {
	key := strconv.Itoa(v.from.list.Cursor.Part) + v.from.key(v.from.list.Cursor)
	if key == v.key && v.data == v.from.arranged && v.second == now.Unix() && v.wide == v.width {
		return
	}
	anew := key != v.key
	v.key, v.data, v.second, v.wide = key, v.from.arranged, now.Unix(), v.width
	w := &findingWriter{Writer: widget.Writer{Doc: &v.doc, S: v.styles, Width: max(v.width-widget.PointerWidth, 1), Now: now, Loc: v.location}, runs: map[int]runs.Run{}}
	if g, ok := v.from.group(); ok {
		w.group(g, v.data)
	} else if r, ok := v.from.retry(); ok {
		w.retry(r)
	} else if p, ok := v.from.phase(); ok {
		w.phase(p, v.data)
	} else if r, ok := v.from.run(); ok {
		w.run(r)
	}
	v.reader.Set(w.Lines, w.runs, anew)
}

// findingWriter writes a finding, and notes which lines name a run.
type findingWriter struct {
	widget.Writer
	runs map[int]runs.Run
}

// fact is a label and a value; nothing where the value is empty.
func (w *findingWriter) fact(label, value string) {
	if value != "" {
		w.Prose(" "+text.Fit(label, 10, "")+" ", w.S.Text, value)
	}
}

// link is a line that enter opens.
func (w *findingWriter) link(r runs.Run, say string) {
	m := w.S.Status(string(r.Exit))
	w.runs[len(w.Lines)] = r
	w.End(w.Line().Add(m.Ink, " "+m.Glyph+" ").Add(w.S.Text, console.NameOf(r)).Add(w.S.Muted, "  "+say))
}

func (w *findingWriter) title(m theme.Mark, say string) {
	w.End(w.Line().Add(m.Ink, " "+m.Glyph+" "+text.Safe(m.Word, " ")).Add(w.S.Strong, "  "+say))
}

func (w *findingWriter) group(g triage.FailureGroup, t *triage.Triage) {
	w.title(w.S.Status(string(g.Kind)), widget.HowMany(g.Count, "run")+", "+console.Percent(g.Share)+" of what ended")
	w.Prose("   ", w.S.Error, g.Pattern)
	w.Say(w.S.Text, "")
	w.fact("type", g.Type)
	w.fact("phase", string(g.Phase))
	w.fact("activity", g.Activity)
	w.fact("dataset", g.Dataset)
	w.End(w.Line().Add(w.S.Muted, " trend      ").Add(w.S.Accent, widget.Spark(g.Trend, len(g.Trend), w.S.Glyphs)).
		Add(w.S.Muted, "  "+w.clock(t.From)+" "+w.S.Glyphs.Arrow+" "+w.clock(t.To)))
	w.example("Newest", g.Last)
	if g.Count > 1 {
		w.example("Oldest", g.First)
	}
	if g.Kind == ace.Wrong {
		w.Say(w.S.Text, "")
		w.Prose(" ", w.S.Muted, "Wrong answers are grouped by data set and by how their tool calls went, as their summaries say; why stands in the history, which was read of the newest.")
	}
	remark := "enter opens one, F lists them"
	if g.Count > len(g.Runs) {
		remark = "the newest " + text.Count(int64(len(g.Runs))) + " of " + text.Count(int64(g.Count)) + "; " + remark
	}
	w.Section("Runs", remark)
	for _, r := range g.Runs {
		w.link(r, w.clock(r.Close)+"  "+text.Took(r.Age(w.Now)))
	}
}

func (w *findingWriter) clock(at time.Time) string {
	if at.IsZero() {
		return w.S.Glyphs.Dash
	}
	at = at.In(w.Loc)
	if w.Now.Sub(at) < 24*time.Hour {
		return at.Format("15:04:05")
	}
	return at.Format("2006-01-02 15:04")
}

func (w *findingWriter) example(title string, e triage.Example) {
	w.Section(title, w.clock(e.At)+", "+w.Ago(e.At))
	w.link(e.Run, text.Safe(e.Run.Experiment, " "))
	if e.Note != "" {
		w.Prose("   ", w.S.Text, e.Note)
		return
	}
	w.Prose("   ", w.S.Error, e.Message)
}

func (w *findingWriter) retry(r triage.Retrying) {
	attempt := "attempt " + strconv.Itoa(int(r.Attempt))
	if r.MaxAttempts > 0 {
		attempt += " of " + strconv.Itoa(int(r.MaxAttempts))
	}
	w.title(w.S.Retry(), attempt)
	w.link(r.Run, text.Safe(r.Run.Experiment, " "))
	w.Say(w.S.Text, "")
	w.fact("activity", r.Activity)
	w.fact("phase", string(r.Phase))
	w.fact("state", r.State)
	if !r.Since.IsZero() {
		w.fact("since", w.clock(r.Since)+", for "+text.Span(w.Now.Sub(r.Since)))
	}
	if !r.Next.IsZero() {
		w.fact("next", w.clock(r.Next)+", in "+text.Span(r.Next.Sub(w.Now)))
	}
	w.fact("worker", r.Worker)
	w.Section("Last error", text.Safe(r.LastError.Type, " "))
	if r.LastError.Message == "" {
		w.Say(w.S.Muted, "   none is known")
		return
	}
	w.Prose("   ", w.S.Error, r.LastError.Message)
}

func (w *findingWriter) run(r runs.Run) {
	w.title(w.S.Status(string(r.Exit)), text.Took(r.Age(w.Now)))
	w.link(r, "enter opens it")
	w.Say(w.S.Text, "")
	w.fact("workflow", r.WorkflowID)
	w.fact("type", r.Type)
	w.fact("experiment", r.Experiment)
	w.fact("dataset", r.Dataset)
	w.fact("model", r.Model)
	w.fact("ended", w.clock(r.Close)+", "+w.Ago(r.Close))
	if r.Events > 0 {
		w.fact("events", text.Count(r.Events))
	}
	sum := r.Summary
	if sum == nil {
		w.Say(w.S.Muted, " it left no summary: cost, tokens and step times are not known")
		return
	}
	w.fact("cost", console.CostCell(sum.Usage, w.S.Glyphs))
	w.fact("tokens", text.Count(sum.Usage.InputTokens)+" in, "+text.Count(sum.Usage.OutputTokens)+" out")
	w.fact("tool calls", strconv.Itoa(sum.Skills)+", "+strconv.Itoa(sum.SkillsOK)+" ok")
	w.steps(r, sum.PhaseMS)
}

// steps shows how a run's time went, and how much of it went between the steps.
func (w *findingWriter) steps(r runs.Run, p ace.PhaseMS) {
	if p == (ace.PhaseMS{}) {
		return
	}
	total := float64(r.Age(w.Now).Microseconds()) / 1000
	w.Section("Where the time went", "")
	left := total
	for _, step := range ace.Steps() {
		if ms := p.Of(step); ms > 0 {
			w.bar(string(step), ms, total)
			left -= ms
		}
	}
	if left > 0 {
		w.bar("waiting", left, total)
	}
}

// findingBar is the room for a bar.
const findingBar = 24

func (w *findingWriter) bar(name string, ms, total float64) {
	n := 0
	if total > 0 {
		n = widget.Clamp(int(ms/total*findingBar+0.5), 0, findingBar)
	}
	bar := ""
	for i := range findingBar {
		if i < n {
			bar += w.S.Glyphs.Full
		} else {
			bar += w.S.Glyphs.Empty
		}
	}
	w.End(w.Line().Add(w.S.Muted, "   "+text.Fit(name, 10, "")+" "+text.FitLeft(widget.TookMS(ms, w.S.Glyphs), 8, "")+" ").Add(w.S.Accent, bar))
}

func (w *findingWriter) phase(p triage.PhaseStat, t *triage.Triage) {
	w.End(w.Line().Add(w.S.Strong, " "+text.Safe(p.Phase, " ")).Add(w.S.Muted, "  "+widget.HowMany(p.Runs, "run")))
	w.Say(w.S.Text, "")
	for _, f := range []struct {
		name string
		ms   float64
	}{{"p50", p.P50}, {"p95", p.P95}, {"max", p.Max}} {
		w.bar(f.name, f.ms, p.Max)
	}
	w.Section("Longest", "enter opens it")
	w.link(p.Worst, text.Safe(p.Worst.Experiment, " "))
	w.Section("What this is over", "")
	w.Prose(" ", w.S.Muted, "Times come from the summaries that runs leave (phase_ms). Of runs that left none, the histories of the newest 50 at most are read, and the time from an activity's last start to its end counts.")
	w.fact("summaries", text.Count(int64(t.PhaseRuns-t.PhaseSampled)))
	w.fact("histories", text.Count(int64(t.PhaseSampled)))
	w.fact("not known", text.Count(int64(t.PhaseUnknown)))
}
