package diff

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
	"acescope/views/experiments"
)

// diffNames are what the two runs are called.
type diffNames struct{ a, b string }

// DiffOnly chooses which pairs are written: all, those that differ, those whose input or
// whose result does.
type DiffOnly string

// Choices of pairs.
const (
	DiffEvery       DiffOnly = ""
	DiffOnlyChanged DiffOnly = "changed"
	DiffOnlyInput   DiffOnly = "input"
	DiffOnlyResult  DiffOnly = "result"
)

// Shows tells whether a pair is chosen.
func (o DiffOnly) Shows(p *histories.DiffPair) bool {
	one := p.Status == histories.DiffOnlyA || p.Status == histories.DiffOnlyB
	switch o {
	case DiffOnlyChanged:
		return histories.DiffDiffers(p.Status)
	case DiffOnlyInput:
		return one || len(p.Input) > 0
	case DiffOnlyResult:
		return one || histories.DiffDiffers(p.Status) && (len(p.Result) > 0 || len(p.Input) == 0)
	}
	return true
}

// DiffText is a comparison of two runs in lines: what it comes to, with pairs each pair and
// what changed in it, and the figures.
func DiffText(d *histories.Diff, a, b string, only DiffOnly, pairs bool, width int, s theme.Styles) []string {
	w := &widget.Writer{Doc: &widget.Document{}, S: s, Width: width, Now: time.Now(), Loc: time.Local}
	diffHead(w, d, diffNames{a, b})
	if pairs {
		w.Say(s.Text, "")
		diffListWriter(w, d, only)
	}
	w.Say(s.Text, "")
	diffMetrics(w, d)
	return w.Lines
}

// diffHead says who they are, where they first differ and what one must know.
func diffHead(w *widget.Writer, d *histories.Diff, n diffNames) {
	diffSide(w, "A", n.a, &d.A)
	diffSide(w, "B", n.b, &d.B)
	diffVerdict(w, d)
	for _, note := range d.Notes {
		w.Prose(" ", w.S.Warning, note)
	}
	w.End(w.Line().Add(w.S.Muted, " "+diffCounts(d)))
}

func diffSide(w *widget.Writer, side, name string, a *histories.DiffAbout) {
	g := w.S.Glyphs
	facts := []string{text.Safe(console.OrDash(a.Type, g), " "), text.Count(int64(a.Events)) + " events", text.Count(int64(a.Steps)) + " steps"}
	if a.Runs > 1 {
		facts = append(facts, strconv.Itoa(a.Runs)+" runs")
	}
	// Of a path the end tells most.
	if name = text.Safe(name, " "); text.Width(name) > w.Width/2 {
		name = g.Ellipsis + text.Last(name, w.Width/2-1)
	}
	l := w.Line().Add(w.S.Muted, " "+side+" ").Add(w.S.Strong, name)
	w.End(l.Add(diffOutcome(a.Status, w.S), "  "+text.Safe(a.Status, " ")).Add(w.S.Muted, "  "+strings.Join(facts, ", ")))
}

func diffOutcome(status string, s theme.Styles) theme.Ink {
	switch status {
	case "done":
		return s.Success
	case "open", "continued as new":
		return s.Running
	case "cancelled":
		return s.Cancelled
	}
	return s.Failed
}

// diffVerdict is the first difference, and the first that is one of what came out.
func diffVerdict(w *widget.Writer, d *histories.Diff) {
	g := w.S.Glyphs
	if d.First == nil {
		w.Prose(" "+g.Success+" ", w.S.Success, "no difference"+diffBut(d))
		return
	}
	w.Prose(" ", w.S.Text, "first difference: "+d.First.Text)
	if r := d.FirstResult; r != nil && r.Text != d.First.Text {
		w.Prose(" ", w.S.Text, "first other result: "+r.Text)
	}
}

// diffBut says what "no difference" leaves open.
func diffBut(d *histories.Diff) string {
	switch {
	case d.Counts[histories.DiffUnreadable] > 0:
		return " in what can be read"
	case d.Counts[histories.DiffNotReached] > 0:
		return " as far as both go"
	case d.All:
		return ", in no field"
	}
	return ": the runs decided the same"
}

