package triage

import (
	"cmp"
	"strconv"
	"strings"
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
)

type detail struct {
	from *list
	console.Reader
	runs map[int]runs.Run // that lines name, by line
}

func (v *detail) Bindings() []tui.Binding {
	return append(widget.Motions("finding", v),
		console.Key("finding.open", "open the run under the cursor", "open", v.open, "enter"),
		console.Key("finding.moment.open",
			"open the time machine where the answer of the run under the cursor became wrong",
			"moment", func(s tui.Shell) { v.from.toMoment(s, v.run) }, "t"),
		console.Key("finding.mark", "mark or unmark the run under the cursor, to fork or compare it", "mark",
			v.mark, "space"),
		console.Key("finding.filter", "list the runs of the group", "list its runs", v.from.filter, "F"))
}

// run returns the run under the cursor, or else the run of the row.
func (v *detail) run() (runs.Run, bool) {
	if r, ok := v.runs[v.Cursor]; ok {
		return r, true
	}
	return v.from.run()
}

func (v *detail) mark(s tui.Shell) {
	r, ok := v.runs[v.Cursor]
	if !ok {
		s.Note("move to a run first")
		return
	}
	v.from.marks(s, []runs.Run{r})
	v.Scroll(1)
}

func (v *detail) Copy() (what, copied string) {
	if r, ok := v.runs[v.Cursor]; ok {
		return "workflow ID", r.WorkflowID
	}
	return v.from.Copy()
}

func (v *detail) Copies() []tui.Copy {
	r, _ := v.run()
	return v.from.nav.RunCopies(r)
}

func (v *detail) open(s tui.Shell) tea.Cmd { return v.from.nav.OpenAt(s, v.run) }

// written holds the inputs of the lines of a finding.
type written struct {
	data   *triage.Result
	second int64
}

func (v *detail) Draw(now time.Time, focused bool) []string {
	row := v.from.current()
	if row == nil {
		return v.Message(nil, "no finding is selected")
	}
	key := v.from.list.Section() + row.key()
	return v.Show(key, written{v.from.data, now.Unix()}, now, focused, func(w *widget.Writer) {
		v.runs, w.Labels = map[int]runs.Run{}, 11
		row.write(&findingWriter{w, v.runs}, v.from.data)
	})
}

// findingWriter writes a finding and records the lines that name a run.
type findingWriter struct {
	*widget.Writer
	runs map[int]runs.Run
}

func (w *findingWriter) fact(label, value string) { w.Fact(label, w.S.Text, value) }

// link writes a line for a run that enter opens.
func (w *findingWriter) link(r runs.Run, remark string) {
	m := w.S.Status(string(r.Status))
	w.runs[len(w.Lines)] = r
	w.End(w.Line().Add(m.Ink, " "+m.Glyph+" ").Add(w.S.Text, console.NameOf(r)).Add(w.S.Muted, "  "+remark))
}

func (w *findingWriter) title(m theme.Mark, remark string) {
	w.End(w.Line().Add(m.Ink, " "+m.Glyph+" "+text.Safe(m.Word, " ")).Add(w.S.Strong, "  "+remark))
}

func (g groupRow) write(w *findingWriter, t *triage.Result) {
	w.title(g.mark(w.S), ace.Count(g.Count, "run")+", "+console.Percent(g.Share)+
		widget.InParentheses(widget.Range(g.Interval(), "rate", w.S.Glyphs))+" of closed runs")
	w.Prose("   ", w.S.Error, g.Pattern)
	w.Say(w.S.Text, "")
	w.fact("type", g.Type)
	w.fact("phase", string(g.Phase))
	w.fact("activity", g.Activity)
	w.End(w.Line().Add(w.S.Muted, " trend      ").Add(w.S.Accent,
		widget.Spark(g.Trend, len(g.Trend), w.S.Glyphs)).
		Add(w.S.Muted, "  "+w.clock(t.From)+" "+w.S.Glyphs.Arrow+" "+w.clock(t.To)))
	w.example("Newest", g.Last)
	if g.Count > 1 && g.Verdict == "" {
		w.example("Oldest", g.First)
	}
	remark := "enter opens one, F lists them, space marks them"
	if g.Verdict != "" {
		remark = "enter opens one, t where it became wrong, F lists them, space marks them"
	}
	if g.Count > len(g.Runs) {
		remark = "the newest " + ace.Number(len(g.Runs)) + " of " + ace.Number(g.Count) + "; " +
			remark
	}
	w.Section("Runs", remark)
	for i, r := range g.Runs {
		if i < len(g.Reasons) {
			w.wrongRun(r, &g.Reasons[i])
			continue
		}
		w.link(r, w.clock(r.Close)+"  "+text.Duration(r.Age(w.Now)))
	}
}

