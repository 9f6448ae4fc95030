package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/tui/text"
)

// Waiting is a dialog that stands until its answer comes, a message that [Settled] makes.
// It can be left before: then Leave is called, and the answer is dropped.
type Waiting struct {
	Title string
	Lines []string // plain, safe text
	Leave func()   // stops what is waited for; nil where that cannot be stopped
}

// waiting is the one that is shown.
type waiting struct {
	*Waiting
	since time.Time
}

type settledMsg struct {
	of  *Waiting
	msg tea.Msg
}

// Settled is the message by which a command answers a [Waiting]: it goes, and msg counts,
// unless it was left.
func Settled(w *Waiting, msg tea.Msg) tea.Msg { return settledMsg{w, msg} }

// Wait implements [Shell].
func (m *Model) Wait(w *Waiting) { m.waiting = waiting{w, m.now()} }

// settled takes the answer, where somebody still waits for it.
func (m *Model) settled(s settledMsg) tea.Cmd {
	if m.waiting.Waiting != s.of {
		return nil
	}
	m.waiting = waiting{}
	_, cmd := m.Update(s.msg)
	return cmd
}

func (m *Model) waitingKey(k tea.KeyPressMsg) {
	switch k.String() {
	case "n", "N", "esc", "q":
		leave := m.waiting.Leave
		m.waiting = waiting{}
		if leave != nil {
			leave()
		}
		m.Note("left; nothing was done")
	}
}

func (m *Model) drawWaiting(now time.Time) []string {
	w, s := m.waiting, m.styles
	lines := []string{""}
	for _, l := range w.Lines {
		lines = append(lines, s.Text.Paint(l))
	}
	state := "preparing" + s.Glyphs.Ellipsis
	if took := now.Sub(w.since); took >= time.Second {
		state += " " + text.Span(took)
	}
	return m.box(w.Title, append(lines, s.Running.Paint(state), "", s.Key.Paint("esc")+s.Hint.Paint(" leave it: nothing is done"), ""))
}
