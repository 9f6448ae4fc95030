package tui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/theme"
	"acescope/tui/text"
)

// The smallest screen that shows panes, and the smallest that shows two side by side.
const (
	MinWidth  = 40
	MinHeight = 10
	WideWidth = 120
)

// The first view's share of a wide screen in percent: the default, the step of a key, and
// the limits. No pane gets less than minPane cells.
const (
	defaultShare = 58
	shareStep    = 4
	minShare     = 20
	maxShare     = 80
	minPane      = 40
)

// maxTrail bounds the number of places that esc leads back to.
const maxTrail = 32

// place is a screen and the focused pane on it.
type place struct{ screen, focus int }

// step is a place that was left. restore, if set, runs when esc leads back to it.
type step struct {
	place
	restore func()
}

// panes navigates between screens and their panes, and lays them out.
type panes struct {
	screens []Screen
	all     viewList // of all screens, each once
	at      place
	trail   []step // where esc leads, newest last
	seen    []int  // by screen: the pane that had the focus last
	zoomed  []bool // by screen
	shares  []int  // by screen: the first pane's share in percent, 0 for the screen's own
	started bool   // a [Starter] named the current screen

	top, width, height int  // the area of the screen that panes fill
	stale              bool // the data is older than it looks
}

func newPanes(screens []Screen) panes {
	n := len(screens)
	p := panes{screens: screens, seen: make([]int, n), zoomed: make([]bool, n), shares: make([]int, n)}
	for _, s := range screens {
		for _, v := range s.Views {
			if !slices.Contains(p.all, v) {
				p.all = append(p.all, v)
			}
		}
	}
	return p
}

func (p *panes) screen() Screen { return p.screens[p.at.screen] }
func (p *panes) views() []View  { return p.screen().Views }
func (p *panes) focused() View  { return p.views()[p.at.focus] }

// bindings returns the keys that open screens.
func (p *panes) bindings() []Binding {
	if len(p.screens) < 2 {
		return nil
	}
	var out []Binding
	for _, s := range p.screens {
		out = append(out, Binding{Action: "screen." + s.Name, Keys: s.Keys, Help: s.Help,
			Do: func(Shell) tea.Cmd { p.jump(s.Name); return nil }})
	}
	return out
}

// start shows the screen to begin with, as long as the user has not pressed a key.
func (p *panes) start() {
	name := ""
	for _, v := range p.screens[0].Views {
		if starter, ok := v.(Starter); ok {
			name = cmp.Or(name, starter.StartOn())
		}
	}
	switch {
	case name != "" && p.at.screen == 0:
		p.started = p.open(name)
	case name == "" && p.started:
		p.back()
		p.started = false
	}
}

// open shows a screen by name and reports whether it exists.
func (p *panes) open(name string) bool {
	i := slices.IndexFunc(p.screens, func(s Screen) bool { return s.Name == name })
	if i < 0 {
		return false
	}
	p.goTo(place{i, p.seen[i]}, true)
	return true
}

// jump shows a screen that the user named. From a detail, esc leads back to the screen before it; from any
// other screen, to the first screen. If the user came from that detail, jump goes back to it.
func (p *panes) jump(name string) {
	i := slices.IndexFunc(p.screens, func(s Screen) bool { return s.Name == name })
	if i < 0 || i == p.at.screen {
		return
	}
	detail := p.screens[i].Detail || p.screens[i].Aside
	before := slices.IndexFunc(p.trail, func(at step) bool { return at.screen == i })
	switch {
	case !detail:
		p.trail = nil
	case before >= 0:
		p.trail = p.trail[:before]
	}
	p.goTo(place{i, p.seen[i]}, detail && before < 0)
}

// reveal focuses a view, on another screen if the current one does not have it. esc leads back from there.
func (p *panes) reveal(v View) {
	if i := slices.Index(p.views(), v); i >= 0 {
		p.focus(i)
		return
	}
	for i, s := range p.screens {
		if pane := slices.Index(s.Views, v); pane >= 0 {
			p.goTo(place{i, pane}, true)
			return
		}
	}
}

// focus moves the focus to a pane by number, or to the last one if there are fewer.
func (p *panes) focus(pane int) {
	p.goTo(place{p.at.screen, min(max(pane, 0), len(p.views())-1)}, false)
}

// next moves the focus one pane further; esc leads back.
func (p *panes) next() {
	p.goTo(place{p.at.screen, min(p.at.focus+1, len(p.views())-1)}, true)
}

// cycle moves the focus one pane further, after the last to the first.
func (p *panes) cycle() { p.focus((p.at.focus + 1) % len(p.views())) }

// back goes to the previous place, or to the first pane of the first screen.
func (p *panes) back() {
	to := step{}
	if n := len(p.trail); n > 0 {
		to, p.trail = p.trail[n-1], p.trail[:n-1]
	}
	p.goTo(to.place, false)
	if to.restore != nil {
		to.restore()
	}
}

