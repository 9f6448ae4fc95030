package diff

import (
	"slices"
	"time"

	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// pairDetail is what differs in the pair under the cursor, or the whole comparison.
type pairDetail struct {
	v             *diffList
	styles        theme.Styles
	width, height int
	top           int

	of    *histories.RunDiff // of which the lines are
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
	return append(widget.Motions("difference", d), d.v.keys("difference")...)
}

func (d *pairDetail) SetStyles(s theme.Styles)  { d.styles, d.of = s, nil }
func (d *pairDetail) SetSize(width, height int) { d.width, d.height = width, height }
func (d *pairDetail) Refresh()                  {}
func (d *pairDetail) Page() int                 { return max(d.height, 1) }
func (d *pairDetail) Scroll(by int)             { d.top = widget.Clamp(d.top+by, 0, max(len(d.lines)-d.height, 0)) }
func (d *pairDetail) Wheel(by int)              { d.Scroll(by) }
func (d *pairDetail) Draw(now time.Time, _ bool) []string {
	r, ok := d.v.current()
	diff := d.v.diff()
	if !ok || diff == nil {
		d.lines = nil
		return widget.Centre([]string{"nothing is compared yet"}, d.width, d.height, d.styles)
	}
	if d.of != d.v.of || d.row != r || d.wide != d.width {
		if d.of != d.v.of || d.row != r {
			d.top = 0
		}
		d.of, d.row, d.wide = d.v.of, r, d.width
		w := &widget.Writer{Doc: &widget.Document{}, S: d.styles, Width: d.width, Now: now, Loc: d.v.Location}
		pairRowWriter(w, d.v.of, r)
		d.lines = w.Lines
	}
	d.Scroll(0)
	return widget.Fill(slices.Clone(d.lines[d.top:min(d.top+d.height, len(d.lines))]), d.width, d.height)
}

// pairRow writes what a row of the list stands for.
func pairRowWriter(w *widget.Writer, of *histories.RunDiff, r pairRow) {
	d, s := of.Diff, w.S
	switch {
	case r.pair < 0:
		diffHead(w, d, diffNames{of.A.Name(), of.B.Name()})
		w.Section("Figures", "")
		diffMetrics(w, d)
		w.Say(s.Text, "")
		w.End(w.Line().Add(s.Muted, " "+text.Count(int64(d.A.Events+d.B.Events))+" events read and compared in "+widget.Took(of.Took, s.Glyphs)))
		return
	case r.n > 0:
		w.Section(text.Count(int64(r.n))+" steps are the same", "space unfolds them")
		for i := r.pair; i < r.pair+min(r.n, 500); i++ {
			diffLine(w, &d.Pairs[i])
		}
		return
	}
	p := &d.Pairs[r.pair]
	diffLine(w, p)
	diffStepFacts(w, p)
	if p.Status == histories.DiffOnlyA || p.Status == histories.DiffOnlyB || p.A == nil || p.B == nil {
		onlyPayloads(w, p)
	}
	for _, part := range []struct {
		name string
		list []histories.DiffChange
	}{{"Input", p.Input}, {"Result", p.Result}} {
		if len(part.list) > 0 {
			w.Section(part.name, text.Count(int64(len(part.list)))+" changes")
			diffChanges(w, w.S.Glyphs.Delta, part.list, 1)
		}
	}
	if p.A != nil && p.B != nil && len(p.Input)+len(p.Result) == 0 {
		w.Say(s.Text, "")
		if takenOver(p) == "" {
			w.Say(s.Muted, " input and result are the same, but for what differs between any two runs")
		} else {
			w.Prose(" ", s.Muted, "The result is the same; what a step was given is not recorded where it was taken over.")
		}
	}
	diffRest(w, p, 1)
}

// diffStepFacts is when and how the step went on each side.
func diffStepFacts(w *widget.Writer, p *histories.DiffPair) {
	for _, x := range []struct {
		side string
		step *histories.DiffStep
	}{{"A", p.A}, {"B", p.B}} {
		l := w.Line().Add(w.S.Muted, " "+x.side+" ")
		if x.step == nil {
			w.End(l.Add(w.S.Muted, "has no such step"))
			continue
		}
		if x.step.Taken {
			w.End(l.Add(w.S.Muted, "taken over from the run that it was forked from, not executed"))
			continue
		}
		at := "time not known"
		if !x.step.At.IsZero() && x.step.At.Unix() > 0 {
			at = x.step.At.In(w.Loc).Format("15:04:05.000")
		}
		l.Add(diffOutcome(x.step.Status, w.S), text.Safe(x.step.Status, " ")).Add(w.S.Muted, "  event "+text.Count(x.step.Event)+"  at "+at+
			"  took "+widget.TookMS(x.step.DurationMS, w.S.Glyphs))
		if x.step.Attempt > 1 {
			l.Add(w.S.Retrying, "  attempt "+text.Count(int64(x.step.Attempt)))
		}
		w.End(l)
		if x.step.Note != "" {
			w.Prose("   ", w.S.Muted, x.step.Note)
		}
	}
}

// onlyPayloads shows a step that one side has alone.
func onlyPayloads(w *widget.Writer, p *histories.DiffPair) {
	step, glyph, ink := p.Step(), w.S.Glyphs.Removed, w.S.Removed
	if p.A == nil {
		glyph, ink = w.S.Glyphs.Added, w.S.Added
	}
	for _, part := range []struct {
		name string
		raw  []byte
	}{{"Input", step.Input}, {"Result", step.Result}} {
		if len(part.raw) > 0 {
			w.Section(part.name, "")
			said, _ := diffValue(part.raw)
			below(w, glyph, ink, []inked{{ink, said}}, 1)
		}
	}
}
