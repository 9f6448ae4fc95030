package tui

import (
	"fmt"
	"slices"
	"time"

	"acescope/tui/text"
)

// maxFailures bounds the log of past errors that did not come with a snapshot; the
// oldest go first, and the log says how many.
const maxFailures = 100

// failure is an error that was shown.
type failure struct {
	at   time.Time
	text string
}

// say shows a notice and keeps it, if it is bad news, in the log of past errors.
func (m *Model) say(n noticeMsg) {
	m.notice = notice{n, m.now()}
	if n.bad {
		m.remember(n.text)
	}
}

func (m *Model) remember(text string) {
	m.failures = append(slices.Clone(m.failures), failure{m.now(), text})
	m.failures = m.failures[max(0, len(m.failures)-maxFailures):]
}

// fail shows an error that a key or a command led to.
func (m *Model) fail(format string, args ...any) {
	m.say(noticeMsg{text: fmt.Sprintf(format, args...), bad: true})
}

// Warn shows what went wrong before the console opened: the first for a while, all of
// them in the log of past errors.
func (m *Model) Warn(warnings ...string) {
	for _, w := range warnings {
		m.remember(w)
	}
	switch len(warnings) {
	case 0:
		return
	case 1:
		m.notice = notice{noticeMsg{warnings[0], true}, m.now()}
	default:
		m.notice = notice{noticeMsg{fmt.Sprintf("%d warnings (:errors): %s", len(warnings), warnings[0]), true}, m.now()}
	}
}

// allFailures is the log of past errors, newest first.
func (m *Model) allFailures() []failure {
	all := slices.Clone(m.failures)
	if m.snap != nil {
		for _, p := range m.snap.Problems {
			all = append(all, failure{p.At, p.Text})
		}
	}
	slices.SortStableFunc(all, func(a, b failure) int { return b.at.Compare(a.at) })
	return all
}

func (m *Model) openFailures() {
	m.sheet = &sheet{title: "Errors", keys: m.keysFor("shell.errors"), lines: m.failureLines}
}

// failureLines is the log of past errors, newest first, in lines of at most width.
func (m *Model) failureLines(width int) []string {
	s, all := m.styles, m.allFailures()
	if len(all) == 0 {
		return []string{s.Muted.Paint("nothing went wrong so far")}
	}
	const stamp = "15:04:05  "
	var lines []string
	for _, f := range all {
		for i, l := range text.Wrap(text.Safe(f.text, " "), width-len(stamp)) {
			head := text.Spaces(len(stamp))
			if i == 0 {
				head = f.at.In(m.now().Location()).Format(stamp)
			}
			lines = append(lines, s.Muted.Paint(head)+s.Text.Paint(l))
		}
	}
	if len(m.failures) == maxFailures {
		lines = append(lines, s.Muted.Paint("older ones are dropped"))
	}
	return lines
}
