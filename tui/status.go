package tui

import (
	"slices"
	"strings"
	"time"

	"acescope/theme"
	"acescope/tui/text"
)

// noticeFor is how long a notice or a problem stays in the status line.
const noticeFor = 15 * time.Second

// status is the last line: hints for the keys that work now, and on the right what
// went wrong lately or lastingly.
func (m *Model) status(now time.Time) string {
	s := m.styles
	right, ink := m.trouble(now)
	room := m.width * 2 / 3
	if m.troubled(now) {
		room = m.width - 12 // where a file is wrong stands at the end; the hint for help fits beside it
	}
	right = text.Cut(right, room, s.Glyphs.Ellipsis)
	l := text.Line{Max: m.width - text.Width(right) - 2}
	l.Add(s.Text, " ")
	m.addWork(&l, now)
	list, last := m.hints()
	reserved := 0
	if last.key != "" {
		reserved = last.width()
	}
	for _, h := range list {
		if h.width()+reserved <= l.Room() {
			l.Add(s.Key, h.key).Add(s.Hint, " "+h.what+"  ")
		}
	}
	if reserved > 0 && reserved <= l.Room() {
		l.Add(s.Key, last.key).Add(s.Hint, " "+last.what+"  ")
	}
	return l.String(s.Text) + " " + ink.Paint(right) + " "
}

type hint struct{ key, what string }

func (h hint) width() int { return text.Width(h.key) + text.Width(h.what) + 3 }

// hints lists what the keys do now, the most particular first. The last one, the help,
// stays where others must go for want of room.
func (m *Model) hints() (list []hint, last hint) {
	switch {
	case m.prompt != nil:
		list = []hint{{m.keyName("enter"), "apply"}, {"esc", "leave"}}
		if m.prompt.spec.Complete != nil {
			list = append(list, hint{"tab", "complete"})
		}
		return list, hint{}
	case m.question != nil:
		list = []hint{{"y", m.question.Yes}}
		for _, c := range m.question.Others {
			list = append(list, hint{c.Key, c.Yes})
		}
		return append(list, hint{"n", "leave it"}), hint{}
	case m.waiting.Waiting != nil:
		return []hint{{"esc", "leave it"}}, hint{}
	case m.sheet != nil:
		return []hint{{"esc", "close"}, {"j/k", "scroll"}}, hint{}
	}
	var shell []hint
	here := m.screens[m.at.screen].Name
	for _, b := range m.active() {
		if b.Short == "" || len(b.Keys) == 0 || b.Hints != nil && !slices.Contains(b.Hints, here) {
			continue
		}
		h := hint{m.keyName(b.Keys[0]), b.Short}
		switch {
		case b.Action == "shell.help":
			last = h
		case b.Action == "shell.open" && (m.at.focus > 0 || len(m.views()) == 1): // there is nothing further in
		case strings.HasPrefix(b.Action, "shell."):
			shell = append(shell, h)
		default:
			list = append(list, h)
		}
	}
	return append(list, shell...), last
}

// keyName is how a key is written for a person.
func (m *Model) keyName(k string) string {
	switch k {
	case "enter":
		return m.styles.Glyphs.Enter
	case "pgdown":
		return "pgdn"
	}
	return strings.Replace(k, "ctrl+", "^", 1)
}

// troubled tells whether a fresh error is what the status line says.
func (m *Model) troubled(now time.Time) bool {
	n := m.notice
	return n.text != "" && n.bad && now.Sub(n.at) < noticeFor
}

// trouble is the newest thing worth telling: a notice, a recent problem, or a source
// that is not well.
func (m *Model) trouble(now time.Time) (string, theme.Ink) {
	s := m.styles
	fresh := func(at time.Time) bool { return now.Sub(at) < noticeFor }
	if n := m.notice; n.text != "" && fresh(n.at) {
		if n.bad {
			return s.Glyphs.Failed + " " + text.Safe(n.text, " "), s.Error
		}
		return text.Safe(n.text, " "), s.Accent
	}
	if m.snap == nil {
		return "", s.Text
	}
	if p := m.snap.Problems; len(p) > 0 && fresh(p[len(p)-1].At) {
		return s.Glyphs.Failed + " " + text.Safe(p[len(p)-1].Text, " "), s.Error
	}
	if n := m.snap.Approvals.Count(); n > 0 {
		return s.Glyphs.Failed + " " + approvals(n) + m.whereTo("agents"), s.Alert
	}
	for _, h := range m.snap.Health {
		if !h.OK {
			return s.Glyphs.Failed + " " + text.Safe(h.Name+": "+h.Text, " "), s.Warning
		}
	}
	return "", s.Text
}

func approvals(n int) string {
	if n == 1 {
		return "1 approval waits"
	}
	return text.Count(int64(n)) + " approvals wait"
}

// whereTo says which key leads to a screen, nothing where one is there.
func (m *Model) whereTo(screen string) string {
	if m.screens[m.at.screen].Name == screen {
		return ""
	}
	if keys := m.keysFor("screen." + screen); len(keys) > 0 {
		return ": " + m.keyName(keys[0])
	}
	return ": :" + screen
}
