package theme

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Styles is a theme ready to draw with: inks and glyphs by meaning.
type Styles struct {
	Theme  string // its name
	Glyphs Glyphs
	Links  Links
	TextInks
	PaneInks
	StatusInks
	ChangeInks
	series [6]Ink
}

// TextInks are for text in panes and messages.
type TextInks struct {
	Text, Muted, Accent Ink
	Strong              Ink // headings
	Key                 Ink // a key in a hint
	Hint                Ink // what the key does
	Warning, Error      Ink
	Alert               Ink // a whole line that the user must see
}

// PaneInks are for the parts of a screen.
type PaneInks struct {
	Border                   Ink
	Focus                    Ink // the border of the focused pane
	Title                    Ink // the title of the focused pane
	Selected                 Ink // the selected row of the focused pane
	Cursor                   Ink // the selected row of a pane without focus
	Bar, BarStrong, BarMuted Ink // header
}

// StatusInks are for the statuses of runs.
type StatusInks struct {
	Running, Success, Wrong, Failed, Canceled, Timeout, Retrying Ink
}

// ChangeInks are for operations on a playbook and for differences.
type ChangeInks struct {
	Added, Updated, Removed, Tagged Ink
}

// Styles prepares a theme for drawing.
func (t Theme) Styles(g Glyphs) Styles {
	c := t.Colors
	ink := func(fg Color, a Attr) Ink { return NewInk(fg.code, "", a) }
	mutedAttr := Attr(0)
	if c.Muted.code == "" {
		mutedAttr = Faint
	}
	muted := ink(c.Muted, mutedAttr)
	selected := NewInk(c.SelectFG.code, c.SelectBG.code, Bold)
	if c.SelectBG.code == "" {
		selected = NewInk("", "", Reverse)
	}
	bar := NewInk(c.BarFG.code, c.BarBG.code, 0)
	s := Styles{Theme: t.Name, Glyphs: g}
	s.TextInks = TextInks{
		Text: ink(c.Text, 0), Muted: muted, Accent: ink(c.Accent, 0), Strong: ink(c.Text, Bold),
		Key: ink(c.Accent, Bold), Hint: muted,
		Warning: ink(c.Warning, Bold), Error: ink(c.Error, Bold), Alert: ink(c.Error, Bold|Reverse),
	}
	s.PaneInks = PaneInks{
		Border: ink(c.Border, 0), Focus: ink(c.Focus, 0), Title: ink(c.Focus, Bold),
		Selected: selected, Cursor: ink(c.Text, Bold|Underline),
		Bar: bar, BarStrong: ink(c.Accent, Bold).Over(bar), BarMuted: muted.Over(bar),
	}
	s.StatusInks = StatusInks{
		Running: ink(c.Running, 0), Success: ink(c.Success, 0), Wrong: ink(c.Wrong, 0),
		Failed:   ink(c.Failed, Bold),
		Canceled: ink(c.Canceled, 0), Timeout: ink(c.Timeout, 0), Retrying: ink(c.Retrying, Bold),
	}
	s.ChangeInks = ChangeInks{
		Added: ink(c.Added, 0), Updated: ink(c.Updated, 0), Removed: ink(c.Removed, 0),
		Tagged: ink(c.Tagged, 0),
	}
	for i, series := range []Color{c.Series1, c.Series2, c.Series3, c.Series4, c.Series5, c.Series6} {
		s.series[i] = ink(series, 0)
	}
	return s
}

// Series returns the ink of a plot's i-th curve. After the sixth curve the inks repeat, so a
// curve also needs a mark.
func (s Styles) Series(i int) Ink { return s.series[i%len(s.series)] }

// Mark is how a status looks: a glyph and a word, in an ink.
type Mark struct {
	Glyph string
	Word  string
	Ink   Ink
}

// Status returns the mark of a workflow status. An unknown status keeps its word.
func (s Styles) Status(word string) Mark {
	g := s.Glyphs
	switch word {
	case "running":
		return Mark{g.Running, word, s.Running}
	case "completed":
		return Mark{g.Completed, word, s.Text}
	case "failed":
		return Mark{g.Failed, word, s.Failed}
	case "canceled":
		return Mark{g.Canceled, word, s.Canceled}
	case "terminated":
		return Mark{g.Terminated, word, s.Failed}
	case "timed_out":
		return Mark{g.Timeout, "timed out", s.Timeout}
	case "continued_as_new":
		return Mark{g.Continued, "continued", s.Muted}
	}
	return Mark{g.Unknown, word, s.Muted}
}

