package diff

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"acescope/sources/histories"
	"acescope/sources/playbooks"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
	"acescope/views/experiments"
)

// DiffOnly selects pairs: all, those that differ, or those whose input or result differs.
type DiffOnly string

const (
	DiffEvery       DiffOnly = ""
	DiffOnlyChanged DiffOnly = "changed"
	DiffOnlyInput   DiffOnly = "input"
	DiffOnlyResult  DiffOnly = "result"
)

// Shows reports whether a pair is selected.
func (o DiffOnly) Shows(p *histories.DiffPair) bool {
	single := p.Status == histories.DiffOnlyA || p.Status == histories.DiffOnlyB
	switch o {
	case DiffOnlyChanged:
		return differs(p)
	case DiffOnlyInput:
		return single || len(p.Input) > 0
	case DiffOnlyResult:
		return single || differs(p) && (len(p.Result) > 0 || len(p.Input) == 0)
	}
	return true
}

// DiffText returns a comparison of two runs, named a and b, as lines: the summary, the pairs that only
// selects with their changes unless pairs is false, and the metrics.
func DiffText(d *histories.Diff, a, b string, only DiffOnly, pairs bool, width int, s theme.Styles) []string {
	w := &widget.Writer{Doc: &widget.Document{}, S: s, Width: width, Now: time.Now(), Loc: time.Local}
	writeSummary(w, d, a, b)
	if pairs {
		w.Say(s.Text, "")
		writePairs(w, d, only)
	}
	w.Say(s.Text, "")
	writeMetrics(w, d)
	return w.Lines
}

// writeSummary writes the two runs, the first difference, notes, and the number of pairs by status.
func writeSummary(w *widget.Writer, d *histories.Diff, a, b string) {
	writeSide(w, "A", a, &d.A)
	writeSide(w, "B", b, &d.B)
	writeVerdict(w, d)
	w.Say(w.S.Muted, " "+countsText(d))
}

func writeSide(w *widget.Writer, side, name string, a *histories.DiffAbout) {
	g := w.S.Glyphs
	facts := []string{text.Safe(console.OrDash(a.Type, g), " "), widget.Counted(a.Events, "event"),
		widget.Counted(a.Steps, "step")}
	if a.Runs > 1 {
		facts = append(facts, strconv.Itoa(a.Runs)+" runs")
	}
	// Paths differ at their ends.
	if name = text.Safe(name, " "); text.Width(name) > w.Width/2 {
		name = g.Ellipsis + text.Last(name, w.Width/2-1)
	}
	l := w.Line().Add(w.S.Muted, " "+side+" ").Add(w.S.Strong, name)
	w.End(l.Add(statusInk(a.Status, w.S), "  "+text.Safe(a.Status, " ")).
		Add(w.S.Muted, "  "+strings.Join(facts, ", ")))
}

