package logs

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/logfile"
	"acescope/sources/logs"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

type painter struct {
	s         theme.Styles
	width     int
	loc       *time.Location
	raw, wrap bool
	left      int
	search    *regexp.Regexp
	tag       func(path string) string // name of a line's file, nil to omit it
}

const (
	// maxShown is the number of bytes drawn of a line, maxRows the number of rows of a wrapped one.
	maxShown = 16 << 10
	maxRows  = 40
	tagWidth = 14
)

// rows draws an entry: with a pointer at the cursor, and an ellipsis after an unterminated line.
func (p *painter) rows(e logs.Entry, cursor, open bool) []string {
	spans := p.spans(e)
	if open {
		spans = append(spans, widget.Span{p.s.Muted, p.s.Glyphs.Ellipsis})
	}
	spans = p.marked(spans)
	gutter := "  "
	if cursor {
		gutter = text.Fit(p.s.Glyphs.Pointer, 2, "")
	}
	head := func(first bool) *text.Line {
		l := &text.Line{Max: p.width, Tail: p.s.Glyphs.Ellipsis}
		if !first {
			return l.Add(p.s.Muted, "  ")
		}
		return l.Add(p.s.Title, gutter)
	}
	if !p.wrap {
		l := head(true)
		return []string{widget.AddSpans(l, skipCells(spans, p.left)).String(p.s.Text)}
	}
	return p.wrapped(spans, head)
}

// wrapped breaks the spans into rows.
func (p *painter) wrapped(spans []widget.Span, head func(first bool) *text.Line) []string {
	var rows []string
	l := head(true)
	for _, sp := range spans {
		for sp.Text != "" {
			part := text.Cut(sp.Text, l.Rest(), "")
			l.Add(sp.Ink, part)
			if sp.Text = sp.Text[len(part):]; sp.Text == "" {
				break
			}
			if rows = append(rows, l.String(p.s.Text)); len(rows) == maxRows {
				return rows
			}
			if l = head(false); part == "" && text.Width(sp.Text) > 0 && l.Rest() < 2 {
				return rows // no room for a wide character
			}
		}
	}
	return append(rows, l.String(p.s.Text))
}

// skipCells drops the first cells.
func skipCells(spans []widget.Span, cells int) []widget.Span {
	for i, sp := range spans {
		w := text.Width(sp.Text)
		if w > cells {
			if cells > 0 {
				sp.Text = text.Last(sp.Text, w-cells)
			}
			return append([]widget.Span{sp}, spans[i+1:]...)
		}
		cells -= w
	}
	return nil
}

// spans splits an entry into time, level, message and fields, as far as they are known.
func (p *painter) spans(e logs.Entry) (out []widget.Span) {
	s := p.s
	add := func(ink theme.Ink, t string) {
		if t != "" {
			out = append(out, widget.Span{ink, t})
		}
	}
	if p.tag != nil {
		name := text.Fit(p.tag(e.File), tagWidth, s.Glyphs.Ellipsis)
		add(s.Muted, name+" ")
	}
	if e.Note != "" {
		name := ""
		if p.tag == nil {
			name = filepath.Base(e.File) + " "
		}
		add(s.Warning, s.Glyphs.Failed+" "+text.Safe(name+e.Text, " "))
		return out
	}
	body := e.Text[:min(len(e.Text), maxShown)]
	// A line that is cut has no complete fields.
	rec := logfile.Record{Form: logfile.Plain, Message: body}
	if len(e.Text) <= maxShown || !p.raw {
		rec = logfile.Parse([]byte(e.Text))
	}
	if p.raw || rec.Form == logfile.Plain {
		add(p.ink(logfile.SeverityOf(rec.Level)), text.Safe(body, " "+s.Glyphs.Newline+" "))
	} else {
		p.fields(rec, add)
	}
	if n := int64(len(e.Text)-len(body)) + e.Cut; n > 0 && (p.raw || rec.Form == logfile.Plain) {
		add(s.Muted, " ("+ace.Number(n)+" more bytes)")
	}
	if e.Incomplete {
		add(s.Muted, " (incomplete)")
	}
	return out
}

// ink returns the color of a line: errors and warnings stand out.
func (p *painter) ink(l logfile.Severity) theme.Ink {
	if l >= logfile.Warn {
		return levelInk(l, p.s)
	}
	return p.s.Text
}

func (p *painter) fields(rec logfile.Record, add func(theme.Ink, string)) {
	s := p.s
	safe := func(t string) string { return text.Safe(t[:min(len(t), maxShown)], " "+s.Glyphs.Newline+" ") }
	if rec.Time != "" {
		add(s.Muted, p.clock(rec.Time)+" ")
	}
	level := logfile.SeverityOf(rec.Level)
	if rec.Level != "" {
		word := level.String()
		if level == logfile.Unknown {
			word = safe(rec.Level)
		}
		add(levelInk(level, s), text.Fit(strings.ToUpper(word), 5, "")+" ")
	}
	add(p.ink(level), safe(rec.Message))
	for _, f := range rec.Rest {
		if f.Key == "" {
			add(s.Text, " "+safe(f.Value))
			continue
		}
		add(s.Muted, " "+safe(f.Key)+"=")
		add(s.Text, safe(f.Value))
	}
}

// clock returns the time of day of a log time, or the text itself if its format is unknown.
func (p *painter) clock(t string) string {
	if at, err := time.Parse(time.RFC3339Nano, t); err == nil {
		return at.In(p.loc).Format("15:04:05.000")
	}
	if at, err := time.Parse("2006-01-02T15:04:05.999999999Z0700", t); err == nil { // zap's
		return at.In(p.loc).Format("15:04:05.000")
	}
	if n, err := strconv.ParseFloat(t, 64); err == nil && n > 1e8 && n < 1e14 {
		if n < 1e11 { // seconds, not milliseconds
			n *= 1000
		}
		return time.UnixMilli(int64(n)).In(p.loc).Format("15:04:05.000")
	}
	return text.Cut(text.Safe(t, " "), 32, p.s.Glyphs.Ellipsis)
}

// marked highlights the matches of the search.
func (p *painter) marked(spans []widget.Span) []widget.Span {
	if p.search == nil {
		return spans
	}
	var whole strings.Builder
	for _, sp := range spans {
		whole.WriteString(sp.Text)
	}
	hits := p.search.FindAllStringIndex(whole.String(), 64)
	var out []widget.Span
	at := 0 // offset of the span in the line
	for _, sp := range spans {
		end := at + len(sp.Text)
		done := at
		for _, h := range hits {
			from, to := max(h[0], done), min(h[1], end)
			if from >= to {
				continue
			}
			if from > done {
				out = append(out, widget.Span{sp.Ink, sp.Text[done-at : from-at]})
			}
			out = append(out, widget.Span{p.s.Selected, sp.Text[from-at : to-at]})
			done = to
		}
		if done < end {
			out = append(out, widget.Span{sp.Ink, sp.Text[done-at:]})
		}
		at = end
	}
	return out
}
