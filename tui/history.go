package tui

import "slices"

// Bounds of what prompts remember: lines by label, labels, and bytes of a line.
const (
	maxPast      = 50
	maxLabels    = 16
	maxPastBytes = 1000
)

// sent remembers a line that was sent at a prompt; a line that was sent before moves to
// the end.
func (m *Model) sent(label, line string) {
	if line == "" || len(line) > maxPastBytes || m.history[label] == nil && len(m.history) == maxLabels {
		return
	}
	past := slices.DeleteFunc(slices.Clone(m.history[label]), func(l string) bool { return l == line })
	past = append(past, line)
	m.history[label] = past[max(0, len(past)-maxPast):]
}
