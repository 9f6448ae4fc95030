package diff

import (
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/temporal/compare"
	"acescope/sources/diff"
	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// row is a row of the list of steps. Rows are comparable.
type row interface {
	cells(s theme.Styles) []widget.Cell
	// write writes everything that is known about the row.
	write(w *widget.Writer)
	// span returns the indexes of the first and the last pair, -1 for a row without pairs.
	span() (first, last int)
	// pair returns the first pair, or nil.
	pair() *compare.Pair
}

// summaryRow is the whole comparison.
type summaryRow struct{ of *histories.RunDiff }

func (r summaryRow) span() (first, last int) { return -1, -1 }
func (r summaryRow) pair() *compare.Pair     { return nil }

func (r summaryRow) cells(s theme.Styles) []widget.Cell {
	return []widget.Cell{{"", s.Muted}, {"summary: first difference, metrics", s.Strong}, {"", s.Muted},
		{"", s.Muted}}
}

func (r summaryRow) write(w *widget.Writer) {
	d := r.of.Diff
	writeSummary(w, d, r.of.A.Name(), r.of.B.Name())
	w.Section("Metrics", "")
	var metrics []widget.Metric
	for _, m := range d.Metrics {
		metrics = append(metrics, widget.Metric(m))
	}
	w.Metrics(metrics)
	w.Say(w.S.Text, "")
	w.Say(w.S.Muted, " compared "+ace.Count(d.A.Events+d.B.Events, "event")+" in "+
		widget.Duration(r.of.Duration, w.S.Glyphs))
}

// equalRow stands for n consecutive pairs of equal steps.
type equalRow struct {
	d       *compare.Diff
	from, n int
}

func (r equalRow) span() (first, last int) { return r.from, r.from + r.n - 1 }
func (r equalRow) pair() *compare.Pair     { return &r.d.Pairs[r.from] }

func (r equalRow) cells(s theme.Styles) []widget.Cell {
	p := &r.d.Pairs[r.from]
	m := statusMark(p.Status, s)
	return []widget.Cell{{m.Glyph + " " + m.Word, m.Ink},
		{s.Glyphs.Pointer + " " + ace.Count(r.n, "step"), s.Muted},
		{strconv.FormatInt(p.Step().Event, 10) + s.Glyphs.Ellipsis, s.Muted}, {"", s.Muted}}
}

func (r equalRow) write(w *widget.Writer) {
	w.Section(ace.Count(r.n, "equal step"), "press c to unfold them")
	for i := r.from; i < r.from+min(r.n, 500); i++ {
		writeStep(w, &r.d.Pairs[i])
	}
}

// pairRow is a step of A and the same step of B.
type pairRow struct {
	*compare.Pair
	at int
}

func (r pairRow) span() (first, last int) { return r.at, r.at }
func (r pairRow) pair() *compare.Pair     { return r.Pair }

func (r pairRow) cells(s theme.Styles) []widget.Cell {
	p, step, g := r.Pair, r.Step(), s.Glyphs
	m := statusMark(p.Status, s)
	ink, name := s.Text, text.Safe(step.Key, " ")
	if p.Status == compare.Same {
		ink = s.Muted
	}
	if step.Kind == "tool call" {
		name = "  " + strings.TrimPrefix(name, "tool call ")
	}
	if where := diff.Reused(p); where != "" {
		name += " (" + where + ")"
	}
	duration := ""
	if p.A != nil && p.A.DurationMS > 0 || p.B != nil && p.B.DurationMS > 0 {
		a, b := diff.Both(p, func(x *compare.Step) string { return stepDuration(x, g) })
		duration = a + " | " + b
	}
	a, b := diff.Both(p, diff.Event)
	return []widget.Cell{{m.Glyph + " " + m.Word, m.Ink}, {name, ink}, {g.Replace(a + " | " + b), s.Muted},
		{g.Replace(duration), s.Muted}}
}

func (r pairRow) write(w *widget.Writer) {
	p := r.Pair
	writeStep(w, p)
	writeStepSide(w, "A", p.A)
	writeStepSide(w, "B", p.B)
	if p.A == nil || p.B == nil || p.Status == compare.OnlyA || p.Status == compare.OnlyB {
		writePayloads(w, p)
	}
	for _, part := range []struct {
		name string
		list []compare.Change
	}{{"Input", p.Input}, {"Result", p.Result}} {
		if len(part.list) > 0 {
			w.Section(part.name, ace.Count(len(part.list), "change"))
			writeChanges(w, part.list)
		}
	}
	if p.A != nil && p.B != nil && len(p.Input)+len(p.Result) == 0 {
		w.Say(w.S.Text, "")
		if diff.Reused(p) == "" {
			w.Say(w.S.Muted, " same input and result, except for fields that always differ")
		} else {
			w.Prose(" ", w.S.Muted, "Same result. The input of a reused step is not recorded.")
		}
	}
	writeRest(w, p)
}

// writeStepSide writes outcome, event, time and duration of a step on one side.
func writeStepSide(w *widget.Writer, side string, step *compare.Step) {
	l := w.Line().Add(w.S.Muted, " "+side+" ")
	if step == nil {
		w.End(l.Add(w.S.Muted, "no such step"))
		return
	}
	if step.Taken {
		w.End(l.Add(w.S.Muted, "reused from the original, not executed"))
		return
	}
	at := "unknown time"
	if !step.At.IsZero() && step.At.Unix() > 0 {
		at = step.At.In(w.Loc).Format("15:04:05.000")
	}
	l.Add(statusInk(step.Status, w.S), text.Safe(step.Status, " ")).
		Add(w.S.Muted, "  event "+ace.Number(step.Event)+"  at "+at+"  duration "+
			widget.Milliseconds(step.DurationMS, w.S.Glyphs))
	if step.Attempt > 1 {
		l.Add(w.S.Retrying, "  attempt "+ace.Number(step.Attempt))
	}
	w.End(l)
	if step.Note != "" {
		w.Prose("   ", w.S.Muted, step.Note)
	}
}

// writePayloads writes the payloads of a step that only one side has.
func writePayloads(w *widget.Writer, p *compare.Pair) {
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
			words, _ := widget.ValueText(part.raw)
			w.Spans(" "+glyph+" ", ink, []widget.Span{{ink, words}})
		}
	}
}

type detail struct {
	v *list
	console.Reader
}

func (d *detail) Title() string {
	if p := d.v.pair(); p != nil {
		return text.Safe(p.Step().Key, " ")
	}
	return "Difference"
}

func (d *detail) Bindings() []tui.Binding {
	return append(widget.Motions("difference", d), d.v.keys("difference")...)
}

func (d *detail) Wheel(by int) { d.Scroll(by) }

func (d *detail) Draw(now time.Time, focused bool) []string {
	r, ok := d.v.Current()
	if !ok || d.v.diff() == nil {
		return d.Message(nil, "no runs are compared")
	}
	return d.Show(r, d.v.of, now, focused, r.write)
}
