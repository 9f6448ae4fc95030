package console

import (
	"time"

	"acescope/engine/ace"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// Reader is a pane that shows a document.
type Reader struct {
	Pane
	Location *time.Location
	Pointer  bool     // a cursor moves from line to line
	Head     []string // lines above the document, which do not scroll
	Lines    []string // of the document
	Cursor   int      // line, if there is a pointer
	Top      int      // first visible line
	doc      widget.Document
	of       document
}

// document identifies what the lines were written from.
type document struct {
	key, of any
	width   int
}

func NewReader(name string, location *time.Location) Reader {
	return Reader{Pane: NewPane(name), Location: location}
}

func (r *Reader) SetStyles(s theme.Styles) {
	r.Styles, r.of = s, document{}
	r.doc.Clear()
}

// Message replaces the document by a message.
func (r *Reader) Message(head []string, lines ...string) []string {
	r.Lines, r.of = nil, document{}
	return r.Pane.Message(head, lines...)
}

func (r *Reader) Page() int { return max(r.Height-len(r.Head), 1) }

// Scroll moves the cursor, or without a pointer the document.
func (r *Reader) Scroll(by int) {
	last := max(len(r.Lines)-r.Page(), 0)
	if !r.Pointer {
		r.Top = widget.Clamp(r.Top+by, 0, last)
		return
	}
	r.Cursor = widget.Clamp(r.Cursor+by, 0, max(len(r.Lines)-1, 0))
	r.Top = widget.TopOf(r.Top, r.Cursor, r.Page(), len(r.Lines))
}

// Footer returns the position, or "" if all lines are visible.
func (r *Reader) Footer() string {
	n, visible := len(r.Lines), widget.Panel{Top: r.Top, Lines: len(r.Lines), Height: r.Page()}
	if r.Pointer && n > r.Page() {
		return ace.Number(r.Cursor+1) + "/" + ace.Number(n)
	}
	return visible.Position()
}

// Show draws a document. With a new key it starts at the top. write is called again if key, of or the width
// changed, or if of is nil.
func (r *Reader) Show(key, of any, now time.Time, focused bool, write func(*widget.Writer)) []string {
	width := r.Width
	if r.Pointer {
		width = max(width-widget.PointerWidth, 1)
	}
	if key != r.of.key {
		r.Cursor, r.Top = 0, 0
	}
	if source := (document{key, of, width}); of == nil || source != r.of {
		r.of = source
		w := &widget.Writer{Doc: &r.doc, S: r.Styles, Width: width, Now: now, Loc: r.Location}
		write(w)
		r.Lines = w.Lines
	}
	r.Scroll(0)
	out := append(make([]string, 0, r.Height), r.Head...)
	for i := r.Top; i < min(r.Top+r.Page(), len(r.Lines)); i++ {
		out = append(out, r.line(i, focused))
	}
	return widget.Fill(out, r.Width, r.Height)
}

func (r *Reader) line(i int, focused bool) string {
	switch g := r.Styles.Glyphs; {
	case !r.Pointer:
		return r.Lines[i]
	case i == r.Cursor && focused:
		return text.Fit(r.Styles.Title.Paint(g.Pointer)+" "+r.Lines[i], r.Width, "")
	default:
		return text.Fit("  "+r.Lines[i], r.Width, "")
	}
}