// diffCounts is how many pairs there are of each kind.
func diffCounts(d *histories.Diff) string {
	var parts []string
	for _, k := range diffKinds {
		if n := d.Counts[k.status]; n > 0 || k.status == histories.DiffSame {
			parts = append(parts, text.Count(int64(n))+" "+k.word)
		}
	}
	return strings.Join(parts, ", ")
}

// diffKinds are the ways in which a pair is, as words.
var diffKinds = []struct{ status, word string }{
	{histories.DiffSame, "same"}, {histories.DiffChanged, "changed"}, {histories.DiffOnlyA, "only in A"}, {histories.DiffOnlyB, "only in B"},
	{histories.DiffMoved, "moved"}, {histories.DiffNotReached, "not reached"}, {histories.DiffUnreadable, "unreadable"},
}

// pairMark is how a pair is, as a mark.
func pairMark(status string, s theme.Styles) theme.Mark {
	g := s.Glyphs
	m := theme.Mark{Glyph: "=", Ink: s.Muted}
	switch status {
	case histories.DiffChanged:
		m = theme.Mark{Glyph: g.Updated, Ink: s.Updated}
	case histories.DiffOnlyA:
		m = theme.Mark{Glyph: g.Removed, Ink: s.Removed}
	case histories.DiffOnlyB:
		m = theme.Mark{Glyph: g.Added, Ink: s.Added}
	case histories.DiffMoved:
		m = theme.Mark{Glyph: g.Arrow, Ink: s.Warning}
	case histories.DiffNotReached:
		m = theme.Mark{Glyph: g.Pending, Ink: s.Muted}
	case histories.DiffUnreadable:
		m = theme.Mark{Glyph: g.Unknown, Ink: s.Warning}
	}
	for _, k := range diffKinds {
		if k.status == status {
			m.Word = k.word
		}
	}
	return m
}

// diffWord is the widest word of a mark.
const diffWord = 11

// foldFrom is how many same pairs in a row become one line.
const foldFrom = 4

// diffList writes the pairs; many in a row that are the same become one line.
func diffListWriter(w *widget.Writer, d *histories.Diff, only DiffOnly) {
	for i := 0; i < len(d.Pairs); i++ {
		p := &d.Pairs[i]
		if !only.Shows(p) {
			continue
		}
		if n := sameFrom(d, i); n >= foldFrom {
			w.End(w.Line().Add(w.S.Muted, " = "+text.Count(int64(n))+" steps are the same: "+text.Safe(p.Step().Key, " ")+" … "+text.Safe(d.Pairs[i+n-1].Step().Key, " ")))
			i += n - 1
			continue
		}
		diffLine(w, p)
		if only != DiffOnlyResult {
			diffChanges(w, "input", p.Input, 4)
		}
		if only != DiffOnlyInput {
			diffChanges(w, "result", p.Result, 4)
		}
		diffRest(w, p, 4)
	}
}

// sameFrom is how many pairs from i on are the same, none of which is moved.
func sameFrom(d *histories.Diff, i int) int {
	n := 0
	for ; i+n < len(d.Pairs) && d.Pairs[i+n].Status == histories.DiffSame && !d.Pairs[i+n].Moved; n++ {
	}
	return n
}

// diffLine is a pair in a line: how it is, what it is, and the facts of both.
func diffLine(w *widget.Writer, p *histories.DiffPair) {
	m := pairMark(p.Status, w.S)
	l := w.Line().Add(m.Ink, " "+m.Glyph+" "+text.Fit(m.Word, diffWord, "")).Add(w.S.Text, " "+text.Safe(p.Step().Key, " "))
	w.End(l.Add(w.S.Muted, "  "+diffFacts(p, w.S.Glyphs)))
}