// wrongRun writes the line of a run with its answer, and below it what the reflector says about the answer.
func (w *findingWriter) wrongRun(r runs.Run, why *triage.Reason) {
	w.link(r, exampleText(why, w.S.Glyphs))
	if why.Insights == "" {
		return
	}
	first := len(w.Lines)
	w.Prose("     ", w.S.Muted, text.Cut(text.Safe(why.Insights, " "), 2*w.Width, w.S.Glyphs.Ellipsis))
	for line := first; line < len(w.Lines); line++ {
		w.runs[line] = r
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
	why := e.Reason
	if why == nil {
		w.Prose("   ", w.S.Error, e.Message)
		return
	}
	w.fact("task", why.Subject)
	w.fact("answer", cmp.Or(why.Answer, "none"))
	w.fact("expected", why.Expected)
	w.fact("reflector", why.Insights)
}

func (r retryRow) write(w *findingWriter, _ *triage.Result) {
	attempt := "attempt " + strconv.Itoa(int(r.Attempt))
	attempt += widget.If(r.MaxAttempts > 0, " of "+strconv.Itoa(int(r.MaxAttempts)), "")
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
		w.Say(w.S.Muted, "   unknown")
		return
	}
	w.Prose("   ", w.S.Error, r.LastError.Message)
}

func (o runRow) write(w *findingWriter, _ *triage.Result) {
	r := o.of
	w.title(w.S.Status(string(r.Status)), text.Duration(r.Age(w.Now)))
	w.link(r, "press enter to open it")
	w.Say(w.S.Text, "")
	w.fact("workflow", r.WorkflowID)
	w.fact("type", r.Type)
	w.fact("experiment", r.Experiment)
	w.fact("dataset", r.Dataset)
	w.fact("model", r.Model)
	w.fact("closed", w.clock(r.Close)+", "+w.Ago(r.Close))
	if r.Events > 0 {
		w.fact("events", ace.Number(r.Events))
	}
	sum := r.Summary
	if sum == nil {
		w.Say(w.S.Muted, " no summary: cost, tokens and phase times are unknown")
		return
	}
	w.fact("cost", console.CostCell(sum.Usage, w.S.Glyphs))
	w.fact("tokens", ace.Number(sum.Usage.InputTokens)+" in, "+ace.Number(sum.Usage.OutputTokens)+" out")
	w.fact("tool calls", strconv.Itoa(sum.Skills)+", "+strconv.Itoa(sum.SkillsOK)+" ok")
	w.steps(r, sum.PhaseMS)
}

// steps shows the time of each phase, and the time between them.
func (w *findingWriter) steps(r runs.Run, p ace.PhaseMS) {
	if p == (ace.PhaseMS{}) {
		return
	}
	total := float64(r.Age(w.Now).Microseconds()) / 1000
	w.Section("Time by phase", "")
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

const barWidth = 24

func (w *findingWriter) bar(name string, ms, total float64) {
	n := 0
	if total > 0 {
		n = widget.Clamp(int(ms/total*barWidth+0.5), 0, barWidth)
	}
	bar := strings.Repeat(w.S.Glyphs.Full, n) + strings.Repeat(w.S.Glyphs.Empty, barWidth-n)
	took := text.FitLeft(widget.Milliseconds(ms, w.S.Glyphs), 8, "")
	w.End(w.Line().Add(w.S.Muted, "   "+text.Fit(name, 10, "")+" "+took+" ").Add(w.S.Accent, bar))
}

func (p phaseRow) write(w *findingWriter, t *triage.Result) {
	w.End(w.Line().Add(w.S.Strong, " "+text.Safe(p.Phase, " ")).Add(w.S.Muted, "  "+ace.Count(p.Runs, "run")))
	if p.Calls > p.Runs {
		w.fact("calls", ace.Number(p.Calls))
	}
	w.Say(w.S.Text, "")
	for _, f := range []struct {
		name string
		ms   float64
	}{{"p50", p.P50}, {"p95", p.P95}, {"max", p.Max}} {
		w.bar(f.name, f.ms, p.Max)
	}
	w.Section("Longest", "press enter to open it")
	w.link(p.Worst, text.Safe(p.Worst.Experiment, " "))
	w.Section("Data", "")
	w.Prose(" ", w.S.Muted, "Times come from run summaries (phase_ms). For up to 50 of the newest runs without a "+
		"summary, they come from histories: from the last start of an activity to its end.")
	w.fact("summaries", ace.Number(t.PhaseRuns-t.PhaseSampled))
	w.fact("histories", ace.Number(t.PhaseSampled))
	w.fact("unknown", ace.Number(t.PhaseUnknown))
}
