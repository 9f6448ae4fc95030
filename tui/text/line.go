package text

import "strings"

// Painter puts text in a style. It never changes its width.
type Painter interface{ Paint(string) string }

// Line builds one line of at most Max cells out of painted parts. What does not fit
// is cut; nothing is added after a cut.
type Line struct {
	Max  int
	Tail string // in place of what was cut away

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
	if room := l.Max - l.used; w > room {
		s = Cut(s, room, l.Tail)
		w = Width(s)
		l.full = true
	}
	l.b.WriteString(p.Paint(s))
	l.used += w
	return l
}

// Pad appends spaces in a style until used cells are taken.
func (l *Line) Pad(p Painter, used int) *Line {
	if n := min(used, l.Max) - l.used; n > 0 {
		l.b.WriteString(p.Paint(Spaces(n)))
		l.used += n
	}
	return l
}

// Room is how many cells are left.
func (l *Line) Room() int { return l.Max - l.used }

// String is the line, padded to Max in a style.
func (l *Line) String(p Painter) string {
	l.Pad(p, l.Max)
	return l.b.String()
}
