package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"acescope/theme"
	"acescope/tui/text"
)

// dialog is a box over the screen that takes all keys but ctrl+c.
type dialog interface {
	// key handles a key; height is that of the screen. If closes is true the dialog closes,
	// and then runs afterward unless it is nil.
	key(k tea.KeyPressMsg, height int) (closes bool, then func(Shell) tea.Cmd)
	// draw returns the title and the lines, each at most width-6 cells wide.
	draw(s theme.Styles, width, height int, now time.Time) (title string, lines []string)
	hints() []hint
}

// dialogs holds at most one open dialog of each kind. The first one is shown and takes keys.
type dialogs [3]dialog

const (
	questionDialog = iota
	waitingDialog
	sheetDialog
)

func (d *dialogs) top() dialog {
	for _, open := range d {
		if open != nil {
			return open
		}
	}
	return nil
}

// close closes the top dialog.
func (d *dialogs) close() {
	for i, open := range d {
		if open != nil {
			d[i] = nil
			return
		}
	}
}

// settle closes the dialog of w and reports whether it was open.
func (d *dialogs) settle(w *Waiting) bool {
	open, ok := d[waitingDialog].(*waiting)
	if !ok || open.Waiting != w {
		return false
	}
	d[waitingDialog] = nil
	return true
}

// question is an open [Question].
type question struct {
	Question
	top int // first visible line of a long one
}

func (q *question) key(k tea.KeyPressMsg, height int) (closes bool, then func(Shell) tea.Cmd) {
	for _, c := range q.Others {
		if c.Key == k.String() {
			return true, c.Do
		}
	}
	switch k.String() {
	case "y", "Y":
		return true, func(Shell) tea.Cmd { return q.Do() }
	case "n", "N", "esc", "q":
		return true, nil
	}
	q.top += scrollBy(k, max(height-8, 1))
	return false, nil
}

func (q *question) hints() []hint {
	list := []hint{{"y", q.Yes}}
	for _, c := range q.Others {
		list = append(list, hint{c.Key, c.Yes})
	}
	return append(list, hint{"n", "no"})
}

func (q *question) draw(s theme.Styles, width, height int, _ time.Time) (string, []string) {
	body, title := q.Lines, q.Title
	if q.Long {
		body, title = q.visible(width-8, height-8)
	}
	lines := []string{""}
	if q.Warning != "" {
		for _, l := range text.Wrap(s.Glyphs.Failed+" "+q.Warning, width-8) {
			lines = append(lines, s.Error.Paint(l))
		}
		lines = append(lines, "")
	}
	for _, l := range body {
		lines = append(lines, s.Text.Paint(l))
	}
	var answers []string
	for _, h := range q.hints() {
		answers = append(answers, s.Key.Paint(h.key)+s.Hint.Paint(" "+h.what))
	}
	return title, append(lines, "", strings.Join(answers, "   "), "")
}

// visible returns the visible lines of a long question, and its title with their position.
func (q *question) visible(width, height int) ([]string, string) {
	if q.Warning != "" {
		height -= 1 + len(text.Wrap(q.Warning, width-2))
	}
	var all []string
	for _, l := range q.Lines {
		all = append(all, text.Wrap(l, width)...)
	}
	height = max(height, 1)
	q.top = max(min(q.top, len(all)-height), 0)
	end := min(q.top+height, len(all))
	title := q.Title
	if len(all) > height {
		title += fmt.Sprintf(", %s/%s lines, j/k scroll", text.Count(int64(end)), text.Count(int64(len(all))))
	}
	return all[q.top:end], title
}

// waiting is an open [Waiting].
type waiting struct {
	*Waiting
	since time.Time
}

func (w *waiting) key(k tea.KeyPressMsg, _ int) (closes bool, then func(Shell) tea.Cmd) {
	switch k.String() {
	case "n", "N", "esc", "q":
		return true, func(sh Shell) tea.Cmd {
			if w.Leave != nil {
				w.Leave()
			}
			sh.Note("stopped; nothing was done")
			return nil
		}
	}
	return false, nil
}

func (w *waiting) hints() []hint { return []hint{{"esc", "stop"}} }

func (w *waiting) draw(s theme.Styles, _, _ int, now time.Time) (string, []string) {
	lines := []string{""}
	for _, l := range w.Lines {
		lines = append(lines, s.Text.Paint(l))
	}
	state := "preparing" + s.Glyphs.Ellipsis
	if elapsed := now.Sub(w.since); elapsed >= time.Second {
		state += " " + text.Span(elapsed)
	}
	stop := s.Key.Paint("esc") + s.Hint.Paint(" stop: nothing is done")
	return w.Title, append(lines, s.Running.Paint(state), "", stop, "")
}

// sheet is a scrolling page: the help, the errors.
type sheet struct {
	title string
	keys  []string // that close it, besides esc, q and enter
	lines func(width int) []string
	top   int // first visible line
}

func (s *sheet) key(k tea.KeyPressMsg, height int) (closes bool, then func(Shell) tea.Cmd) {
	if slices.Contains(append([]string{"esc", "q", "enter"}, s.keys...), k.String()) {
		return true, nil
	}
	s.scroll(scrollBy(k, max(height-6, 1)))
	return false, nil
}

func (s *sheet) scroll(by int) { s.top = max(s.top+by, 0) }

func (s *sheet) hints() []hint { return []hint{{"esc", "close"}, {"j/k", "scroll"}} }

// draw stops the scrolling at the last line.
func (s *sheet) draw(_ theme.Styles, width, height int, _ time.Time) (string, []string) {
	lines := s.lines(width - 6)
	room := max(height-4, 1)
	s.top = min(s.top, max(len(lines)-room, 0))
	title := s.title
	if len(lines) > room {
		title += ", j/k scroll"
	}
	return title, lines[s.top:min(s.top+room, len(lines))]
}

// scrollBy returns how many lines a key scrolls a box with pages of the given height.
func scrollBy(k tea.KeyPressMsg, page int) int {
	const far = 1 << 20 // more than any box has
	return map[string]int{"j": 1, "down": 1, "k": -1, "up": -1,
		"pgdown": page, "space": page, "ctrl+f": page, "ctrl+d": page / 2,
		"pgup": -page, "ctrl+b": -page, "ctrl+u": -page / 2,
		"g": -far, "home": -far, "G": far, "end": far}[k.String()]
}

// box frames lines for an overlay; it is at most width cells wide.
func box(s theme.Styles, width int, title string, lines []string) []string {
	f, ink := s.Glyphs.Heavy, s.Focus
	w := min(max(text.Width(title)+2, widest(lines)), width-4)
	head := text.Line{Max: w + 2}
	head.Add(ink, f.Top).Add(s.Title, " "+title+" ").Add(ink, strings.Repeat(f.Top, max(head.Room(), 0)))
	out := []string{ink.Paint(f.TopLeft) + head.String(ink) + ink.Paint(f.TopRight)}
	side := ink.Paint(f.Side)
	for _, l := range lines {
		out = append(out, side+" "+text.Fit(l, w, s.Glyphs.Ellipsis)+" "+side)
	}
	return append(out, ink.Paint(f.BottomLeft+strings.Repeat(f.Bottom, w+2)+f.BottomRight))
}

// overlay puts a box over the middle of a frame.
func overlay(lines, box []string, width int) {
	putOver(lines, box, max((width-text.Width(box[0]))/2, 0), max((len(lines)-len(box))/2, 0), width)
}

// putOver puts a box over a frame with its upper left corner at a cell.
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