func statusInk(status string, s theme.Styles) theme.Ink {
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

// writeVerdict writes the first difference, the first different result, and notes.
func writeVerdict(w *widget.Writer, d *histories.Diff) {
	if d.First == nil {
		w.Prose(" "+w.S.Glyphs.Success+" ", w.S.Success, "no difference"+limitText(d))
	} else {
		w.Prose(" ", w.S.Text, "first difference: "+d.First.Text)
		if r := d.FirstResult; r != nil && r.Text != d.First.Text {
			w.Prose(" ", w.S.Text, "first different result: "+r.Text)
		}
	}
	for _, note := range d.Notes {
		w.Prose(" ", w.S.Warning, note)
	}
}

// limitText returns what was compared, as the end of the sentence "no difference".
func limitText(d *histories.Diff) string {
	switch {
	case d.Counts[histories.DiffUnreadable] > 0:
		return " in readable payloads"
	case d.Counts[histories.DiffNotReached] > 0:
		return " up to the end of the shorter run"
	case d.All:
		return " in any field"
	}
	return ": the runs made the same decisions"
}

// countsText returns the number of pairs by status.
func countsText(d *histories.Diff) string {
	var parts []string
	for _, k := range statusWords {
		if n := d.Counts[k.status]; n > 0 || k.status == histories.DiffSame {
			parts = append(parts, text.Count(int64(n))+" "+k.word)
		}
	}
	return strings.Join(parts, ", ")
}

// statusWords are the statuses of a pair and their words, in the order of countsText.
var statusWords = []struct{ status, word string }{
	{histories.DiffSame, "same"}, {histories.DiffChanged, "changed"}, {histories.DiffOnlyA, "only in A"},
	{histories.DiffOnlyB, "only in B"},
	{histories.DiffMoved, "moved"}, {histories.DiffNotReached, "not reached"},
	{histories.DiffUnreadable, "unreadable"},
}

// statusWidth is the width of the longest word of a status.
const statusWidth = 11

func statusMark(status string, s theme.Styles) theme.Mark {
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
	for _, k := range statusWords {
		if k.status == status {
			m.Word = k.word
		}
	}
	return m
}

// foldFrom is how many equal pairs in a row become one row.
const foldFrom = 4

// equalFrom returns how many pairs from i on are equal and not moved.
func equalFrom(d *histories.Diff, i int) int {
	n := 0
	for ; i+n < len(d.Pairs) && d.Pairs[i+n].Status == histories.DiffSame && !d.Pairs[i+n].Moved; n++ {
	}
	return n
}

// writePairs writes the selected pairs. Many equal pairs in a row become one line.
func writePairs(w *widget.Writer, d *histories.Diff, only DiffOnly) {
	for i := 0; i < len(d.Pairs); i++ {
		p := &d.Pairs[i]
		if !only.Shows(p) {
			continue
		}
		if n := equalFrom(d, i); n >= foldFrom {
			last := &d.Pairs[i+n-1]
			w.Say(w.S.Muted, " = "+text.Count(int64(n))+" equal steps: "+text.Safe(p.Step().Key, " ")+
				" "+w.S.Glyphs.Ellipsis+" "+text.Safe(last.Step().Key, " "))
			i += n - 1
			continue
		}
		writeStep(w, p)
		if only != DiffOnlyResult {
			writeChanges(w, "input", p.Input, 4)
		}
		if only != DiffOnlyInput {
			writeChanges(w, "result", p.Result, 4)
		}
		writeRest(w, p, 4)
	}
}

// writeStep writes status, name and facts of a pair in one line.
func writeStep(w *widget.Writer, p *histories.DiffPair) {
	m := statusMark(p.Status, w.S)
	l := w.Line().Add(m.Ink, " "+m.Glyph+" "+text.Fit(m.Word, statusWidth, "")).
		Add(w.S.Text, " "+text.Safe(p.Step().Key, " "))
	w.End(l.Add(w.S.Muted, "  "+factsText(p, w.S.Glyphs)))
}

// bothSides returns what say returns for both steps of a pair, and a dash for a step that does not exist.
func bothSides(p *histories.DiffPair, g theme.Glyphs, say func(*histories.DiffStep) string) (a, b string) {
	a, b = g.Dash, g.Dash
	if p.A != nil {
		a = say(p.A)
	}
	if p.B != nil {
		b = say(p.B)
	}
	return a, b
}

func eventText(s *histories.DiffStep) string { return strconv.FormatInt(s.Event, 10) }

// factsText returns the events of a pair, durations, attempts and outcomes.
func factsText(p *histories.DiffPair, g theme.Glyphs) string {
	of := func(say func(*histories.DiffStep) string) string {
		a, b := bothSides(p, g, say)
		if a == b {
			return a
		}
		return a + " | " + b
	}
	parts := []string{"event " + of(eventText)}
	if p.Step().DurationMS > 0 || p.B != nil && p.B.DurationMS > 0 {
		parts = append(parts, of(func(s *histories.DiffStep) string { return stepDuration(s, g) }))
	}
	if p.A != nil && p.B != nil && p.A.Attempt != p.B.Attempt && reusedText(p) == "" {
		parts = append(parts, "attempts "+of(func(s *histories.DiffStep) string { return strconv.Itoa(int(s.Attempt)) }))
	}
	if status := of(func(s *histories.DiffStep) string { return s.Status }); status != "done" {
		parts = append(parts, status)
	}
	if p.Moved {
		parts = append(parts, "moved")
	}
	if where := reusedText(p); where != "" {
		parts = append(parts, where)
	}
	return strings.Join(parts, "  ")
}

// reusedText returns which sides reused a step of the original, or "".
func reusedText(p *histories.DiffPair) string {
	a, b := p.A != nil && p.A.Taken, p.B != nil && p.B.Taken
	switch {
	case a && b:
		return "reused in both"
	case a:
		return "reused in A"
	case b:
		return "reused in B"
	}
	return ""
}

func stepDuration(s *histories.DiffStep, g theme.Glyphs) string {
	if s.Taken {
		return "reused"
	}
	return widget.TookMS(s.DurationMS, g)
}

// writeRest writes errors that differ, and which changes are not listed.
func writeRest(w *widget.Writer, p *histories.DiffPair, indent int) {
	pad := text.Spaces(indent)
	errorOf := func(s *histories.DiffStep) string {
		if s == nil {
			return ""
		}
		return s.Error
	}
	if a, b := errorOf(p.A), errorOf(p.B); a != b || a != "" && (p.A == nil || p.B == nil) {
		w.Say(w.S.Strong, pad+"error")
		if a != "" {
			w.Prose(pad+"  "+w.S.Glyphs.Removed+" ", w.S.Removed, a)
		}
		if b != "" {
			w.Prose(pad+"  "+w.S.Glyphs.Added+" ", w.S.Added, b)
		}
	}
	if p.More > 0 {
		w.Say(w.S.Muted, pad+widget.Counted(p.More, "more change")+" not listed")
	}
	if p.Partial {
		w.Prose(pad, w.S.Muted, "the payload has too many values: the last ones are compared as a whole")
	}
}

// writeMetrics writes a table of metrics.
func writeMetrics(w *widget.Writer, d *histories.Diff) {
	isReused := func(m histories.DiffMetric) bool { return m.TakenA != 0 || m.TakenB != 0 }
	reused := slices.ContainsFunc(d.Metrics, isReused)
	width := 16
	if reused {
		width = 19
	}
	experiments.ComparedCells(w, experiments.ComparedNumber{"", "A", "B", "B" + w.S.Glyphs.Dash + "A"}, width,
		w.S.Muted)
	for _, m := range d.Metrics {
		same := m.A == m.B && m.TakenA == m.TakenB
		experiments.ComparedCells(w, metricCells(m, w.S.Glyphs), width, widget.Unless(!same, w.S.Muted, w.S.Text))
	}
	if reused {
		w.Prose(" ", w.S.Muted, "(+N) comes from reused steps of the original and counts in the difference.")
	}
}

func metricCells(m histories.DiffMetric, g theme.Glyphs) experiments.ComparedNumber {
	format := func(f float64) string { return text.Count(int64(f)) }
	switch m.Unit {
	case "ms":
		format = func(f float64) string { return widget.TookMS(f, g) }
	case "USD":
		format = func(f float64) string { return "$" + strconv.FormatFloat(f, 'f', 4, 64) }
	}
	with := func(own, reused float64) string {
		if reused == 0 {
			return format(own)
		}
		return format(own) + " (+" + format(reused) + ")"
	}
	by := experiments.Signed(m.B+m.TakenB-m.A-m.TakenA, format)
	return experiments.ComparedNumber{m.Name, with(m.A, m.TakenA), with(m.B, m.TakenB), by}
}

// besideWidth is the width from which values are written side by side.
const besideWidth = 96

// maxValue bounds the bytes of a value that are shown.
const maxValue = 4096

// writeChanges writes changes by path, both values side by side if they fit.
func writeChanges(w *widget.Writer, what string, list []histories.DiffChange, indent int) {
	pad := text.Spaces(indent)
	for i := range list {
		c := &list[i]
		path := c.Path
		if path == "" {
			path = "(root)"
		}
		w.End(w.Line().Add(w.S.Strong, pad+what).Add(w.S.Accent, " "+text.Safe(path, " ")))
		a, b := valuesOf(c, w.S)
		if w.Width >= besideWidth {
			writeBeside(w, a, b, indent+2)
		} else {
			writeBelow(w, w.S.Glyphs.Removed, w.S.Removed, a, indent+2)
			writeBelow(w, w.S.Glyphs.Added, w.S.Added, b, indent+2)
		}
		if c.Cut {
			w.Say(w.S.Muted, pad+"  (only the beginning)")
		}
	}
}

// piece is text in an ink.
type piece struct {
	ink  theme.Ink
	text string
}

// valuesOf returns both values of a change, nil for a value that does not exist. In two texts the words
// that differ are highlighted.
func valuesOf(c *histories.DiffChange, s theme.Styles) (a, b []piece) {
	x, isText := valueText(c.A)
	y, isText2 := valueText(c.B)
	if isText && isText2 {
		for _, h := range playbooks.WordHunks(x, y) {
			switch h.Kind {
			case playbooks.HunkRemoved:
				a = append(a, piece{s.Removed, h.Text})
			case playbooks.HunkAdded:
				b = append(b, piece{s.Added, h.Text})
			default:
				a, b = append(a, piece{s.Text, h.Text}), append(b, piece{s.Text, h.Text})
			}
		}
		return a, b
	}
	if c.A != nil {
		a = []piece{{s.Removed, x}}
	}
	if c.B != nil {
		b = []piece{{s.Added, y}}
	}
	return a, b
}

// valueText returns a value as it is shown, and whether it is a text of several words.
func valueText(raw json.RawMessage) (string, bool) {
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		if !strings.ContainsAny(s, " \n") {
			return widget.Bounded(string(raw), 0), false
		}
		return widget.Bounded(s, 0), true
	}
	if len(raw) > 60 {
		out, used := widget.Indent(raw, maxValue)
		if rest := len(raw) - used; rest > 0 {
			return string(out) + "\n(" + widget.Counted(rest, "more byte") + ")", false
		}
		return string(out), false
	}
	return string(raw), false
}

