package tui

// The least screen that shows anything but a remark, and the least that shows two
// panes side by side.
const (
	MinWidth  = 40
	MinHeight = 10
	WideWidth = 120
)

// The first view's part of a wide screen in percent: where nobody said anything, how
// much a key changes it, and how far it goes. No pane gets less than minPane cells.
const (
	usualShare = 58
	shareStep  = 4
	minShare   = 20
	maxShare   = 80
	minPane    = 40
)

func (m *Model) tiny() bool { return m.width < MinWidth || m.height < MinHeight }

// wide tells whether panes stand side by side.
func (m *Model) wide() bool {
	return m.width >= WideWidth && len(m.views()) > 1 && !m.zoomed[m.at.screen]
}

// bodyTop is the line at which panes begin: below header, tabs and banner.
func (m *Model) bodyTop() int {
	top := 1
	if len(m.screens) > 1 {
		top++
	}
	if m.banner() != "" {
		top++
	}
	return top
}

// bodyHeight is what is left for panes above prompt and status line.
func (m *Model) bodyHeight() int {
	h := m.height - m.bodyTop() - 1
	if m.prompt != nil {
		h -= m.prompt.height()
	}
	return h
}

// share is the first pane's part of the screen in percent.
func (m *Model) share() int {
	for _, s := range []int{m.shares[m.at.screen], m.screens[m.at.screen].Share} {
		if s != 0 {
			return s
		}
	}
	return usualShare
}

// widths are those of the panes, frames included. A narrow screen has one.
func (m *Model) widths() []int {
	if !m.wide() {
		return []int{m.width}
	}
	left := min(max(m.width*m.share()/100, minPane), m.width-minPane)
	return []int{left, m.width - left}
}

// shown lists the views on screen by index, left to right.
func (m *Model) shown() []int {
	if !m.wide() {
		return []int{m.at.focus}
	}
	return []int{0, max(m.at.focus, 1)}
}

// layout tells each view of the screen its room. One that is hidden gets what it would
// have, so that it is ready when it comes up.
func (m *Model) layout() {
	if m.width == 0 || m.tiny() {
		return
	}
	w, h := m.widths(), m.bodyHeight()
	for i, v := range m.views() {
		v.SetSize(w[min(i, len(w)-1)]-2, h-2)
	}
	if m.prompt != nil {
		m.prompt.resize(m.width)
	}
}

// zoom shows the focused pane alone, or all of them again.
func (m *Model) zoom() {
	switch {
	case len(m.views()) < 2:
		m.Note("this screen has one pane")
	case m.width < WideWidth:
		m.Note("this terminal has room for one pane; " + m.firstKey("shell.next") + " shows the other")
	default:
		m.zoomed[m.at.screen] = !m.zoomed[m.at.screen]
	}
}

// resize gives the first pane more of the screen, or less, as far as that shows.
func (m *Model) resize(by int) {
	if !m.wide() {
		m.Note("there is one pane on screen")
		return
	}
	left := m.widths()[0]
	shown := (left*100 + m.width - 1) / m.width // it may be less or more than what was asked for
	was := m.shares[m.at.screen]
	m.shares[m.at.screen] = min(max(shown+by, minShare), maxShare)
	if m.widths()[0] == left {
		m.shares[m.at.screen] = was
	}
}

// firstKey is the key of a global action for a sentence.
func (m *Model) firstKey(action string) string {
	if keys := m.keysFor(action); len(keys) > 0 {
		return m.keyName(keys[0])
	}
	return "a command"
}
