package run

import (
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Outline is the run row by row.
type Outline struct {
	*reading
	styles        theme.Styles
	width, height int

	Rows   []runRow
	of     *histories.Detail
	stale  bool // rows must be listed anew
	Cursor int
	top    int
	Folded map[part]bool
	open   map[Item]bool   // texts that are unfolded
	doc    widget.Document // keeps texts wrapped
	run    string          // of the rows
	Last   Item            // that the cursor is on
	moved  bool            // somebody moved it in this run: until then it stays at the top
}

func NewStory(r *reading) *Outline {
	return &Outline{reading: r, Folded: map[part]bool{}, open: map[Item]bool{}}
}

func (v *Outline) Name() string { return "Run rows" }

func (v *Outline) Title() string {
	if !v.Selected.Ok {
		return "Run"
	}
	return text.Safe(v.Selected.Run.WorkflowID, " ")
}

// Footer is where the cursor is, and where the knowledge comes from.
func (v *Outline) Footer() string {
	d := v.current()
	if d == nil {
		return ""
	}
	dot := " " + v.styles.Glyphs.Dot + " "
	return string(d.From) + dot + text.Count(d.Events) + " events" + dot +
		text.Count(int64(v.Cursor+1)) + "/" + text.Count(int64(len(v.Rows)))
}

func (v *Outline) Bindings() []tui.Binding {
	do := func(fn func(tui.Shell)) func(tui.Shell) tea.Cmd {
		return func(s tui.Shell) tea.Cmd { v.list(); fn(s); return nil }
	}
	jump := func(by int, is func(*histories.Detail, Item) bool, none string) func(tui.Shell) tea.Cmd {
		return do(func(s tui.Shell) {
			if !v.seek(by, is) {
				s.Note(none)
			}
		})
	}
	section := func(_ *histories.Detail, it Item) bool { return it.Kind == ItemSection }
	b := append(widget.Motions("story", v),
		tui.Binding{Action: "story.next_section", Keys: []string{"]"}, Help: "the next section", Short: "section", Do: jump(1, section, "no further section")},
		tui.Binding{Action: "story.previous_section", Keys: []string{"["}, Help: "the section before", Do: jump(-1, section, "no section before")},
		tui.Binding{Action: "story.fold", Keys: []string{"h", "left"}, Help: "fold the text or the section", Do: do(func(tui.Shell) { v.fold() })},
		tui.Binding{Action: "story.unfold", Keys: []string{"l", "right"}, Help: "unfold the text or the section", Do: do(func(tui.Shell) { v.unfold() })},
		tui.Binding{Action: "story.next_error", Keys: []string{"e"}, Help: "the next error", Short: "error", Do: jump(1, isError, "no error")},
		tui.Binding{Action: "story.previous_error", Keys: []string{"E"}, Help: "the error before", Do: jump(-1, isError, "no error")},
		tui.Binding{Action: "story.find", Keys: []string{"/"}, Help: "find a text in this run, payloads too", Short: "find", Do: v.ask},
		tui.Binding{Action: "story.next", Keys: []string{"n"}, Help: "the next match", Do: func(s tui.Shell) tea.Cmd { v.list(); v.match(s, 1); return nil }},
		tui.Binding{Action: "story.previous", Keys: []string{"N"}, Help: "the match before", Do: func(s tui.Shell) tea.Cmd { v.list(); v.match(s, -1); return nil }},
	)
	if v.Last.Kind == ItemLink || v.Last.Kind == ItemLineage {
		b = append(b, tui.Binding{Action: "story.go", Keys: []string{"enter"}, Help: "open the run that the row names", Short: "open it", Do: v.reading.open})
	}
	b = append(b, tui.Binding{Action: "story.diff", Keys: []string{"d"}, Help: "compare the fork under the cursor, or this one, with its original", Do: v.diff})
	b = append(b, v.ForkAt("story", func() string { v.list(); return v.forkPoint() })...)
	return append(b, v.shared("story")...)
}

// diff compares the fork of the row, or else the run if it is one, with its original.
func (v *Outline) diff(s tui.Shell) tea.Cmd {
	v.list()
	if v.of == nil {
		return nil
	}
	if v.Last.Kind == ItemLineage {
		if n := nodeOf(v.of, v.Last); n.Original >= 0 || n.Run.RunID != v.of.RunID {
			v.CompareOriginal(s, v.of.Forks, n)
			return nil
		}
	}
	this := histories.LineageNode{Run: v.Selected.Run, Original: -1}
	this.Run.RunID, this.Run.Fork = v.of.RunID, v.of.Lineage.Fork
	v.CompareOriginal(s, v.of.Forks, &this)
	return nil
}

func (v *Outline) SetShown(shown bool) {
	v.feeds.Artifacts.Look(shown)
	v.feeds.Lineage.Look(shown)
}

func (v *Outline) SetStyles(s theme.Styles) { v.styles, v.stale = s, true }

func (v *Outline) SetSize(width, height int) {
	if width != v.width {
		v.stale = true
	}
	v.width, v.height = width, height
}

func (v *Outline) Refresh() { v.take() }

// list brings the rows up to date and keeps the cursor on its row.
func (v *Outline) list() {
	d := v.current()
	if d == nil {
		v.Rows, v.of, v.at = v.Rows[:0], nil, Item{}
		return
	}
	if run := d.WorkflowID + " " + d.RunID; run != v.run {
		v.run, v.Cursor, v.top, v.Last, v.find, v.moved = run, 0, 0, Item{}, "", false
		v.open = map[Item]bool{}
	}
	if v.of == d && !v.stale {
		return
	}
	v.of, v.stale = d, false
	v.Rows = rowsOf(d, v.Rows, v.Folded, v.extra)
	if v.moved {
		v.keep()
	}
	v.reveal()
}

// keep finds the row that the cursor was on, or its section's heading.
func (v *Outline) keep() {
	if v.Last.Kind == itemNone {
		return
	}
	if v.Cursor < len(v.Rows) && v.Rows[v.Cursor].Item == v.Last {
		return
	}
	heading := -1
	for i, r := range v.Rows {
		if r.Item == v.Last {
			v.Cursor = i
			return
		}
		if r.Kind == ItemSection && r.Part == v.Last.Part {
			heading = i
		}
	}
	if heading >= 0 {
		v.Cursor = heading
	}
}

// Bounds of a text that is unfolded in the list; the inspector shows more.
const (
	maxUnfolded      = 16 << 10 // bytes
	maxUnfoldedLines = 400
)

// extra is the further lines of a text that is unfolded.
func (v *Outline) extra(it Item) []string {
	if len(v.open) == 0 || !v.open[it] {
		return nil
	}
	width := v.width - widget.PointerWidth - 6
	var lines []string
	size, rest := 0, false
	if it.Kind == ItemCall {
		c := v.of.Calls.At(int(it.N))
		raw := c.Result
		if len(raw) == 0 {
			raw = c.Args
		}
		p := v.payloads.Of(raw)
		size, rest = p.Size, p.Rest > 0
		for _, l := range p.Lines {
			if len(lines) > maxUnfoldedLines {
				break
			}
			for _, part := range l.Wrap(width) {
				lines = append(lines, part.Plain())
			}
		}
	} else {
		_, t := textOf(v.of, it)
		size, rest = len(t), len(t) > maxUnfolded
		lines = v.doc.Wrap(t[:min(len(t), maxUnfolded)], width)
	}
	if len(lines) > maxUnfoldedLines || rest {
		lines = append(lines[:min(len(lines), maxUnfoldedLines):min(len(lines), maxUnfoldedLines)], "("+widget.SizeText(int64(size))+" in all; enter shows more)")
	}
	return lines
}

func (v *Outline) head() int { return 3 }

func (v *Outline) Page() int { return max(v.height-v.head(), 1) }

func (v *Outline) Scroll(by int) {
	v.list()
	v.Move(v.Cursor + by)
}

func (v *Outline) Move(to int) {
	v.moved = true
	v.Cursor = widget.Clamp(to, 0, max(len(v.Rows)-1, 0))
	v.reveal()
}

// reveal moves the visible part so that it holds the cursor, and notes the row.
func (v *Outline) reveal() {
	v.Cursor = widget.Clamp(v.Cursor, 0, max(len(v.Rows)-1, 0))
	v.top = widget.Clamp(v.top, v.Cursor-v.Page()+1, v.Cursor)
	v.top = widget.Clamp(v.top, 0, max(len(v.Rows)-v.Page(), 0))
	if v.Cursor < len(v.Rows) {
		v.Last = v.Rows[v.Cursor].Item
		v.at = v.Last
	}
}

// seek moves to the next row that is so, around the end; false where none is.
func (v *Outline) seek(by int, is func(*histories.Detail, Item) bool) bool {
	n := len(v.Rows)
	for step := 1; step <= n; step++ {
		i := ((v.Cursor+by*step)%n + n) % n
		if r := v.Rows[i]; !r.Sub && is(v.of, r.Item) {
			v.Move(i)
			return true
		}
	}
	return false
}

func (v *Outline) fold() {
	v.moved = true
	switch it := v.Last; {
	case it.Kind == itemNone:
		return
	case v.open[it]:
		delete(v.open, it)
	default:
		v.Folded[it.Part] = true
		v.Last = Item{ItemSection, it.Part, 0}
	}
	v.stale = true
	v.list()
}

func (v *Outline) unfold() {
	v.moved = true
	it := v.Last
	switch it.Kind {
	case itemNone:
		return
	case ItemSection:
		delete(v.Folded, it.Part)
	default:
		v.open[it] = true
	}
	v.stale = true
	v.list()
	v.revealWhole()
}

// revealWhole brings the lines below the cursor's row that belong to it into sight, as far
// as there is room.
func (v *Outline) revealWhole() {
	it, end := v.Last, v.Cursor+1
	for end < len(v.Rows) && (v.Rows[end].Item == it || it.Kind == ItemSection && v.Rows[end].Part == it.Part) {
		end++
	}
	v.top = min(max(v.top, end-v.Page()), v.Cursor)
}

func (v *Outline) ask(s tui.Shell) tea.Cmd {
	s.Ask(tui.Prompt{Label: "find: ", Value: v.find, Hint: "a text in this run: names, arguments, results, errors",
		Done: func(typed string) tea.Cmd {
			v.find = strings.ToLower(strings.TrimSpace(typed))
			v.Folded, v.stale = map[part]bool{}, true
			v.list()
			v.match(s, 1)
			return nil
		}})
	return nil
}

func (v *Outline) match(s tui.Shell, by int) {
	switch {
	case v.find == "":
		s.Note("nothing was searched for yet: / does")
	case !v.seek(by, func(d *histories.Detail, it Item) bool { return Contains(d, it, v.find) }):
		s.Note("no row holds " + strconv.Quote(v.find))
	}
}

// Copy gives the text under the cursor.
func (v *Outline) Copy() (string, string) {
	v.list()
	if v.of == nil || v.Last.Kind == itemNone {
		return "", ""
	}
	return textOf(v.of, v.Last)
}

// Keep gives the sections that are folded, by title, to be remembered.
func (v *Outline) Keep() map[string]string {
	var folded []string
	for p, title := range partTitles {
		if v.Folded[part(p)] {
			folded = append(folded, title)
		}
	}
	return map[string]string{"folded": strings.Join(folded, ",")}
}

// Restore folds the sections that were folded; titles that it does not know are left out.
func (v *Outline) Restore(kept map[string]string) {
	v.Folded, v.stale = map[part]bool{}, true
	for _, name := range strings.Split(kept["folded"], ",") {
		for p, title := range partTitles {
			if title == name {
				v.Folded[part(p)] = true
			}
		}
	}
}

func (v *Outline) Draw(now time.Time, focused bool) []string {
	v.Following = v.Following && !focused
	v.list()
	d := v.of
	if d == nil {
		return widget.Centre(nothing(v.Console, v.styles.Glyphs), v.width, v.height, v.styles)
	}
	now = d.Clock(now)
	lines := append(make([]string, 0, v.height), stripLine(d, v.width, now, v.styles), summaryLine(d, v.width, now, v.styles),
		v.styles.Border.Paint(strings.Repeat(v.styles.Glyphs.Plain.Top, v.width)))
	v.reveal()
	r := RowDrawer{D: d, S: v.styles, Width: v.width - widget.PointerWidth, Now: now, Loc: v.Location, bars: v.width >= 96, fold: v.Folded}
	for i := v.top; i < min(v.top+v.Page(), len(v.Rows)); i++ {
		mark := widget.RowPlain
		switch {
		case i == v.Cursor && focused:
			mark = widget.RowSelected
		case i == v.Cursor:
			mark = widget.RowCursor
		}
		lines = append(lines, r.row(v.Rows[i]).Line(v.width, mark, v.styles))
	}
	return widget.Fill(lines, v.width, v.height)
}

// nothing is what is said where there is no run to show.
func nothing(c *console.Console, g theme.Glyphs) []string {
	switch {
	case c.Selected.Ok:
	case c.Runs.Query != "" && len(c.Runs.Rows) == 0:
		return []string{"no run matches " + text.Safe(c.Runs.Query, " "), "/ changes the filter"}
	default:
		return []string{"no run is selected"}
	}
	return []string{"reading " + console.NameOf(c.Selected.Run) + g.Ellipsis}
}