// writeBelow writes a value below its path.
func writeBelow(w *widget.Writer, glyph string, ink theme.Ink, list []piece, indent int) {
	if list == nil {
		return
	}
	head := text.Spaces(indent) + glyph + " "
	for i, l := range wrap(list, w.Width-indent-3) {
		if i > 0 {
			head = text.Spaces(text.Width(head))
		}
		w.End(addPieces(w.Line().Add(ink, head), l))
	}
}

// writeBeside writes both values side by side.
func writeBeside(w *widget.Writer, a, b []piece, indent int) {
	g := w.S.Glyphs
	half := (w.Width - indent - 3) / 2
	left, right := wrap(a, half-3), wrap(b, half-3)
	for i := range max(len(left), len(right)) {
		l := w.Line().Add(w.S.Text, text.Spaces(indent))
		put := func(glyph string, ink theme.Ink, lines [][]piece, until int) {
			if i < len(lines) {
				if i > 0 {
					glyph = " "
				}
				addPieces(l.Add(ink, glyph+" "), lines[i])
			}
			l.Pad(w.S.Text, until)
		}
		put(g.Removed, w.S.Removed, left, indent+half)
		l.Add(w.S.Border, g.Plain.Side+" ")
		put(g.Added, w.S.Added, right, w.Width)
		w.End(l)
	}
}

