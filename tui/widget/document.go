package widget

import (
	"time"

	"acescope/engine/ace"
	"acescope/theme"
	"acescope/tui/text"
)

// Document caches the lines that a view draws for a run. They are valid until their source, the width or the
// current second changes. It also caches wrapped texts.
type Document struct {
	WorkflowID, RunID string

	Of      any // what Lines were built from, compared by ==
	Width   int
	Second  int64
	Lines   []string
	wrapped map[wrapKey][]string
}

type wrapKey struct {
	text  string
	width int
}

// maxWrapped bounds the number of wrapped texts in the cache, maxText the shown bytes of one
// text; the rest is counted.
const (
	maxWrapped = 64
	MaxText    = 64 << 10
)

func (d *Document) Clear() { *d = Document{WorkflowID: d.WorkflowID, RunID: d.RunID} }

func (d *Document) Wrap(t string, width int) []string {
	k := wrapKey{t, width}
	if lines, ok := d.wrapped[k]; ok {
		return lines
	}
	shown := t
	if len(shown) > MaxText {
		shown = shown[:MaxText]
	}
	lines := text.Wrap(shown, width)
	if rest := len(t) - len(shown); rest > 0 {
		lines = append(lines, "("+ace.Number(rest)+" more bytes)")
	}
	if d.wrapped == nil || len(d.wrapped) >= maxWrapped {
		d.wrapped = map[wrapKey][]string{}
	}
	d.wrapped[k] = lines
	return lines
}

// Writer writes the lines of a document.
type Writer struct {
	Doc   *Document
	S     theme.Styles
	Width int
	Now   time.Time
	Loc   *time.Location
	Lines []string

	Labels int // width of the labels of facts
}

// Line starts a line; end finishes it.
func (w *Writer) Line() *text.Line            { return &text.Line{Max: w.Width, Tail: w.S.Glyphs.Ellipsis} }
func (w *Writer) End(l *text.Line)            { w.Lines = append(w.Lines, l.String(w.S.Text)) }
func (w *Writer) Say(ink theme.Ink, t string) { w.End(w.Line().Add(ink, t)) }

// Section starts a part with a heading and a remark beside it, or below it if it is longer than the line.
func (w *Writer) Section(title, remark string) {
	if len(w.Lines) > 0 {
		w.Say(w.S.Text, "")
	}
	l := w.Line().Add(w.S.Strong, " "+title)
	if text.Width(remark)+2 <= l.Rest() {
		w.End(l.Add(w.S.Muted, "  "+remark))
		return
	}
	w.End(l)
	w.Prose("   ", w.S.Muted, remark)
}

// Prose writes a text of many lines, indented below a first label.
func (w *Writer) Prose(label string, ink theme.Ink, t string) {
	indent := text.Width(label)
	for i, l := range w.Doc.Wrap(t, w.Width-indent-1) {
		head := If(i == 0, label, text.Spaces(indent))
		w.End(w.Line().Add(w.S.Muted, head).Add(ink, l))
	}
}

// Fact writes a labeled value unless the value is empty.
func (w *Writer) Fact(label string, ink theme.Ink, value string) {
	if value != "" {
		w.Prose(" "+text.Fit(label, w.Labels, ""), ink, value)
	}
}

// Ago returns the time from at to now, in words.
func (w *Writer) Ago(at time.Time) string {
	return If(at.IsZero(), w.S.Glyphs.Dash, text.Span(w.Now.Sub(at))+" ago")
}
