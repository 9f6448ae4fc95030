package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"acescope/engine/ace"
	"acescope/theme"
	"acescope/tui/text"
)

// dialog is a box over the screen that takes all keys but ctrl+c.
type dialog struct {
	title   string
	answers []answer
	hints   []hint
	// draw returns lines of at most width cells. If there is no room for all, those in the middle scroll.
	draw func(s theme.Styles, width int, now time.Time) (above, lines, below []string)
	// keys, if set, handles all keys instead of answers; see [dialog.key].
	keys func(k tea.KeyPressMsg, height int) (closes bool, then func(Shell) tea.Cmd)
	top  int // first visible line
	of   *Waiting
}

// answer closes a dialog by one of its keys. do then runs unless it is nil.
type answer struct {
	keys []string
	do   func(Shell) tea.Cmd
}

// dialogs holds at most one open dialog of each kind. The first one is shown and takes keys.
type dialogs [3]*dialog

const (
	questionDialog = iota
	waitingDialog
	sheetDialog
)

func (d *dialogs) top() *dialog { return cmp.Or(d[:]...) }

// close closes the top dialog.
func (d *dialogs) close() {
	if i := slices.Index(d[:], d.top()); i >= 0 {
		d[i] = nil
	}
}

// key passes a key to the top dialog; height is that of the screen.
func (d *dialogs) key(s Shell, k tea.KeyPressMsg, height int) tea.Cmd {
	closes, then := d.top().key(k, height)
	if closes {
		d.close()
	}
	if then == nil {
		return nil
	}
	return then(s)
}

func (d *dialogs) hints(*keymap) []hint { return d.top().hints }

// settle closes the dialog of w and reports whether it was open.
func (d *dialogs) settle(w *Waiting) bool {
	open := d[waitingDialog]
	if open == nil || open.of != w {
		return false
	}
	d[waitingDialog] = nil
	return true
}

// key handles a key; height is that of the screen. If closes is true the dialog closes, and then runs
// afterward unless it is nil.
func (d *dialog) key(k tea.KeyPressMsg, height int) (closes bool, then func(Shell) tea.Cmd) {
	if d.keys != nil {
		return d.keys(k, height)
	}
	for _, a := range d.answers {
		if slices.Contains(a.keys, k.String()) {
			return true, a.do
		}
	}
	d.scroll(scrollBy(k, max(height-8, 1)))
	return false, nil
}

func (d *dialog) scroll(by int) { d.top = max(d.top+by, 0) }

// visible returns the title, with the position if not all lines are visible, and the visible lines.
func (d *dialog) visible(s theme.Styles, width, height int, now time.Time) (title string, lines []string) {
	above, lines, below := d.draw(s, width-6, now)
	space := max(height-4-len(above)-len(below), 1)
	d.top = min(d.top, max(len(lines)-space, 0))
	end := min(d.top+space, len(lines))
	title = d.title
	if len(lines) > space {
		title += fmt.Sprintf(", %s/%s lines", ace.Number(end), ace.Number(len(lines)))
		if d.keys == nil {
			title += ", j/k scroll"
		}
	}
	return title, slices.Concat(above, lines[d.top:end], below)
}

func newQuestion(q Question) *dialog {
	d := &dialog{title: q.Title, hints: []hint{{"y", q.Yes}}}
	for _, c := range q.Others {
		d.hints = append(d.hints, hint{c.Key, c.Yes})
		d.answers = append(d.answers, answer{[]string{c.Key}, c.Do})
	}
	d.hints = append(d.hints, hint{"n", "no"})
	d.answers = append(d.answers, answer{[]string{"y", "Y"}, func(Shell) tea.Cmd { return q.Do() }},
		answer{[]string{"n", "N", "esc", "q"}, nil})
	d.draw = func(s theme.Styles, width int, _ time.Time) (above, lines, below []string) {
		above = []string{""}
		if q.Warning != "" {
			above = append(append(above, painted(s.Error, text.Wrap(s.Glyphs.Failed+" "+q.Warning,
				width-2))...), "")
		}
		for _, l := range q.Lines {
			if q.Long {
				lines = append(lines, painted(s.Text, text.Wrap(l, width-2))...)
			} else {
				lines = append(lines, s.Text.Paint(text.Safe(l, " ")))
			}
		}
		var answers []string
		for _, h := range d.hints {
			answers = append(answers, s.Key.Paint(h.key)+s.Hint.Paint(" "+h.what))
		}
		return above, lines, []string{"", strings.Join(answers, "   "), ""}
	}
	return d
}

func painted(ink theme.Ink, lines []string) []string {
	for i, l := range lines {
		lines[i] = ink.Paint(l)
	}
	return lines
}

func newWaiting(w *Waiting, since time.Time) *dialog {
	leave := func(sh Shell) tea.Cmd {
		if w.Leave != nil {
			w.Leave()
		}
		sh.Note("stopped; nothing was done")
		return nil
	}
	draw := func(s theme.Styles, _ int, now time.Time) (above, lines, below []string) {
		state := "preparing" + s.Glyphs.Ellipsis
		if elapsed := now.Sub(since); elapsed >= time.Second {
			state += " " + text.Span(elapsed)
		}
		stop := s.Key.Paint("esc") + s.Hint.Paint(" stop: nothing is done")
		return []string{""}, painted(s.Text, slices.Clone(w.Lines)),
			[]string{s.Running.Paint(state), "", stop, ""}
	}
	answers := []answer{{[]string{"n", "N", "esc", "q"}, leave}}
	return &dialog{title: w.Title, answers: answers, hints: []hint{{"esc", "stop"}}, draw: draw, of: w}
}

// newSheet returns a page of lines. Keys close it, besides esc, q and enter.
func newSheet(title string, keys []string, lines func(s theme.Styles, width int) []string) *dialog {
	return &dialog{
		title: title, answers: []answer{{append([]string{"esc", "q", "enter"}, keys...), nil}},
		hints: []hint{{"esc", "close"}, {"j/k", "scroll"}},
		draw: func(s theme.Styles, width int, _ time.Time) (above, all, below []string) {
			return nil, lines(s, width), nil
		},
	}
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
	title = text.Safe(title, " ")
	w := min(max(text.Width(title)+2, widest(lines)), width-4)
	head := text.Line{Max: w + 2}
	head.Add(ink, f.Top).Add(s.Title, " "+title+" ").Add(ink, strings.Repeat(f.Top, max(head.Rest(), 0)))
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
