// Package text makes untrusted text safe to draw and fits text into cells. It is a
// leaf and keeps no state.
//
// Names, arguments, results and log lines come from models, tools and files, so they
// are input to the terminal that an attacker may have written. [Safe] leaves only
// printable characters in one line: nothing it returns can move the cursor, change a
// colour, reorder what is beside it or hide. Widths are cells of a terminal.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// TabWidth is how many spaces a tab becomes.
const TabWidth = 4

// Safe is s as one line of printable text: escape sequences, control characters,
// bidirectional controls, joiners and other invisible characters are dropped, a tab
// becomes spaces and a line break becomes newline.
func Safe(s, newline string) string {
	if plain(s) {
		return s
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	s = ansi.Strip(s)
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		switch {
		case r == '\t':
			b.WriteString(strings.Repeat(" ", TabWidth))
		case r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' || r == '\u0085':
			b.WriteString(newline)
		case hidden(r):
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Lines is s as lines of printable text, each made safe, broken where s breaks.
func Lines(s string) []string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, l := range lines {
		lines[i] = Safe(l, " ")
	}
	return lines
}

// Wrap is s as safe lines of at most width cells.
func Wrap(s string, width int) []string {
	var out []string
	for _, l := range Lines(s) {
		out = append(out, strings.Split(ansi.Wrap(l, max(width, 1), ""), "\n")...)
	}
	return out
}

func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			return false
		}
	}
	return true
}

// hidden tells whether a character must not reach the terminal: it is not printable,
// or it changes how its neighbours are drawn or measured without being seen. Emoji
// modifiers and joiners go too, since terminals disagree about the width of what
// they build.
func hidden(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0000 && r <= 0xe0fff: // variation selectors, tags
		return true
	case r >= 0x1f3fb && r <= 0x1f3ff: // skin tones
		return true
	case r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, r == 0x20e3: // blank jamo, keycap
		return true
	case r == utf8.RuneError:
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Cc, unicode.Cs, unicode.Co) || !unicode.IsGraphic(r)
}

// Width is how many cells painted or plain text takes.
func Width(s string) int {
	if plain(s) {
		return len(s)
	}
	return ansi.StringWidth(s)
}

// Cut is s in at most width cells, with tail in place of what was cut away.
func Cut(s string, width int, tail string) string {
	if width <= 0 {
		return ""
	}
	if len(s) <= width && plain(s) {
		return s
	}
	if Width(tail) > width {
		tail = ""
	}
	return ansi.Truncate(s, width, tail)
}

// Last is the end of s in at most width cells. A wide character that would be cut in
// two is left out.
func Last(s string, width int) string {
	w, width := Width(s), max(width, 0)
	for skip := w - width; skip <= w; skip++ {
		if end := ansi.TruncateLeft(s, skip, ""); Width(end) <= width {
			return end
		}
	}
	return ""
}

// Middle is s in at most width cells, with tail in place of what was cut out of its middle:
// ids that begin alike are told apart by their ends.
func Middle(s string, width int, tail string) string {
	if Width(s) <= width {
		return s
	}
	end := Last(s, (width-Width(tail))*3/5)
	if end == "" {
		return Cut(s, width, tail)
	}
	return Cut(s, width-Width(tail)-Width(end), "") + tail + end
}

// Fit is s in exactly width cells, cut or padded on the right.
func Fit(s string, width int, tail string) string {
	s = Cut(s, width, tail)
	return s + Spaces(width-Width(s))
}

// FitLeft is s in exactly width cells, cut or padded on the left.
func FitLeft(s string, width int, tail string) string {
	s = Cut(s, width, tail)
	return Spaces(width-Width(s)) + s
}

const blanks = "                                                                                                                                "

// Spaces is n spaces, none where n is not positive.
func Spaces(n int) string {
	switch {
	case n <= 0:
		return ""
	case n <= len(blanks):
		return blanks[:n]
	}
	return strings.Repeat(" ", n)
}
