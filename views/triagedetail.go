package views

import (
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// triageDetail is what is known of the row that the triage's cursor is on.
type triageDetail struct {
	*console
	from          *triage
	styles        theme.Styles
	width, height int
	reader        runReader
	doc           document

	key    string // of the item that the lines are of
	data   *sources.Triage
	second int64
	wide   int
}

func newTriageDetail(c *console, from *triage) *triageDetail {
	return &triageDetail{console: c, from: from}
}

func (v *triageDetail) Name() string { return "Finding" }

func (v *triageDetail) Title() string { return "Finding" }

func (v *triageDetail) Footer() string { return v.reader.position() }

func (v *triageDetail) Bindings() []tui.Binding {
	return append(motions("finding", &v.reader),
		tui.Binding{Action: "finding.open", Keys: []string{"enter"}, Help: "open the run under the cursor", Short: "open", Do: v.open},
		tui.Binding{Action: "finding.runs", Keys: []string{"F"}, Help: "list the runs of the group", Short: "list its runs", Do: v.from.filter})
}

func (v *triageDetail) Update(tea.Msg) tea.Cmd { return nil }

func (v *triageDetail) SetShown(bool) {}

func (v *triageDetail) SetStyles(s theme.Styles) {
	v.styles = s
	v.data = nil
}

func (v *triageDetail) SetSize(width, height int) { v.width, v.height = width, height }

func (v *triageDetail) SetSnapshot(*sources.Snapshot) {}

// Copy is what the row of the list stands for.
func (v *triageDetail) Copy() (what, copied string) {
	if r, ok := v.reader.selected(); ok {
		return "the workflow id", r.WorkflowID
	}
	return v.from.Copy()
}

func (v *triageDetail) open(s tui.Shell) tea.Cmd {
	r, ok := v.reader.selected()
	if !ok {
		return v.from.open(s)
	}
	v.show(r)
	s.Open("run")
	return nil
}

func (v *triageDetail) Draw(now time.Time, focused bool) []string {
	v.from.arrange()
	if v.from.key(v.from.list.cursor) == "" {
		return centre([]string{"nothing is selected"}, v.width, v.height, v.styles)
	}
	v.reader.setSize(v.width, v.height)
	v.build(now)
	return v.reader.draw(v.styles, focused)
}

// build writes the lines anew where the item, its data, the width or the second changed.
func (v *triageDetail) build(now time.Time) {
	key := strconv.Itoa(v.from.list.cursor.part) + v.from.key(v.from.list.cursor)
	if key == v.key && v.data == v.from.arranged && v.second == now.Unix() && v.wide == v.width {
		return
	}
	anew := key != v.key
	v.key, v.data, v.second, v.wide = key, v.from.arranged, now.Unix(), v.width
	w := &findingWriter{writer: writer{doc: &v.doc, s: v.styles, width: max(v.width-pointerWidth, 1), now: now, loc: v.Location}, runs: map[int]sources.Run{}}
	if g, ok := v.from.group(); ok {
		w.group(g, v.data)
	} else if r, ok := v.from.retry(); ok {
		w.retry(r)
	} else if p, ok := v.from.phase(); ok {
		w.phase(p, v.data)
	} else if r, ok := v.from.run(); ok {
		w.run(r)
	}
	v.reader.set(w.lines, w.runs, anew)
}

// findingWriter writes a finding, and notes which lines name a run.
type findingWriter struct {
	writer
	runs map[int]sources.Run
}

// fact is a label and a value; nothing where the value is empty.
func (w *findingWriter) fact(label, value string) {
	if value != "" {
		w.prose(" "+text.Fit(label, 10, "")+" ", w.s.Text, value)
	}
}

// link is a line that enter opens.
func (w *findingWriter) link(r sources.Run, say string) {
	m := w.s.Status(string(r.Exit))
	w.runs[len(w.lines)] = r
	w.end(w.line().Add(m.Ink, " "+m.Glyph+" ").Add(w.s.Text, nameOf(r)).Add(w.s.Muted, "  "+say))
}

func (w *findingWriter) title(m theme.Mark, say string) {
	w.end(w.line().Add(m.Ink, " "+m.Glyph+" "+text.Safe(m.Word, " ")).Add(w.s.Strong, "  "+say))
}

func (w *findingWriter) group(g sources.FailureGroup, t *sources.Triage) {
	w.title(w.s.Status(string(g.Kind)), howMany(g.Count, "run")+", "+percent(g.Share)+" of what ended")
	w.prose("   ", w.s.Error, g.Pattern)
	w.say(w.s.Text, "")
	w.fact("type", g.Type)
	w.fact("phase", string(g.Phase))
	w.fact("activity", g.Activity)
	w.fact("dataset", g.Dataset)
	w.end(w.line().Add(w.s.Muted, " trend      ").Add(w.s.Accent, spark(g.Trend, len(g.Trend), w.s.Glyphs)).
		Add(w.s.Muted, "  "+w.clock(t.From)+" "+w.s.Glyphs.Arrow+" "+w.clock(t.To)))
	w.example("Newest", g.Last)
	if g.Count > 1 {
		w.example("Oldest", g.First)
	}
	if g.Kind == ace.Wrong {
		w.say(w.s.Text, "")
		w.prose(" ", w.s.Muted, "Wrong answers are grouped by data set and by how their tool calls went, as their summaries say; why stands in the history, which was read of the newest.")
	}
	remark := "enter opens one, F lists them"
	if g.Count > len(g.Runs) {
		remark = "the newest " + text.Count(int64(len(g.Runs))) + " of " + text.Count(int64(g.Count)) + "; " + remark
	}
	w.section("Runs", remark)
	for _, r := range g.Runs {
		w.link(r, w.clock(r.Close)+"  "+text.Took(r.Age(w.now)))
	}
}

func (w *findingWriter) clock(at time.Time) string {
	if at.IsZero() {
		return w.s.Glyphs.Dash
	}
	at = at.In(w.loc)
	if w.now.Sub(at) < 24*time.Hour {
		return at.Format("15:04:05")
	}
	return at.Format("2006-01-02 15:04")
}

func (w *findingWriter) example(title string, e sources.Example) {
	w.section(title, w.clock(e.At)+", "+w.ago(e.At))
	w.link(e.Run, text.Safe(e.Run.Experiment, " "))
	if e.Note != "" {
		w.prose("   ", w.s.Text, e.Note)
		return
	}
	w.prose("   ", w.s.Error, e.Message)
}

func (w *findingWriter) retry(r sources.Retrying) {
	attempt := "attempt " + strconv.Itoa(int(r.Attempt))
	if r.MaxAttempts > 0 {
		attempt += " of " + strconv.Itoa(int(r.MaxAttempts))
	}
	w.title(w.s.Retry(), attempt)
	w.link(r.Run, text.Safe(r.Run.Experiment, " "))
	w.say(w.s.Text, "")
	w.fact("activity", r.Activity)
	w.fact("phase", string(r.Phase))
	w.fact("state", r.State)
	if !r.Since.IsZero() {
		w.fact("since", w.clock(r.Since)+", for "+text.Span(w.now.Sub(r.Since)))
	}
	if !r.Next.IsZero() {
		w.fact("next", w.clock(r.Next)+", in "+text.Span(r.Next.Sub(w.now)))
	}
	w.fact("worker", r.Worker)
	w.section("Last error", text.Safe(r.LastError.Type, " "))
	if r.LastError.Message == "" {
		w.say(w.s.Muted, "   none is known")
		return
	}
	w.prose("   ", w.s.Error, r.LastError.Message)
}

func (w *findingWriter) run(r sources.Run) {
	w.title(w.s.Status(string(r.Exit)), text.Took(r.Age(w.now)))
	w.link(r, "enter opens it")
	w.say(w.s.Text, "")
	w.fact("workflow", r.WorkflowID)
	w.fact("type", r.Type)
	w.fact("experiment", r.Experiment)
	w.fact("dataset", r.Dataset)
	w.fact("model", r.Model)
	w.fact("ended", w.clock(r.Close)+", "+w.ago(r.Close))
	if r.Events > 0 {
		w.fact("events", text.Count(r.Events))
	}
	sum := r.Summary
	if sum == nil {
		w.say(w.s.Muted, " it left no summary: cost, tokens and step times are not known")
		return
	}
	w.fact("cost", costCell(sum.Usage, w.s.Glyphs))
	w.fact("tokens", text.Count(sum.Usage.InputTokens)+" in, "+text.Count(sum.Usage.OutputTokens)+" out")
	w.fact("tool calls", strconv.Itoa(sum.Skills)+", "+strconv.Itoa(sum.SkillsOK)+" ok")
	w.steps(r, sum.PhaseMS)
}

// steps shows how a run's time went, and how much of it went between the steps.
func (w *findingWriter) steps(r sources.Run, p ace.PhaseMS) {
	if p == (ace.PhaseMS{}) {
		return
	}
	total := float64(r.Age(w.now).Microseconds()) / 1000
	w.section("Where the time went", "")
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
		n = clamp(int(ms/total*findingBar+0.5), 0, findingBar)
	}
	bar := ""
	for i := range findingBar {
		if i < n {
			bar += w.s.Glyphs.Full
		} else {
			bar += w.s.Glyphs.Empty
		}
	}
	w.end(w.line().Add(w.s.Muted, "   "+text.Fit(name, 10, "")+" "+text.FitLeft(tookMS(ms, w.s.Glyphs), 8, "")+" ").Add(w.s.Accent, bar))
}

func (w *findingWriter) phase(p sources.PhaseStat, t *sources.Triage) {
	w.end(w.line().Add(w.s.Strong, " "+text.Safe(p.Phase, " ")).Add(w.s.Muted, "  "+howMany(p.Runs, "run")))
	w.say(w.s.Text, "")
	for _, f := range []struct {
		name string
		ms   float64
	}{{"p50", p.P50}, {"p95", p.P95}, {"max", p.Max}} {
		w.bar(f.name, f.ms, p.Max)
	}
	w.section("Longest", "enter opens it")
	w.link(p.Worst, text.Safe(p.Worst.Experiment, " "))
	w.section("What this is over", "")
	w.prose(" ", w.s.Muted, "Times come from the summaries that runs leave (phase_ms). Of runs that left none, the histories of the newest 50 at most are read, and the time from an activity's last start to its end counts.")
	w.fact("summaries", text.Count(int64(t.PhaseRuns-t.PhaseSampled)))
	w.fact("histories", text.Count(int64(t.PhaseSampled)))
	w.fact("not known", text.Count(int64(t.PhaseUnknown)))
}
