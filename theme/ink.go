package theme

import (
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Ink is a style worked out once: the escape sequence that opens it. Painting costs
// one concatenation, so that a frame of thousands of cells is cheap. The zero Ink
// changes nothing.
type Ink struct {
	open   string
	fg, bg string
	attrs  Attr
}

// Attr is a set of text attributes.
type Attr uint8

// Attributes.
const (
	Bold Attr = 1 << iota
	Faint
	Underline
	Reverse
)

// NewInk is an ink of two colours, as [Theme] writes them, and attributes.
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

// Paint is s in this ink. s must not itself hold painted text.
func (i Ink) Paint(s string) string {
	if i.open == "" || s == "" {
		return s
	}
	return i.open + s + ansi.ResetStyle
}

// Over is this ink on the background, and with the attributes, of another.
func (i Ink) Over(base Ink) Ink {
	fg := i.fg
	if fg == "" {
		fg = base.fg
	}
	return NewInk(fg, base.bg, i.attrs|base.attrs)
}

// Lipgloss is the ink as a Lip Gloss style, for components that take one.
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