// Verdict returns the mark of the verdict on an answer; "" is an unknown verdict.
func (s Styles) Verdict(word string) Mark {
	g := s.Glyphs
	switch word {
	case "":
		return Mark{g.Dash, "", s.Muted}
	case "correct":
		return Mark{g.Success, word, s.Success}
	case "wrong":
		return Mark{g.Wrong, word, s.Wrong}
	case "unlabeled":
		return Mark{g.Dash, word, s.Muted}
	}
	return Mark{g.Unknown, word, s.Muted}
}

// Retry returns the mark of a run that has a failed activity attempt.
func (s Styles) Retry() Mark { return Mark{s.Glyphs.Retry, "retrying", s.Retrying} }

// Statuses lists the workflow statuses in the order in which screens show them.
func Statuses() []string {
	return []string{"running", "completed", "failed", "timed_out", "terminated", "canceled"}
}

// Ink is a prepared style: the escape sequence that opens it. Painting costs one
// concatenation, so a frame of thousands of cells is cheap. The zero Ink changes nothing.
type Ink struct {
	open   string
	fg, bg string
	attrs  Attr
	link   string // address of a hyperlink, "" for none
}

// Attr is a set of text attributes.
type Attr uint8

const (
	Bold Attr = 1 << iota
	Faint
	Underline
	Reverse
)

// NewInk returns an ink of two colors, written as in a [Theme], and attributes.
func NewInk(fg, bg string, attrs Attr) Ink {
	var s ansi.Style
	if attrs&Bold != 0 {
		s = s.Bold()
	}
	if attrs&Faint != 0 {
		s = s.Faint()
	}
	if attrs&Underline != 0 {
		s = s.Underline(true)
	}
	if attrs&Reverse != 0 {
		s = s.Reverse(true)
	}
	if fg != "" {
		s = s.ForegroundColor(lipgloss.Color(fg))
	}
	if bg != "" {
		s = s.BackgroundColor(lipgloss.Color(bg))
	}
	ink := Ink{fg: fg, bg: bg, attrs: attrs}
	if len(s) > 0 {
		ink.open = s.String()
	}
	return ink
}

// Paint returns s in this ink. s must not contain painted text.
func (i Ink) Paint(s string) string {
	if s == "" || i.open == "" && i.link == "" {
		return s
	}
	var b strings.Builder
	b.Grow(len(i.open) + len(s) + len(ansi.ResetStyle))
	i.Write(&b, s)
	return b.String()
}

// Write writes parts of a line in this ink. Cells of a row, of which there are many, need no strings of their
// own.
func (i Ink) Write(b *strings.Builder, parts ...string) {
	if i.link != "" {
		b.WriteString(ansi.SetHyperlink(i.link))
		defer b.WriteString(ansi.ResetHyperlink())
	}
	b.WriteString(i.open)
	for _, part := range parts {
		b.WriteString(part)
	}
	if i.open != "" {
		b.WriteString(ansi.ResetStyle)
	}
}

// Over returns this ink on the background, and with the attributes, of another.
func (i Ink) Over(base Ink) Ink {
	fg := i.fg
	if fg == "" {
		fg = base.fg
	}
	return NewInk(fg, base.bg, i.attrs|base.attrs)
}

// Lipgloss returns the ink as a Lip Gloss style, for components that take one.
func (i Ink) Lipgloss() lipgloss.Style {
	s := lipgloss.NewStyle().Bold(i.attrs&Bold != 0).Faint(i.attrs&Faint != 0).
		Underline(i.attrs&Underline != 0).Reverse(i.attrs&Reverse != 0)
	if i.fg != "" {
		s = s.Foreground(lipgloss.Color(i.fg))
	}
	if i.bg != "" {
		s = s.Background(lipgloss.Color(i.bg))
	}
	return s
}

// Glyphs are the special characters of the screen by meaning. Each is one cell wide,
// except that [ASCII] may use two for an arrow.
type Glyphs struct {
	StatusGlyphs
	ChangeGlyphs
	BarGlyphs
	TreeGlyphs

	Dash, Ellipsis, Dot    string
	Newline, Enter         string
	Arrow, Pointer         string
	Refresh, Paused, Micro string

	Plain Frame
	Heavy Frame // of the focused pane
}