func addPieces(l *text.Line, list []piece) *text.Line {
	for _, p := range list {
		l.Add(p.ink, p.text)
	}
	return l
}

// wrap breaks pieces into lines of a width, between words if possible.
func wrap(list []piece, width int) (lines [][]piece) {
	width = max(width, 8)
	var line []piece
	used := 0
	flush := func() { lines, line, used = append(lines, line), nil, 0 }
	put := func(ink theme.Ink, word string) {
		wide := text.Width(word)
		if used > 0 && used+wide > width {
			flush()
			if strings.TrimSpace(word) == "" {
				return
			}
		}
		for wide > width { // a word that is longer than a line
			head := text.Cut(word, width, "")
			if head == "" {
				break
			}
			line = append(line, piece{ink, head})
			flush()
			word = word[len(head):]
			wide = text.Width(word)
		}
		if word != "" {
			line = append(line, piece{ink, word})
			used += wide
		}
	}
	for _, p := range list {
		for i, l := range strings.Split(strings.ReplaceAll(p.text, "\r\n", "\n"), "\n") {
			if i > 0 {
				flush()
			}
			for _, word := range widget.SplitWords(l) {
				put(p.ink, text.Safe(word, " "))
			}
		}
	}
	if len(line) > 0 || len(list) > 0 && len(lines) == 0 {
		flush()
	}
	return lines
}