// onReturn sets what runs when esc leads back to the newest place of the trail.
func (p *panes) onReturn(restore func()) {
	if n := len(p.trail); n > 0 {
		p.trail[n-1].restore = restore
	}
}

// leave clears the filter of the focused view, or goes back. It returns what it cleared, or "".
func (p *panes) leave() (note string) {
	if f, ok := p.focused().(Filtered); ok && f.Unfilter() {
		return "filter cleared"
	}
	p.back()
	return ""
}

// goTo shows another place; trail makes esc lead back to the current one.
func (p *panes) goTo(to place, trail bool) {
	if to == p.at {
		return
	}
	if trail {
		p.trail = append(p.trail, step{place: p.at})
		p.trail = p.trail[max(0, len(p.trail)-maxTrail):]
	}
	before := p.views()
	changed := p.at.screen != to.screen
	p.at = to
	p.seen[to.screen] = to.focus
	if changed {
		setShown(before, p.views(), false)
		setShown(p.views(), before, true)
	}
}

// setShown informs the views of a screen, except those in except, that they are shown or hidden.
func setShown(views, except []View, shown bool) {
	for _, v := range views {
		if s, ok := v.(ShownSetter); ok && !slices.Contains(except, v) {
			s.SetShown(shown)
		}
	}
}

// setArea sets the area that panes fill. Hidden views get the size that they would have, so
// that they are ready when they are shown.
func (p *panes) setArea(top, width, height int) {
	p.top, p.width, p.height = top, width, height
	w := p.widths()
	for i, v := range p.views() {
		v.SetSize(w[min(i, len(w)-1)]-2, height-2)
	}
}

// wide reports whether panes are shown side by side.
func (p *panes) wide() bool {
	return p.width >= WideWidth && len(p.views()) > 1 && !p.zoomed[p.at.screen]
}

// widths returns the widths of the visible panes, frames included.
func (p *panes) widths() []int {
	if !p.wide() {
		return []int{p.width}
	}
	share := cmp.Or(p.shares[p.at.screen], p.screen().Share, defaultShare)
	left := min(max(p.width*share/100, minPane), p.width-minPane)
	return []int{left, p.width - left}
}

// visible lists the indexes of the visible views, left to right.
func (p *panes) visible() []int {
	if !p.wide() {
		return []int{p.at.focus}
	}
	return []int{0, max(p.at.focus, 1)}
}

// zoom shows the focused pane alone, or all panes again. It returns why it could not.
func (p *panes) zoom() (problem string) {
	switch {
	case len(p.views()) < 2:
		return "this screen has one pane"
	case p.width < WideWidth:
		return "this terminal has room for one pane"
	}
	p.zoomed[p.at.screen] = !p.zoomed[p.at.screen]
	return ""
}

// resize changes the first pane's share if that has a visible effect. It returns why it could not.
func (p *panes) resize(by int) (problem string) {
	if !p.wide() {
		return "one pane is shown"
	}
	left := p.widths()[0]
	actual := (left*100 + p.width - 1) / p.width // minPane may override the share
	before := p.shares[p.at.screen]
	p.shares[p.at.screen] = min(max(actual+by, minShare), maxShare)
	if p.widths()[0] == left {
		p.shares[p.at.screen] = before
	}
	return ""
}

// spot is a cell of a pane: x and y count inside its frame, so that the frame's own cells
// are at -1 or beyond.
type spot struct {
	pane, x, y int
	inside     bool // the frame
}

// hit returns the spot at a cell of the screen; ok is false outside the panes.
func (p *panes) hit(x, y int) (at spot, ok bool) {
	if y < p.top || y >= p.top+p.height {
		return spot{}, false
	}
	left, visible := 0, p.visible()
	for n, w := range p.widths() {
		if x < left+w {
			px, py := x-left-1, y-p.top-1
			return spot{visible[n], px, py, px >= 0 && px < w-2 && py >= 0 && py < p.height-2}, true
		}
		left += w
	}
	return spot{}, false
}

// paneAt returns the pane that a click at a spot focuses: the one whose name is there, or
// the one that contains the spot.
func (p *panes) paneAt(at spot) int {
	from := 1
	for _, t := range p.titles(at.pane) {
		to := from + text.Width(t.label)
		if at.y == -1 && at.x >= from && at.x < to {
			return t.pane
		}
		from = to
	}
	return at.pane
}

// draw draws the panes side by side.
func (p *panes) draw(s theme.Styles, now time.Time) []string {
	widths := p.widths()
	var lines []string
	for n, i := range p.visible() {
		pane := p.drawPane(i, widths[n], s, now)
		if lines == nil {
			lines = pane
			continue
		}
		for j := range lines {
			lines[j] += pane[j]
		}
	}
	return lines
}