// StatusGlyphs are for the statuses of runs.
type StatusGlyphs struct {
	Running, Completed, Success, Wrong, Failed, Canceled, Terminated, Timeout, Continued, Retry, Unknown,
	Pending string
}

// ChangeGlyphs are for operations on a playbook and for differences.
type ChangeGlyphs struct {
	Added, Updated, Removed, Tagged, Merged, Rejected string
	Delta                                             string
}

// BarGlyphs are for bars, curves and strips.
type BarGlyphs struct {
	Full, Empty    string // a bar's filled and empty part
	Shade          string // a bar's part with failed attempts
	Point          string // an event without a duration
	Levels         string // of a curve, lowest first
	Link, LinkTodo string // between two phases of a strip, done and not yet
}

// TreeGlyphs are for trees of runs.
type TreeGlyphs struct {
	Forked         string // a run forked from another
	Branch, Corner string // one of several children, and the last child
	Trunk          string // a vertical line
}

// Frame is the characters of a box.
type Frame struct {
	TopLeft, Top, TopRight          string
	Side                            string
	BottomLeft, Bottom, BottomRight string
}

// Replace returns a text with its arrows, dashes and lines in the characters that the terminal has.
func (g Glyphs) Replace(s string) string {
	return strings.NewReplacer("→", g.Arrow, "…", g.Ellipsis, "–", g.Dash, "µ", g.Micro,
		"│", g.Trunk, "├", g.Branch, "└", g.Corner, "─", g.Plain.Top).Replace(s)
}

// Unicode returns the default glyphs.
func Unicode() Glyphs {
	return Glyphs{
		StatusGlyphs: StatusGlyphs{Running: "●", Completed: "■", Success: "✓", Wrong: "✗",
			Failed: "‼", Canceled: "⊘",
			Terminated: "⊗", Timeout: "◷", Continued: "⇢", Retry: "↻", Unknown: "?", Pending: "○"},
		ChangeGlyphs: ChangeGlyphs{Added: "+", Updated: "~", Removed: "−", Tagged: "#", Merged: "&",
			Rejected: "✗", Delta: "Δ"},
		BarGlyphs: BarGlyphs{Full: "█", Empty: "░", Shade: "▒", Point: "◆", Levels: "▁▂▃▄▅▆▇█",
			Link: "━", LinkTodo: "─"},
		TreeGlyphs: TreeGlyphs{Forked: "↳", Branch: "├", Corner: "└", Trunk: "│"},
		Dash:       "–", Ellipsis: "…", Newline: "⏎", Arrow: "→", Pointer: "▸",
		Refresh: "⟳", Paused: "‖", Enter: "↵", Dot: "·", Micro: "µ",
		Plain: Frame{"┌", "─", "┐", "│", "└", "─", "┘"},
		Heavy: Frame{"┏", "━", "┓", "┃", "┗", "━", "┛"},
	}
}

// ASCII returns the glyphs for terminals whose locale is not UTF-8.
func ASCII() Glyphs {
	return Glyphs{
		StatusGlyphs: StatusGlyphs{Running: "*", Completed: "=", Success: "v", Wrong: "x", Failed: "!",
			Canceled:   "-",
			Terminated: "%", Timeout: "T", Continued: "c", Retry: "@", Unknown: "?", Pending: "o"},
		ChangeGlyphs: ChangeGlyphs{Added: "+", Updated: "~", Removed: "-", Tagged: "#", Merged: "&",
			Rejected: "x", Delta: "D"},
		BarGlyphs: BarGlyphs{Full: "#", Empty: ".", Shade: "%", Point: "^", Levels: "_.-=*#",
			Link: "=", LinkTodo: "-"},
		TreeGlyphs: TreeGlyphs{Forked: "Y", Branch: "|", Corner: "`", Trunk: "|"},
		Dash:       "-", Ellipsis: "~", Newline: " ", Arrow: "->", Pointer: ">",
		Refresh: "@", Paused: "=", Enter: "enter", Dot: "|", Micro: "u",
		Plain: Frame{"+", "-", "+", "|", "+", "-", "+"},
		Heavy: Frame{"#", "=", "#", "#", "#", "=", "#"},
	}
}
