package tui

import "slices"

// Screen is one or two views that are shown together: side by side where there is
// room, else one at a time. A view may stand on several screens.
type Screen struct {
	Name    string   // of its tab and of the command that opens it: "runs"
	Short   string   // its name on a tab where there is little room, "" for Name
	Aliases []string // other names of that command
	Keys    []string // that open it from everywhere
	Help    string   // a line in the help
	Aside   bool     // it has a tab only while it is shown
	Views   []View
	// Share is the first view's part of a wide screen in percent; 0 for the usual.
	Share int
}

// place is where one is: a screen, and the pane on it that has the focus.
type place struct{ screen, focus int }

// maxTrail bounds how far back esc leads.
const maxTrail = 32

func (m *Model) views() []View { return m.screens[m.at.screen].Views }

func (m *Model) focused() View { return m.views()[m.at.focus] }

// everyView calls fn once for each view of every screen.
func (m *Model) everyView(fn func(View)) {
	for _, v := range m.every {
		fn(v)
	}
}

// viewsOf lists each view of the screens once.
func viewsOf(screens []Screen) (all []View) {
	for _, s := range screens {
		for _, v := range s.Views {
			if !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
	}
	return all
}

// Open implements [Shell]. An unknown name is a mistake in the program; it is noted.
func (m *Model) Open(screen string) {
	if i := m.screenNamed(screen); i >= 0 {
		m.goTo(place{i, m.seen[i]}, true)
		return
	}
	m.fail("there is no screen %s", screen)
}

// screenNamed is the number of a screen, -1 where there is none.
func (m *Model) screenNamed(name string) int {
	for i, s := range m.screens {
		if s.Name == name {
			return i
		}
	}
	return -1
}

// Focus implements [Shell]. The last pane is meant where there are not so many.
func (m *Model) Focus(pane int) {
	m.goTo(place{m.at.screen, min(max(pane, 0), len(m.views())-1)}, false)
}

// goTo shows another place; trail notes the one that is left, for esc.
func (m *Model) goTo(to place, trail bool) {
	if to == m.at {
		return
	}
	if trail {
		m.trail = append(m.trail, m.at)
		m.trail = m.trail[max(0, len(m.trail)-maxTrail):]
	}
	from := m.at
	m.at = to
	m.seen[to.screen] = to.focus
	if from.screen != to.screen {
		m.swap(m.screens[from.screen], m.screens[to.screen])
	}
	m.layout()
}

// swap tells views that they went off or came onto the screen.
func (m *Model) swap(from, to Screen) {
	stays := map[View]bool{}
	for _, v := range to.Views {
		stays[v] = true
	}
	for _, v := range from.Views {
		if !stays[v] {
			v.SetShown(false)
		}
		delete(stays, v)
	}
	for _, v := range to.Views {
		if stays[v] {
			v.SetShown(true)
		}
	}
}

// back goes to where one came from, else to the first pane of the first screen.
func (m *Model) back() {
	to := place{}
	if n := len(m.trail); n > 0 {
		to, m.trail = m.trail[n-1], m.trail[:n-1]
	}
	m.goTo(to, false)
}
