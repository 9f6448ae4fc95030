package tui

// The least screen that shows anything but a remark, and the least that shows two
// panes side by side.
const (
	MinWidth  = 40
	MinHeight = 10
	WideWidth = 120
)

func (m *Model) tiny() bool { return m.width < MinWidth || m.height < MinHeight }

func (m *Model) wide() bool { return m.width >= WideWidth && len(m.views()) > 1 }

// bodyHeight is what is left for panes between header, banner, prompt and status line.
func (m *Model) bodyHeight() int {
	h := m.height - 2
	if m.banner() != "" {
		h--
	}
	if m.prompt != nil {
		h -= promptLines
	}
	return h
}

// widths are those of the panes, frames included. A narrow screen has one.
func (m *Model) widths() []int {
	if !m.wide() {
		return []int{m.width}
	}
	share := m.screens[m.at.screen].Share
	if share == 0 {
		share = usualShare
	}
	left := m.width * share / 100
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