// diffFacts are the events, and what differs in duration, attempts and outcome.
func diffFacts(p *histories.DiffPair, g theme.Glyphs) string {
	of := func(say func(*histories.DiffStep) string) string {
		a, b := g.Dash, g.Dash
		if p.A != nil {
			a = say(p.A)
		}
		if p.B != nil {
			b = say(p.B)
		}
		if a == b {
			return a
		}
		return a + " | " + b
	}
	parts := []string{"event " + of(func(s *histories.DiffStep) string { return strconv.FormatInt(s.Event, 10) })}
	if p.Step().DurationMS > 0 || p.B != nil && p.B.DurationMS > 0 {
		parts = append(parts, of(func(s *histories.DiffStep) string { return stepTookMS(s, g) }))
	}
	if p.A != nil && p.B != nil && p.A.Attempt != p.B.Attempt && takenOver(p) == "" {
		parts = append(parts, "attempts "+of(func(s *histories.DiffStep) string { return strconv.Itoa(int(s.Attempt)) }))
	}
	if status := of(func(s *histories.DiffStep) string { return s.Status }); status != "done" {
		parts = append(parts, status)
	}
	if p.Moved {
		parts = append(parts, "moved")
	}
	if where := takenOver(p); where != "" {
		parts = append(parts, where)
	}
	return strings.Join(parts, "  ")
}

// takenOver says where a step was taken over rather than executed, "" where it was not.
func takenOver(p *histories.DiffPair) string {
	a, b := p.A != nil && p.A.Taken, p.B != nil && p.B.Taken
	switch {
	case a && b:
		return "taken over in both"
	case a:
		return "taken over in A"
	case b:
		return "taken over in B"
	}
	return ""
}

// stepTookMS is how long a step took; one that was taken over took nothing here.
func stepTookMS(s *histories.DiffStep, g theme.Glyphs) string {
	if s.Taken {
		return "taken"
	}
	return widget.TookMS(s.DurationMS, g)
}

// diffRest says what a pair has beside its payloads.
func diffRest(w *widget.Writer, p *histories.DiffPair, indent int) {
	pad := text.Spaces(indent)
	say := func(glyph string, ink theme.Ink, s *histories.DiffStep) {
		if s != nil && s.Error != "" {
			w.Prose(pad+"  "+glyph+" ", ink, s.Error)
		}
	}
	if a, b := p.A, p.B; (a == nil || b == nil || a.Error != b.Error) && (a != nil && a.Error != "" || b != nil && b.Error != "") {
		w.End(w.Line().Add(w.S.Strong, pad+"error"))
		say(w.S.Glyphs.Removed, w.S.Removed, a)
		say(w.S.Glyphs.Added, w.S.Added, b)
	}
	if p.More > 0 {
		w.Say(w.S.Muted, pad+text.Count(int64(p.More))+" more changes are not listed")
	}
	if p.Partial {
		w.Prose(pad, w.S.Muted, "the payload has more values than are looked at one by one: the last ones are compared as wholes")
	}
}

// diffMetrics is the table of figures.
func diffMetrics(w *widget.Writer, d *histories.Diff) {
	taken := slices.ContainsFunc(d.Metrics, func(m histories.DiffMetric) bool { return m.TakenA != 0 || m.TakenB != 0 })
	wide := 16
	if taken {
		wide = 19
	}
	experiments.ComparedCells(w, experiments.ComparedNumber{"", "A", "B", "B" + w.S.Glyphs.Dash + "A"}, wide, w.S.Muted)
	for _, m := range d.Metrics {
		r := diffMetric(m, w.S.Glyphs)
		ink := w.S.Text
		if m.A == m.B && m.TakenA == m.TakenB {
			ink = w.S.Muted
		}
		experiments.ComparedCells(w, r, wide, ink)
	}
	if taken {
		w.Prose(" ", w.S.Muted, "(+N) came with steps that were taken over: it belongs to the original. The difference counts it.")
	}
}

// diffMetric is a figure, written.
func diffMetric(m histories.DiffMetric, g theme.Glyphs) experiments.ComparedNumber {
	write := func(f float64) string { return text.Count(int64(f)) }
	switch m.Unit {
	case "ms":
		write = func(f float64) string { return widget.TookMS(f, g) }
	case "USD":
		write = func(f float64) string { return "$" + strconv.FormatFloat(f, 'f', 4, 64) }
	}
	with := func(own, taken float64) string {
		if taken == 0 {
			return write(own)
		}
		return write(own) + " (+" + write(taken) + ")"
	}
	return experiments.ComparedNumber{m.Name, with(m.A, m.TakenA), with(m.B, m.TakenB), experiments.Signed(m.B+m.TakenB-m.A-m.TakenA, write)}
}
