// Package text makes untrusted text safe to draw, fits text into cells, and formats numbers.
// It imports no other package of acescope but engine/ace and keeps no state.
//
// Names, arguments, results and log lines come from models, tools and files, so an attacker
// may have written them to control the terminal. [Safe] leaves only printable characters in
// one line: its result cannot move the cursor, change a color, reorder its neighbors or hide.
// Widths are cells of a terminal.
package text

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// TabWidth is how many spaces a tab becomes.
const TabWidth = 4

// Safe returns s as one line of printable text. It drops escape sequences, control characters,
// bidirectional controls, joiners and other invisible characters, and replaces a tab by spaces
// and a line break by newline.
func Safe(s, newline string) string {
	if plain(s) || utf8.ValidString(s) && !strings.ContainsFunc(s, Hidden) {
		return s
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	s = ansi.Strip(s)
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		switch {
		case r == '\t':
			b.WriteString(Spaces(TabWidth))
		case r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' || r == '\u0085':
			b.WriteString(newline)
		case Hidden(r):
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Lines splits s at its line breaks into lines made by [Safe].
func Lines(s string) []string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, l := range lines {
		lines[i] = Safe(l, " ")
	}
	return lines
}

// Wrap returns s as safe lines of at most width cells.
func Wrap(s string, width int) []string {
	width = max(width, 1)
	var out []string
	for _, l := range Lines(s) {
		if len(l) <= width && plain(l) { // most lines, which need no search for graphemes
			out = append(out, l)
			continue
		}
		out = append(out, strings.Split(ansi.Wrap(l, width, ""), "\n")...)
	}
	return out
}

// plain reports whether s consists of printable ASCII only.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			return false
		}
	}
	return true
}

// Hidden reports whether a character must not reach the terminal: it is not printable, or it
// invisibly changes how its neighbors are drawn or measured. Emoji modifiers and joiners are
// included, since terminals disagree about the width of their combinations.
func Hidden(r rune) bool {
	switch { // the most frequent ones first
	case r >= 0x20 && r < 0x7f, r > 0xad && r < 0x300, r >= 0x2500 && r < 0x27c0:
		return false
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

// Width returns how many cells painted or plain text takes.
func Width(s string) int {
	if plain(s) {
		return len(s)
	}
	return ansi.StringWidth(s)
}

// Cut returns s in at most width cells, with tail in place of what was cut off.
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

// Last returns the end of s in at most width cells. A wide character that would be cut in two
// is left out.
func Last(s string, width int) string {
	w, width := Width(s), max(width, 0)
	for skip := w - width; skip <= w; skip++ {
		if end := ansi.TruncateLeft(s, skip, ""); Width(end) <= width {
			return end
		}
	}
	return ""
}

// Middle returns s in at most width cells, with tail in place of what was cut out of the
// middle: IDs with the same beginning differ at their ends.
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

// Fit returns s in exactly width cells, cut or padded on the right.
func Fit(s string, width int, tail string) string {
	s = Cut(s, width, tail)
	return s + Spaces(width-Width(s))
}

// FitLeft returns s in exactly width cells, cut on the right or padded on the left.
func FitLeft(s string, width int, tail string) string {
	s = Cut(s, width, tail)
	return Spaces(width-Width(s)) + s
}

var blanks = strings.Repeat(" ", 128)

// Spaces returns n spaces, or "" if n is negative.
func Spaces(n int) string {
	if n <= len(blanks) {
		return blanks[:max(n, 0)]
	}
	return strings.Repeat(" ", n)
}

// Painter styles text without changing its width.
type Painter interface{ Paint(string) string }

// Line builds one line of at most Max cells out of painted parts. Parts that do not fit are
// cut; nothing is added after a cut.
type Line struct {
	Max  int
	Tail string // in place of what was cut off

	b    strings.Builder
	used int
	full bool
}

// Add appends plain text in a style.
func (l *Line) Add(p Painter, s string) *Line {
	if l.full || s == "" {
		return l
	}
	w := Width(s)
	if space := l.Rest(); w > space {
		s = Cut(s, space, l.Tail)
		w = Width(s)
		l.full = true
	}
	l.b.WriteString(p.Paint(s))
	l.used += w
	return l
}

// Pad appends spaces in a style until the line has used cells.
func (l *Line) Pad(p Painter, used int) *Line {
	if n := min(used, l.Max) - l.used; n > 0 {
		l.b.WriteString(p.Paint(Spaces(n)))
		l.used += n
	}
	return l
}

// Room returns how many cells are left.
func (l *Line) Rest() int { return l.Max - l.used }

// String returns the line, padded to Max in a style.
func (l *Line) String(p Painter) string {
	l.Pad(p, l.Max)
	return l.b.String()
}

// Span formats a duration as an age: "4s", "3m", "2h05m", "5d". Less than a second, and a
// negative duration, is "0s".
func Span(d time.Duration) string {
	s := max(int64(d/time.Second), 0)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm", s/60)
	case s < 10*3600:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	case s < 48*3600:
		return fmt.Sprintf("%dh", s/3600)
	}
	return fmt.Sprintf("%dd", s/86400)
}

// Duration formats a measured duration: "40µs", "1.8ms", "12ms", "1.2s", "3m05s", "2h05m".
func Duration(d time.Duration) string {
	switch {
	case d <= 0:
		return "0ms"
	case d < time.Millisecond:
		return fmt.Sprintf("%dµs", max(d/time.Microsecond, 1))
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%dms", d/time.Millisecond)
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, int64(d/time.Second)%60)
	}
	return fmt.Sprintf("%dh%02dm", d/time.Hour, int64(d/time.Minute)%60)
}

// ShortCount formats a number in at most six cells: "980", "12.3k", "4.56M".
func ShortCount(n int64) string {
	for _, u := range []struct {
		of   float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if f := float64(n) / u.of; f >= 0.9995 {
			digits := 2
			if f >= 99.95 {
				digits = 0
			} else if f >= 9.995 {
				digits = 1
			}
			return strconv.FormatFloat(f, 'f', digits, 64) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
