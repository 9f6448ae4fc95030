package runs

import (
	tea "charm.land/bubbletea/v2"

	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// panelKind is what the side panel of the list shows.
type panelKind uint8

const (
	noPanel panelKind = iota
	facetPanel
	filterPanel
	columnPanel
)

// sidePanel is a list beside the runs, or in their place where the pane is narrow, in
// which one chooses.
type sidePanel struct {
	kind        panelKind
	cursor, top int
	items       []panelItem
}

// panelItem is a line of the panel: a heading, or something to choose.
type panelItem struct {
	heading bool
	on      bool
	label   string
	right   string
	ink     theme.Ink
	choose  func(tui.Shell) tea.Cmd
}

// The panel stands beside the table in a pane that has room for both.
const (
	panelWidth  = 34
	panelBeside = 90
)

func (v *Runs) panelBeside() bool { return v.panel.kind != noPanel && v.width >= panelBeside }

// tableWidth is what the panel leaves for the table.
func (v *Runs) tableWidth() int {
	if v.panelBeside() {
		return v.width - panelWidth - 1
	}
	return v.width
}

// openPanel shows a panel, or closes it where it is open already.
func (v *Runs) openPanel(kind panelKind) {
	if v.panel.kind == kind {
		kind = noPanel
	}
	v.panel = sidePanel{kind: kind}
	v.look()
	v.arrange()
	v.reveal()
	v.fillPanel()
}

// look asks for facets while they are on screen.
func (v *Runs) look() {
	v.feeds.Facets.Look(v.shown && v.panel.kind == facetPanel)
}

// fillPanel makes the lines of the panel. It is small: what there is to choose from.
func (v *Runs) fillPanel() {
	p := &v.panel
	switch p.kind {
	case facetPanel:
		p.items = v.facetItems()
	case filterPanel:
		p.items = v.filterItems()
	case columnPanel:
		p.items = v.columnItems()
	default:
		p.items = nil
	}
	p.move(0)
}

// move moves the cursor over what can be chosen.
func (p *sidePanel) move(by int) {
	n := len(p.items)
	p.cursor = widget.Clamp(p.cursor+by, 0, max(n-1, 0))
	step := 1
	if by < 0 {
		step = -1
	}
	for _, step := range []int{step, -step} {
		for at := p.cursor; at >= 0 && at < n; at += step {
			if !p.items[at].heading {
				p.cursor = at
				return
			}
		}
	}
}

func (p *sidePanel) choose(s tui.Shell) tea.Cmd {
	if p.cursor >= len(p.items) || p.items[p.cursor].choose == nil {
		return nil
	}
	return p.items[p.cursor].choose(s)
}

func (v *Runs) panelTitle() (title, hint string) {
	switch v.panel.kind {
	case facetPanel:
		return "Facets", "space picks, - clears, f closes"
	case filterPanel:
		return "Saved filters", "enter applies, F closes"
	}
	return "Columns", "space shows or hides, c closes"
}

// drawPanel is exactly height lines of the width.
func (v *Runs) drawPanel(width, height int, focused bool) []string {
	v.fillPanel()
	s, p := v.Styles, &v.panel
	title, hint := v.panelTitle()
	head := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	head.Add(s.Title, " "+title).Add(s.Muted, "  "+v.panelState())
	lines := append(make([]string, 0, height), head.String(s.Text))
	room := max(height-2, 1)
	p.top = widget.Clamp(p.top, p.cursor-room+1, p.cursor)
	if p.top = widget.Clamp(p.top, 0, max(len(p.items)-room, 0)); p.top == 1 && p.cursor < room {
		p.top = 0 // the first heading
	}
	for i := p.top; i < min(p.top+room, len(p.items)); i++ {
		lines = append(lines, drawItem(p.items[i], i == p.cursor, focused, width, s))
	}
	lines = widget.Fill(lines, width, height-1)
	foot := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	foot.Add(s.Hint, " "+hint)
	return widget.Fill(append(lines, foot.String(s.Text)), width, height)
}

func drawItem(it panelItem, cursor, focused bool, width int, s theme.Styles) string {
	l := text.Line{Max: width - text.Width(it.right) - 1, Tail: s.Glyphs.Ellipsis}
	if it.heading {
		l.Add(s.Strong, " "+it.label)
		return text.Fit(l.String(s.Text)+s.Muted.Paint(it.right)+" ", width, "")
	}
	pointer, box := "  ", "[ ] "
	if cursor {
		pointer = s.Glyphs.Pointer + " "
	}
	if it.on {
		box = "[x] "
	}
	if cursor && focused {
		l.Add(theme.Ink{}, pointer+box+it.label)
		return s.Selected.Paint(text.Fit(l.String(theme.Ink{})+it.right, width, ""))
	}
	l.Add(s.Text, pointer).Add(s.Muted, box).Add(it.ink, it.label)
	return text.Fit(l.String(s.Text)+s.Muted.Paint(it.right), width, "")
}

// panelState is a remark beside the panel's title.
func (v *Runs) panelState() string {
	switch f := v.listing.Counted; {
	case v.panel.kind != facetPanel:
		return ""
	case f == nil || f.Query != v.listing.Runs.Query:
		return "counting" + v.Styles.Glyphs.Ellipsis
	case f.Err != "":
		return "not counted: " + text.Safe(f.Err, " ")
	}
	return ""
}
