package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"acescope/theme"
	"acescope/tui/text"
)

// draw makes the whole frame. Before the terminal has told its size there is none.
func (m *Model) draw() (string, *tea.Cursor) {
	if m.width <= 0 || m.height <= 0 {
		return "", nil
	}
	if m.tiny() {
		return text.Cut("too small: 40x10 at least", m.width, ""), nil
	}
	now := m.now()
	lines := []string{m.header(now)}
	if len(m.screens) > 1 {
		lines = append(lines, m.drawTabs())
	}
	if b := m.banner(); b != "" {
		lines = append(lines, m.drawBanner(b))
	}
	lines = append(lines, m.body(now)...)
	var cursor *tea.Cursor
	if m.prompt != nil {
		if box := m.listBox(); box != nil {
			putOver(lines, box, 0, len(lines)-len(box), m.width)
		}
		if cursor = m.prompt.cursor(); cursor != nil {
			cursor.Position.Y += len(lines)
		}
		lines = append(lines, m.prompt.draw(m.styles, m.width)...)
	}
	lines = append(lines, m.status(now))
	switch {
	case m.sheet != nil:
		overlay(lines, m.drawSheet(), m.width)
	case m.question != nil:
		overlay(lines, m.drawQuestion(), m.width)
	case m.waiting.Waiting != nil:
		overlay(lines, m.drawWaiting(now), m.width)
	}
	return strings.Join(lines, "\n"), cursor
}

// body draws the panes side by side.
func (m *Model) body(now time.Time) []string {
	widths := m.widths()
	var lines []string
	for n, i := range m.shown() {
		pane := m.pane(i, widths[n], now)
		if lines == nil {
			lines = pane
			continue
		}
		for j := range lines {
			lines[j] += pane[j]
		}
	}
	return lines
}

// pane draws a view in its frame.
func (m *Model) pane(i, width int, now time.Time) []string {
	v, s := m.views()[i], m.styles
	focused := i == m.at.focus
	frame, ink := s.Glyphs.Plain, s.Border
	if focused {
		frame, ink = s.Glyphs.Heavy, s.Focus
	}
	content := v.Draw(now, focused)
	lines := make([]string, 0, len(content)+2)
	lines = append(lines, m.paneTop(i, width, frame, ink))
	side := ink.Paint(frame.Side)
	for _, c := range content {
		lines = append(lines, side+c+side)
	}
	foot := text.Cut(v.Footer(), width-6, s.Glyphs.Ellipsis)
	if foot != "" {
		foot = " " + foot + " "
	}
	rule := strings.Repeat(frame.Bottom, max(width-3-text.Width(foot), 0))
	return append(lines, ink.Paint(frame.BottomLeft+rule)+s.Muted.Paint(foot)+ink.Paint(frame.Bottom+frame.BottomRight))
}

// paneTop is a pane's upper edge: its title, and where they are hidden the names of the
// other panes.
func (m *Model) paneTop(i, width int, frame theme.Frame, ink theme.Ink) string {
	s := m.styles
	l := text.Line{Max: width - 2, Tail: s.Glyphs.Ellipsis}
	l.Add(ink, frame.Top)
	for _, p := range m.titles(i) {
		part := s.Muted
		if p.pane == i {
			part = s.Title
		}
		l.Add(part, p.label)
	}
	l.Add(ink, strings.Repeat(frame.Top, max(l.Room(), 0)))
	return ink.Paint(frame.TopLeft) + l.String(ink) + ink.Paint(frame.TopRight)
}

// paneTitle is what a pane's upper edge says of a pane.
type paneTitle struct {
	pane  int
	label string
}

// titles is what stands in the upper edge of a pane, from the second cell on.
func (m *Model) titles(i int) []paneTitle {
	var out []paneTitle
	for j, v := range m.views() {
		switch {
		case j == i:
			title := v.Title()
			if m.stale() {
				title += " (stale)"
			}
			if m.zoomed[m.at.screen] && m.width >= WideWidth {
				title += " (zoomed)"
			}
			out = append(out, paneTitle{j, " " + title + " "})
		case !m.wide():
			out = append(out, paneTitle{j, " [" + v.Name() + "] "})
		}
	}
	return out
}

// box frames lines of plain width for an overlay.
func (m *Model) box(title string, lines []string) []string {
	f, ink := m.styles.Glyphs.Heavy, m.styles.Focus
	w := text.Width(title) + 2
	for _, l := range lines {
		w = max(w, text.Width(l))
	}
	w = min(w, m.width-4)
	head := text.Line{Max: w + 2}
	head.Add(ink, f.Top).Add(m.styles.Title, " "+title+" ").Add(ink, strings.Repeat(f.Top, max(head.Room(), 0)))
	out := []string{ink.Paint(f.TopLeft) + head.String(ink) + ink.Paint(f.TopRight)}
	for _, l := range lines {
		out = append(out, ink.Paint(f.Side)+" "+text.Fit(l, w, m.styles.Glyphs.Ellipsis)+" "+ink.Paint(f.Side))
	}
	return append(out, ink.Paint(f.BottomLeft+strings.Repeat(f.Bottom, w+2)+f.BottomRight))
}

// overlay puts a box over the middle of a frame.
func overlay(lines, box []string, width int) {
	if len(box) > 0 {
		putOver(lines, box, max((width-text.Width(box[0]))/2, 0), max((len(lines)-len(box))/2, 0), width)
	}
}

// putOver puts a box over a frame, its upper left corner at a cell.
func putOver(lines, box []string, x, y, width int) {
	w := text.Width(box[0])
	for i, b := range box {
		if y+i < 0 {
			continue
		}
		if y+i >= len(lines) {
			return
		}
		under := lines[y+i]
		left := text.Fit(under, x, "")
		right := text.Last(under, width-x-w)
		gap := text.Spaces(width - x - w - text.Width(right))
		lines[y+i] = left + ansi.ResetStyle + b + gap + right
	}
}