// drawPane draws a view in its frame.
func (p *panes) drawPane(i, width int, s theme.Styles, now time.Time) []string {
	v, focused := p.views()[i], i == p.at.focus
	frame, ink := s.Glyphs.Plain, s.Border
	if focused {
		frame, ink = s.Glyphs.Heavy, s.Focus
	}
	content := v.Draw(now, focused)
	head := text.Line{Max: width - 2, Tail: s.Glyphs.Ellipsis}
	head.Add(ink, frame.Top)
	for _, t := range p.titles(i) {
		titleInk := s.Muted
		if t.pane == i {
			titleInk = s.Title
		}
		head.Add(titleInk, t.label)
	}
	head.Add(ink, strings.Repeat(frame.Top, max(head.Rest(), 0)))
	lines := make([]string, 0, len(content)+2)
	lines = append(lines, ink.Paint(frame.TopLeft)+head.String(ink)+ink.Paint(frame.TopRight))
	side := ink.Paint(frame.Side)
	for _, c := range content {
		lines = append(lines, side+c+side)
	}
	foot := text.Cut(v.Footer(), width-6, s.Glyphs.Ellipsis)
	if foot != "" {
		foot = " " + foot + " "
	}
	rule := strings.Repeat(frame.Bottom, max(width-3-text.Width(foot), 0))
	return append(lines, ink.Paint(frame.BottomLeft+rule)+s.Muted.Paint(foot)+
		ink.Paint(frame.Bottom+frame.BottomRight))
}

// paneTitle is the label of a pane in a pane's upper edge.
type paneTitle struct {
	pane  int
	label string
}

// titles returns the labels in the upper edge of a pane, from the second cell on: its own
// title, and the names of hidden panes.
func (p *panes) titles(i int) []paneTitle {
	var out []paneTitle
	for j, v := range p.views() {
		switch {
		case j == i:
			title := v.Title()
			if p.stale {
				title += " (stale)"
			}
			if p.zoomed[p.at.screen] && p.width >= WideWidth {
				title += " (zoomed)"
			}
			out = append(out, paneTitle{j, " " + title + " "})
		case !p.wide():
			out = append(out, paneTitle{j, " [" + v.Name() + "] "})
		}
	}
	return out
}

// hints lists the keys of the focused pane for the status line, the most specific first. The last one, the
// help, stays when others have no room.
func (p *panes) hints(keys *keymap) (list []hint, last hint) {
	var shell []hint
	here := p.screen().Name
	for _, b := range keys.active(p.focused().Bindings()) {
		if b.Short == "" || len(b.Keys) == 0 || b.Hints != nil && !slices.Contains(b.Hints, here) {
			continue
		}
		h := hint{keys.name(b.Keys[0]), b.Short}
		switch {
		case b.Action == "shell.help":
			last = h
		case b.Action == "shell.open" && (p.at.focus > 0 || len(p.views()) == 1): // no pane to open
		case strings.HasPrefix(b.Action, "shell."):
			shell = append(shell, h)
		default:
			list = append(list, h)
		}
	}
	return append(list, shell...), last
}

// tab is the place of a screen in the line of tabs: from is its first cell, to the cell after its last.
type tab struct {
	screen, from, to int
	label            string
}

// tabs places the screens in a line: with full names if there is room, otherwise with short ones, otherwise
// with the names that fit from the left, and the name of the current screen. One cell before each label is
// for the pointer.
func (p *panes) tabs(keys *keymap) []tab {
	full := func(i int) string { return p.screens[i].Name }
	short := func(i int) string { return cmp.Or(p.screens[i].Short, p.screens[i].Name) }
	for _, gap := range []int{1, 0} {
		if out, width := p.tabsNamed(keys, full, gap); width <= p.width {
			return out
		}
	}
	for named := len(p.screens); ; named-- {
		out, width := p.tabsNamed(keys, func(i int) string {
			switch {
			case i == p.at.screen:
				return full(i)
			case i < named:
				return short(i)
			}
			return ""
		}, 0)
		if width <= p.width || named == 0 {
			return out
		}
	}
}

// tabsNamed returns the tabs with one way of naming and a gap between them, and their width.
func (p *panes) tabsNamed(keys *keymap, name func(screen int) string, gap int) (out []tab, width int) {
	for i, s := range p.screens {
		if s.Aside && i != p.at.screen {
			continue
		}
		label := cmp.Or(name(i), s.Name)
		if key := keys.firstKey("screen." + s.Name); key != "" {
			label = strings.TrimRight(key+" "+name(i), " ")
		}
		w := text.Width(label) + 1
		out = append(out, tab{i, width, width + w, label})
		width += w + gap
	}
	return out, width
}

// drawTabs draws the line of tabs; a pointer marks the current screen.
func (p *panes) drawTabs(keys *keymap, s theme.Styles) string {
	l := text.Line{Max: p.width}
	for _, t := range p.tabs(keys) {
		l.Pad(s.Bar, t.from)
		ink, mark := s.BarMuted, " "
		if t.screen == p.at.screen {
			ink, mark = s.BarStrong, s.Glyphs.Pointer
		}
		l.Add(ink, mark+t.label)
	}
	return l.String(s.Bar)
}
