package views

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// pairDetail is what differs in the pair under the cursor, or the whole comparison.
type pairDetail struct {
	v             *runDiff
	styles        theme.Styles
	width, height int
	top           int

	of    *sources.RunDiff // of which the lines are
	row   pairRow
	wide  int
	lines []string
}

func (d *pairDetail) Name() string { return "Difference" }

func (d *pairDetail) Title() string {
	if p := d.v.pair(); p != nil {
		return text.Safe(p.Step().Key, " ")
	}
	return "Difference"
}

func (d *pairDetail) Footer() string {
	if n := len(d.lines); n > d.height && d.height > 0 {
		return text.Count(int64(min(d.top+d.height, n))) + "/" + text.Count(int64(n))
	}
	return ""
}

// Bindings are those of the list, but that the arrows scroll here.
func (d *pairDetail) Bindings() []tui.Binding {
	return append(motions("difference", d), d.v.keys("difference")...)
}

func (d *pairDetail) Update(tea.Msg) tea.Cmd        { return nil }
func (d *pairDetail) SetStyles(s theme.Styles)      { d.styles, d.of = s, nil }
func (d *pairDetail) SetSize(width, height int)     { d.width, d.height = width, height }
func (d *pairDetail) SetShown(bool)                 {}
func (d *pairDetail) SetSnapshot(*sources.Snapshot) {}
func (d *pairDetail) page() int                     { return max(d.height, 1) }
func (d *pairDetail) scroll(by int)                 { d.top = clamp(d.top+by, 0, max(len(d.lines)-d.height, 0)) }
func (d *pairDetail) Wheel(by int)                  { d.scroll(by) }
func (d *pairDetail) Draw(now time.Time, _ bool) []string {
	r, ok := d.v.current()
	diff := d.v.diff()
	if !ok || diff == nil {
		d.lines = nil
		return centre([]string{"nothing is compared yet"}, d.width, d.height, d.styles)
	}
	if d.of != d.v.of || d.row != r || d.wide != d.width {
		if d.of != d.v.of || d.row != r {
			d.top = 0
		}
		d.of, d.row, d.wide = d.v.of, r, d.width
		w := &writer{doc: &document{}, s: d.styles, width: d.width, now: now, loc: d.v.Location}
		w.pairRow(d.v.of, r)
		d.lines = w.lines
	}
	d.scroll(0)
	return fill(slices.Clone(d.lines[d.top:min(d.top+d.height, len(d.lines))]), d.width, d.height)
}

// pairRow writes what a row of the list stands for.
func (w *writer) pairRow(of *sources.RunDiff, r pairRow) {
	d, s := of.Diff, w.s
	switch {
	case r.pair < 0:
		w.diffHead(d, diffNames{of.A.Name(), of.B.Name()})
		w.section("Figures", "")
		w.diffMetrics(d)
		w.say(s.Text, "")
		w.end(w.line().Add(s.Muted, " "+text.Count(int64(d.A.Events+d.B.Events))+" events read and compared in "+took(of.Took, s.Glyphs)))
		return
	case r.n > 0:
		w.section(text.Count(int64(r.n))+" steps are the same", "space unfolds them")
		for i := r.pair; i < r.pair+min(r.n, 500); i++ {
			w.diffLine(&d.Pairs[i])
		}
		return
	}
	p := &d.Pairs[r.pair]
	w.diffLine(p)
	w.diffStepFacts(p)
	if p.Status == sources.DiffOnlyA || p.Status == sources.DiffOnlyB || p.A == nil || p.B == nil {
		w.onlyPayloads(p)
	}
	for _, part := range []struct {
		name string
		list []sources.DiffChange
	}{{"Input", p.Input}, {"Result", p.Result}} {
		if len(part.list) > 0 {
			w.section(part.name, text.Count(int64(len(part.list)))+" changes")
			w.diffChanges(w.s.Glyphs.Delta, part.list, 1)
		}
	}
	if p.A != nil && p.B != nil && len(p.Input)+len(p.Result) == 0 {
		w.say(s.Text, "")
		if takenOver(p) == "" {
			w.say(s.Muted, " input and result are the same, but for what differs between any two runs")
		} else {
			w.prose(" ", s.Muted, "The result is the same; what a step was given is not recorded where it was taken over.")
		}
	}
	w.diffRest(p, 1)
}

// diffStepFacts is when and how the step went on each side.
func (w *writer) diffStepFacts(p *sources.DiffPair) {
	for _, x := range []struct {
		side string
		step *sources.DiffStep
	}{{"A", p.A}, {"B", p.B}} {
		l := w.line().Add(w.s.Muted, " "+x.side+" ")
		if x.step == nil {
			w.end(l.Add(w.s.Muted, "has no such step"))
			continue
		}
		if x.step.Taken {
			w.end(l.Add(w.s.Muted, "taken over from the run that it was forked from, not executed"))
			continue
		}
		at := "time not known"
		if !x.step.At.IsZero() && x.step.At.Unix() > 0 {
			at = x.step.At.In(w.loc).Format("15:04:05.000")
		}
		l.Add(diffOutcome(x.step.Status, w.s), text.Safe(x.step.Status, " ")).Add(w.s.Muted, "  event "+text.Count(x.step.Event)+"  at "+at+
			"  took "+tookMS(x.step.DurationMS, w.s.Glyphs))
		if x.step.Attempt > 1 {
			l.Add(w.s.Retrying, "  attempt "+text.Count(int64(x.step.Attempt)))
		}
		w.end(l)
		if x.step.Note != "" {
			w.prose("   ", w.s.Muted, x.step.Note)
		}
	}
}

// onlyPayloads shows a step that one side has alone.
func (w *writer) onlyPayloads(p *sources.DiffPair) {
	step, glyph, ink := p.Step(), w.s.Glyphs.Removed, w.s.Removed
	if p.A == nil {
		glyph, ink = w.s.Glyphs.Added, w.s.Added
	}
	for _, part := range []struct {
		name string
		raw  []byte
	}{{"Input", step.Input}, {"Result", step.Result}} {
		if len(part.raw) > 0 {
			w.section(part.name, "")
			said, _ := diffValue(part.raw)
			w.below(glyph, ink, []inked{{ink, said}}, 1)
		}
	}
}
