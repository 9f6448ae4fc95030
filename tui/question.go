package tui

import (
	tea "charm.land/bubbletea/v2"

	"acescope/tui/text"
)

// asking is an open [Question].
type asking struct {
	Question
	top int // first visible line of a long one
}

// Confirm implements [Shell].
func (m *Model) Confirm(q Question) { m.question = &asking{Question: q} }

func (m *Model) questionKey(k tea.KeyPressMsg) tea.Cmd {
	q := m.question
	for _, c := range q.Others {
		if c.Key == k.String() {
			m.question = nil
			return c.Do(m)
		}
	}
	switch k.String() {
	case "y", "Y":
		m.question = nil
		return q.Do()
	case "n", "N", "esc", "q":
		m.question = nil
	default:
		q.top += scrolls(k, max(m.height-8, 1))
	}
	return nil
}

// scrolls is how far a key scrolls a box whose pages have so many lines.
func scrolls(k tea.KeyPressMsg, page int) int {
	return map[string]int{"j": 1, "down": 1, "k": -1, "up": -1, "pgdown": page, "space": page, "ctrl+f": page, "ctrl+d": page / 2,
		"pgup": -page, "ctrl+b": -page, "ctrl+u": -page / 2, "g": -far, "home": -far, "G": far, "end": far}[k.String()]
}

func (m *Model) drawQuestion() []string {
	q, s := m.question, m.styles
	title := q.Title
	said, title := q.body(m.width-8, m.height-8, title)
	lines := []string{""}
	if q.Warning != "" {
		for _, l := range text.Wrap(s.Glyphs.Failed+" "+q.Warning, m.width-8) {
			lines = append(lines, s.Error.Paint(l))
		}
		lines = append(lines, "")
	}
	for _, l := range said {
		lines = append(lines, s.Text.Paint(l))
	}
	answers := s.Key.Paint("y") + s.Hint.Paint(" "+q.Yes)
	for _, c := range q.Others {
		answers += "   " + s.Key.Paint(c.Key) + s.Hint.Paint(" "+c.Yes)
	}
	answers += "   " + s.Key.Paint("n") + s.Hint.Paint(" leave it")
	return m.box(title, append(lines, "", answers, ""))
}

// body is the lines of the question that are visible, and its title, which says where they
// are not all.
func (q *asking) body(width, height int, title string) ([]string, string) {
	if !q.Long {
		return q.Lines, title
	}
	if q.Warning != "" {
		height -= 1 + len(text.Wrap(q.Warning, width-2))
	}
	var all []string
	for _, l := range q.Lines {
		all = append(all, text.Wrap(l, width)...)
	}
	height = max(height, 1)
	q.top = max(min(q.top, len(all)-height), 0)
	if len(all) > height {
		title += ", " + text.Count(int64(min(q.top+height, len(all)))) + "/" + text.Count(int64(len(all))) + " lines, j/k scroll"
	}
	return all[q.top:min(q.top+height, len(all))], title
}
