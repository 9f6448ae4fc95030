package views

import (
	"time"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// document is the facts of a run as lines. It keeps what it built until the detail,
// the width or the second on the clock is another, and long texts it wrapped for as
// long as they stay the same.
type document struct {
	workflowID, runID string

	detail  *sources.Detail
	width   int
	second  int64
	lines   []string
	wrapped map[wrapKey][]string
}

type wrapKey struct {
	text  string
	width int
}

// maxWrapped bounds the texts that are kept wrapped; maxText the bytes of one text
// that are shown, the rest is counted.
const (
	maxWrapped = 64
	maxText    = 64 << 10
)

func (d *document) of(detail *sources.Detail) bool {
	return d.workflowID == detail.WorkflowID && d.runID == detail.RunID
}

func (d *document) clear() { *d = document{workflowID: d.workflowID, runID: d.runID} }

func (d *document) build(detail *sources.Detail, width int, now time.Time, s theme.Styles, loc *time.Location) []string {
	second := now.Unix()
	if d.detail == detail && d.width == width && d.second == second {
		return d.lines
	}
	w := &writer{doc: d, s: s, width: width, now: now, loc: loc}
	w.trouble(detail)
	w.pending(detail)
	w.experiment(detail.Experiment)
	w.course(detail)
	w.skills(detail.Skills)
	w.delta(detail.Delta)
	w.answer(detail)
	w.reflection(detail.Delta)
	w.calls(detail.Skills)
	w.identity(detail)
	d.detail, d.width, d.second, d.lines = detail, width, second, w.lines
	return d.lines
}

func (d *document) wrap(t string, width int) []string {
	k := wrapKey{t, width}
	if lines, ok := d.wrapped[k]; ok {
		return lines
	}
	shown := t
	if len(shown) > maxText {
		shown = shown[:maxText]
	}
	lines := text.Wrap(shown, width)
	if rest := len(t) - len(shown); rest > 0 {
		lines = append(lines, "("+text.Count(int64(rest))+" more bytes)")
	}
	if d.wrapped == nil || len(d.wrapped) >= maxWrapped {
		d.wrapped = map[wrapKey][]string{}
	}
	d.wrapped[k] = lines
	return lines
}

// writer writes the lines of a document.
type writer struct {
	doc   *document
	s     theme.Styles
	width int
	now   time.Time
	loc   *time.Location
	lines []string
}

// line starts a line; end finishes it.
func (w *writer) line() *text.Line { return &text.Line{Max: w.width, Tail: w.s.Glyphs.Ellipsis} }

func (w *writer) end(l *text.Line) { w.lines = append(w.lines, l.String(w.s.Text)) }

func (w *writer) say(ink theme.Ink, t string) { w.end(w.line().Add(ink, t)) }

// section starts a part with a heading and a remark beside it.
func (w *writer) section(title, remark string) {
	if len(w.lines) > 0 {
		w.say(w.s.Text, "")
	}
	w.end(w.line().Add(w.s.Strong, " "+title).Add(w.s.Muted, "  "+remark))
}

// prose writes a text of many lines, indented below a first label.
func (w *writer) prose(label string, ink theme.Ink, t string) {
	indent := text.Width(label)
	for i, l := range w.doc.wrap(t, w.width-indent-1) {
		head := text.Spaces(indent)
		if i == 0 {
			head = label
		}
		w.end(w.line().Add(w.s.Muted, head).Add(ink, l))
	}
}

// ago is how long before now something was.
func (w *writer) ago(at time.Time) string {
	if at.IsZero() {
		return w.s.Glyphs.Dash
	}
	return text.Span(w.now.Sub(at)) + " ago"
}
