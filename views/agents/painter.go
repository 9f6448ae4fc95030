package agents

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/transcripts"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// Lines of a folded entry, bytes of a folded text, and lines of an unfolded one.
const (
	foldedText    = 30
	foldedAside   = 3 // thinking, results and notes
	foldedBytes   = 4 << 10
	maxEntryLines = 4000
)

// entryPainter draws the entries of a conversation.
type entryPainter struct {
	s     theme.Styles
	width int
	loc   *time.Location
	folds bool // the key c unfolds the entry
}

// entryIndent is the column of texts, after the time.
const entryIndent = 10

// lines draws an entry. Each line has the full width.
func (p entryPainter) lines(e *transcripts.Entry, open bool) []string {
	d := entryLines{entryPainter: p, e: e, open: open}
	switch e.Kind {
	case transcripts.KindUser:
		who := widget.If(e.Callback, "callback", "user")
		d.head(p.s.Accent, who, strings.TrimSpace(e.Name+"  "+e.Note))
		d.body(p.s.Text, e.Text, e.Cut, foldedText)
	case transcripts.KindText:
		writing := widget.If(e.Open, " writing"+p.s.Glyphs.Ellipsis, "")
		d.head(p.s.Success, "agent", strings.TrimSpace(shortModel(e.Model)+writing))
		d.body(p.s.Text, e.Text, e.Cut, foldedText)
	case transcripts.KindThinking:
		d.head(p.s.Muted, "thinking", "")
		d.body(p.s.Muted, e.Text, e.Cut, foldedAside)
	case transcripts.KindCall:
		d.tool()
	case transcripts.KindError:
		d.head(p.s.Error, p.s.Glyphs.Failed+" error", e.Name)
		d.body(p.s.Error, e.Text, e.Cut, foldedText)
	default:
		d.head(p.s.Muted, cmp.Or(text.Safe(e.Name, " "), "note"), "")
		d.body(p.s.Muted, e.Text, e.Cut, foldedAside)
	}
	return d.out
}

type entryLines struct {
	entryPainter
	e    *transcripts.Entry
	open bool
	out  []string
}

func (d *entryLines) line() *text.Line { return &text.Line{Max: d.width, Tail: d.s.Glyphs.Ellipsis} }
func (d *entryLines) end(l *text.Line) { d.out = append(d.out, l.String(d.s.Text)) }

// begin starts a line with the entry's time.
func (d *entryLines) begin() *text.Line {
	at := "        "
	if !d.e.At.IsZero() {
		at = d.e.At.In(d.loc).Format("15:04:05")
	}
	return d.line().Add(d.s.Muted, at+"  ")
}

func (d *entryLines) head(ink theme.Ink, who, more string) {
	d.end(d.begin().Add(ink, who).Add(d.s.Muted, "  "+text.Safe(more, " ")))
}

// body writes a text, folded or whole. cut is the number of bytes missing from it.
func (d *entryLines) body(ink theme.Ink, t string, cut, folded int) {
	if strings.TrimSpace(t) == "" && cut == 0 {
		return
	}
	limit, bytes := folded, foldedBytes
	if d.open {
		limit, bytes = maxEntryLines, len(t)
	}
	shown := t
	if len(shown) > bytes {
		shown = shown[:bytes]
	}
	lines := text.Wrap(shown, d.width-entryIndent-1)
	if len(shown) == len(t) && len(lines) == limit+1 {
		limit++ // the line "1 more line" would take the same room
	}
	for _, l := range lines[:min(len(lines), limit)] {
		d.end(d.line().Add(d.s.Text, text.Spaces(entryIndent)).Add(ink, l))
	}
	d.rest(t, shown, len(lines)-limit, cut)
}

// rest writes how much of a text is not drawn.
func (d *entryLines) rest(t, shown string, lines, cut int) {
	var parts []string
	if len(shown) < len(t) || lines > 0 {
		more := strings.Count(t[len(shown):], "\n") + max(lines, 0)
		summary := ace.Count(max(more, 1), "more line")
		summary += widget.If(d.folds && !d.open, "; c unfolds", "")
		parts = append(parts, summary)
	}
	if cut > 0 {
		parts = append(parts, ace.Count(cut, "byte")+" not kept")
	}
	if len(parts) > 0 {
		d.end(d.line().Add(d.s.Hint, text.Spaces(entryIndent)+d.s.Glyphs.Ellipsis+" "+
			strings.Join(parts, "; ")))
	}
}

// tool writes a call on a line and its result below; unfolded also its indented arguments.
func (d *entryLines) tool() {
	e, g := d.e, d.s.Glyphs
	m := toolMark(e, d.s)
	name := e.Name
	if name == "" {
		name = "result of " + e.CallID
	}
	l := d.begin().Add(m.Ink, m.Glyph+" "+text.Safe(name, " "))
	tail := ""
	tail += widget.If(m.Word != "", "  "+m.Word, "")
	if e.Note != "" {
		tail += "  " + text.Cut(text.Safe(e.Note, " "), max(d.width/2, 8), g.Ellipsis)
	}
	if e.Took > 0 {
		tail += "  " + widget.Duration(e.Took, g)
	}
	if e.Text != "" && !d.open {
		space := max(l.Rest()-text.Width(tail)-2, 4)
		l.Add(d.s.Text, "("+text.Cut(text.Payload(json.RawMessage(e.Text)), space, g.Ellipsis)+")")
	}
	d.end(l.Add(m.Ink, tail))
	if d.open && e.Text != "" {
		d.body(d.s.Tagged, text.Indented(e.Text), e.Cut, maxEntryLines)
		d.end(d.line().Add(d.s.Muted, text.Spaces(entryIndent)+g.Arrow))
	}
	ink := widget.If(e.Failed(), d.s.Error, d.s.Muted)
	d.body(ink, e.Result, e.ResultCut, foldedAside)
}

func toolMark(e *transcripts.Entry, s theme.Styles) theme.Mark {
	switch {
	case e.Waits:
		return theme.Mark{Glyph: s.Glyphs.Failed, Word: "waiting for approval: w", Ink: s.Alert}
	case !e.Done:
		return theme.Mark{Glyph: s.Glyphs.Running, Word: "no result yet", Ink: s.Running}
	case e.Denied:
		return theme.Mark{Glyph: s.Glyphs.Canceled, Word: "denied", Ink: s.Warning}
	case e.OK:
		return theme.Mark{Glyph: s.Glyphs.Success, Ink: s.Success}
	}
	return theme.Mark{Glyph: s.Glyphs.Wrong, Word: "failed", Ink: s.Failed}
}
