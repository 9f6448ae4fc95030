package agents

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"acescope/sources/sessions"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/run"
)

// How much of an entry is drawn while it is folded, in lines, and of any text at all.
const (
	foldedSaid   = 30
	foldedAside  = 3 // of thinking, results and notes
	foldedBytes  = 4 << 10
	maxTalkLines = 4000
)

// talkPainter draws entries of a conversation as lines.
type talkPainter struct {
	s     theme.Styles
	width int
	loc   *time.Location
}

// talkIndent is where texts begin, behind the time.
const talkIndent = 10

// lines are those of an entry, each exactly as wide as there is room.
func (p talkPainter) lines(e *sessions.TranscriptEntry, open bool) []string {
	d := talkEntry{talkPainter: p, e: e, open: open}
	switch e.Kind {
	case sessions.EntryUser:
		d.head(p.s.Accent, map[bool]string{true: "callback", false: "person"}[e.Callback], strings.TrimSpace(e.Name+"  "+e.Note))
		d.body(p.s.Text, e.Text, e.Cut, foldedSaid)
	case sessions.EntryText:
		d.head(p.s.Success, "agent", strings.TrimSpace(shortModel(e.Model)+speaking(e, p.s.Glyphs)))
		d.body(p.s.Text, e.Text, e.Cut, foldedSaid)
	case sessions.EntryThinking:
		d.head(p.s.Muted, "thinking", "")
		d.body(p.s.Muted, e.Text, e.Cut, foldedAside)
	case sessions.EntryTool:
		d.tool()
	case sessions.EntryError:
		d.head(p.s.Error, p.s.Glyphs.Failed+" error", e.Name)
		d.body(p.s.Error, e.Text, e.Cut, foldedSaid)
	default:
		d.head(p.s.Muted, cmp.Or(text.Safe(e.Name, " "), "note"), "")
		d.body(p.s.Muted, e.Text, e.Cut, foldedAside)
	}
	return d.out
}

type talkEntry struct {
	talkPainter
	e    *sessions.TranscriptEntry
	open bool
	out  []string
}

func (d *talkEntry) line() *text.Line { return &text.Line{Max: d.width, Tail: d.s.Glyphs.Ellipsis} }

func (d *talkEntry) end(l *text.Line) { d.out = append(d.out, l.String(d.s.Text)) }

// begin is a line with the entry's time.
func (d *talkEntry) begin() *text.Line {
	at := "        "
	if !d.e.At.IsZero() {
		at = d.e.At.In(d.loc).Format("15:04:05")
	}
	return d.line().Add(d.s.Muted, at+"  ")
}

func (d *talkEntry) head(ink theme.Ink, who, more string) {
	d.end(d.begin().Add(ink, who).Add(d.s.Muted, "  "+text.Safe(more, " ")))
}

// body writes a text, folded or whole. cut is what it lacks already.
func (d *talkEntry) body(ink theme.Ink, t string, cut, folded int) {
	if strings.TrimSpace(t) == "" && cut == 0 {
		return
	}
	limit, bytes := folded, foldedBytes
	if d.open {
		limit, bytes = maxTalkLines, len(t)
	}
	shown := t
	if len(shown) > bytes {
		shown = shown[:bytes]
	}
	lines := text.Wrap(shown, d.width-talkIndent-1)
	if len(shown) == len(t) && len(lines) == limit+1 {
		limit++ // a line that says that one more follows would be as long
	}
	for _, l := range lines[:min(len(lines), limit)] {
		d.end(d.line().Add(d.s.Text, text.Spaces(talkIndent)).Add(ink, l))
	}
	d.rest(t, shown, len(lines)-limit, cut)
}

// rest says what of a text is not drawn.
func (d *talkEntry) rest(t, shown string, lines, cut int) {
	var parts []string
	if len(shown) < len(t) || lines > 0 {
		more := strings.Count(t[len(shown):], "\n") + max(lines, 0)
		said := text.Count(int64(max(more, 1))) + " more lines"
		if !d.open {
			said += ", o unfolds"
		}
		parts = append(parts, said)
	}
	if cut > 0 {
		parts = append(parts, text.Count(int64(cut))+" bytes are not kept here")
	}
	if len(parts) > 0 {
		d.end(d.line().Add(d.s.Hint, text.Spaces(talkIndent)+d.s.Glyphs.Ellipsis+" "+strings.Join(parts, "; ")))
	}
}

// tool is a call in a line, below it its result; unfolded also its arguments laid out.
func (d *talkEntry) tool() {
	e, g := d.e, d.s.Glyphs
	m := toolMark(e, d.s)
	name := e.Name
	if name == "" {
		name = "result of " + e.CallID
	}
	l := d.begin().Add(m.Ink, m.Glyph+" "+text.Safe(name, " "))
	tail := ""
	if m.Word != "" {
		tail += "  " + m.Word
	}
	if e.Note != "" {
		tail += "  " + text.Cut(text.Safe(e.Note, " "), max(d.width/2, 8), g.Ellipsis)
	}
	if e.Took > 0 {
		tail += "  " + widget.Took(e.Took, g)
	}
	if e.Text != "" && !d.open {
		room := max(l.Room()-text.Width(tail)-2, 4)
		l.Add(d.s.Text, "("+text.Cut(run.Payload(json.RawMessage(e.Text)), room, g.Ellipsis)+")")
	}
	d.end(l.Add(m.Ink, tail))
	if d.open && e.Text != "" {
		d.body(d.s.Tagged, laidOut(e.Text), e.Cut, maxTalkLines)
		d.end(d.line().Add(d.s.Muted, text.Spaces(talkIndent)+g.Arrow))
	}
	ink := d.s.Muted
	if e.Failed() {
		ink = d.s.Error
	}
	d.body(ink, e.Result, e.ResultCut, foldedAside)
}

// laidOut is JSON over several lines, anything else as it is.
func laidOut(raw string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(raw), "", "  ") != nil {
		return raw
	}
	return b.String()
}

func toolMark(e *sessions.TranscriptEntry, s theme.Styles) theme.Mark {
	switch {
	case e.Waits:
		return theme.Mark{Glyph: s.Glyphs.Failed, Word: "waits for you: w", Ink: s.Alert}
	case !e.Done:
		return theme.Mark{Glyph: s.Glyphs.Running, Word: "no result yet", Ink: s.Running}
	case e.Denied:
		return theme.Mark{Glyph: s.Glyphs.Cancelled, Word: "denied", Ink: s.Warning}
	case e.OK:
		return theme.Mark{Glyph: s.Glyphs.Success, Ink: s.Success}
	}
	return theme.Mark{Glyph: s.Glyphs.Wrong, Word: "failed", Ink: s.Failed}
}

// speaking marks a text that is still being written.
func speaking(e *sessions.TranscriptEntry, g theme.Glyphs) string {
	if e.Open {
		return " writing" + g.Ellipsis
	}
	return ""
}
