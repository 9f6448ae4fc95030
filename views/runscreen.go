package views

import (
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// story is the run row by row.
type story struct {
	*reading
	styles        theme.Styles
	width, height int

	rows   []runRow
	of     *sources.Detail
	stale  bool // rows must be listed anew
	cursor int
	top    int
	folded map[part]bool
	open   map[item]bool // texts that are unfolded
	doc    document      // keeps texts wrapped
	run    string        // of the rows
	last   item          // that the cursor is on
	moved  bool          // somebody moved it in this run: until then it stays at the top
}

func newStory(r *reading) *story {
	return &story{reading: r, folded: map[part]bool{}, open: map[item]bool{}}
}

func (v *story) Name() string { return "Run rows" }

func (v *story) Title() string {
	if !v.selected.ok {
		return "Run"
	}
	return text.Safe(v.selected.run.WorkflowID, " ")
}

// Footer is where the cursor is, and where the knowledge comes from.
func (v *story) Footer() string {
	d := v.current()
	if d == nil {
		return ""
	}
	dot := " " + v.styles.Glyphs.Dot + " "
	return string(d.From) + dot + text.Count(d.Events) + " events" + dot +
		text.Count(int64(v.cursor+1)) + "/" + text.Count(int64(len(v.rows)))
}

func (v *story) Bindings() []tui.Binding {
	do := func(fn func(tui.Shell)) func(tui.Shell) tea.Cmd {
		return func(s tui.Shell) tea.Cmd { v.list(); fn(s); return nil }
	}
	jump := func(by int, is func(*sources.Detail, item) bool, none string) func(tui.Shell) tea.Cmd {
		return do(func(s tui.Shell) {
			if !v.seek(by, is) {
				s.Note(none)
			}
		})
	}
	section := func(_ *sources.Detail, it item) bool { return it.kind == itemSection }
	b := append(motions("story", v),
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
	if v.last.kind == itemLink || v.last.kind == itemLineage {
		b = append(b, tui.Binding{Action: "story.go", Keys: []string{"enter"}, Help: "open the run that the row names", Short: "open it", Do: v.reading.open})
	}
	b = append(b, tui.Binding{Action: "story.diff", Keys: []string{"d"}, Help: "compare the fork under the cursor, or this one, with its original", Do: v.diff})
	b = append(b, v.forkAt("story", func() string { v.list(); return v.forkPoint() })...)
	return append(b, v.shared("story")...)
}

// diff compares the fork of the row, or else the run if it is one, with its original.
func (v *story) diff(s tui.Shell) tea.Cmd {
	v.list()
	if v.of == nil {
		return nil
	}
	if v.last.kind == itemLineage {
		if n := nodeOf(v.of, v.last); n.Original >= 0 || n.Run.RunID != v.of.RunID {
			v.diffOriginal(s, v.of.Forks, n)
			return nil
		}
	}
	this := sources.LineageNode{Run: v.selected.run, Original: -1}
	this.Run.RunID, this.Run.Fork = v.of.RunID, v.of.Lineage.Fork
	v.diffOriginal(s, v.of.Forks, &this)
	return nil
}

func (v *story) Update(tea.Msg) tea.Cmd { return nil }

func (v *story) SetShown(shown bool) {
	v.Controls.Look(sources.PartArtifacts, shown)
	v.Controls.Look(sources.PartLineage, shown)
}

func (v *story) SetStyles(s theme.Styles) { v.styles, v.stale = s, true }

func (v *story) SetSize(width, height int) {
	if width != v.width {
		v.stale = true
	}
	v.width, v.height = width, height
}

func (v *story) SetSnapshot(s *sources.Snapshot) { v.take(s) }

// list brings the rows up to date and keeps the cursor on its row.
func (v *story) list() {
	d := v.current()
	if d == nil {
		v.rows, v.of, v.at = v.rows[:0], nil, item{}
		return
	}
	if run := d.WorkflowID + " " + d.RunID; run != v.run {
		v.run, v.cursor, v.top, v.last, v.find, v.moved = run, 0, 0, item{}, "", false
		v.open = map[item]bool{}
	}
	if v.of == d && !v.stale {
		return
	}
	v.of, v.stale = d, false
	v.rows = rowsOf(d, v.rows, v.folded, v.extra)
	if v.moved {
		v.keep()
	}
	v.reveal()
}

// keep finds the row that the cursor was on, or its section's heading.
func (v *story) keep() {
	if v.last.kind == itemNone {
		return
	}
	if v.cursor < len(v.rows) && v.rows[v.cursor].item == v.last {
		return
	}
	heading := -1
	for i, r := range v.rows {
		if r.item == v.last {
			v.cursor = i
			return
		}
		if r.kind == itemSection && r.part == v.last.part {
			heading = i
		}
	}
	if heading >= 0 {
		v.cursor = heading
	}
}

// Bounds of a text that is unfolded in the list; the inspector shows more.
const (
	maxUnfolded      = 16 << 10 // bytes
	maxUnfoldedLines = 400
)

// extra is the further lines of a text that is unfolded.
func (v *story) extra(it item) []string {
	if len(v.open) == 0 || !v.open[it] {
		return nil
	}
	width := v.width - pointerWidth - 6
	var lines []string
	size, rest := 0, false
	if it.kind == itemCall {
		c := v.of.Calls.At(int(it.n))
		raw := c.Result
		if len(raw) == 0 {
			raw = c.Args
		}
		p := v.payloads.of(raw)
		size, rest = p.size, p.rest > 0
		for _, l := range p.lines {
			if len(lines) > maxUnfoldedLines {
				break
			}
			for _, part := range l.wrap(width) {
				lines = append(lines, part.plain())
			}
		}
	} else {
		_, t := textOf(v.of, it)
		size, rest = len(t), len(t) > maxUnfolded
		lines = v.doc.wrap(t[:min(len(t), maxUnfolded)], width)
	}
	if len(lines) > maxUnfoldedLines || rest {
		lines = append(lines[:min(len(lines), maxUnfoldedLines):min(len(lines), maxUnfoldedLines)], "("+sizeText(int64(size))+" in all; enter shows more)")
	}
	return lines
}

func (v *story) head() int { return 3 }

func (v *story) page() int { return max(v.height-v.head(), 1) }

func (v *story) scroll(by int) {
	v.list()
	v.move(v.cursor + by)
}

func (v *story) move(to int) {
	v.moved = true
	v.cursor = clamp(to, 0, max(len(v.rows)-1, 0))
	v.reveal()
}

// reveal moves the visible part so that it holds the cursor, and notes the row.
func (v *story) reveal() {
	v.cursor = clamp(v.cursor, 0, max(len(v.rows)-1, 0))
	v.top = clamp(v.top, v.cursor-v.page()+1, v.cursor)
	v.top = clamp(v.top, 0, max(len(v.rows)-v.page(), 0))
	if v.cursor < len(v.rows) {
		v.last = v.rows[v.cursor].item
		v.at = v.last
	}
}

// seek moves to the next row that is so, around the end; false where none is.
func (v *story) seek(by int, is func(*sources.Detail, item) bool) bool {
	n := len(v.rows)
	for step := 1; step <= n; step++ {
		i := ((v.cursor+by*step)%n + n) % n
		if r := v.rows[i]; !r.sub && is(v.of, r.item) {
			v.move(i)
			return true
		}
	}
	return false
}

func (v *story) fold() {
	v.moved = true
	switch it := v.last; {
	case it.kind == itemNone:
		return
	case v.open[it]:
		delete(v.open, it)
	default:
		v.folded[it.part] = true
		v.last = item{itemSection, it.part, 0}
	}
	v.stale = true
	v.list()
}

func (v *story) unfold() {
	v.moved = true
	it := v.last
	switch it.kind {
	case itemNone:
		return
	case itemSection:
		delete(v.folded, it.part)
	default:
		v.open[it] = true
	}
	v.stale = true
	v.list()
	v.revealWhole()
}

// revealWhole brings the lines below the cursor's row that belong to it into sight, as far
// as there is room.
func (v *story) revealWhole() {
	it, end := v.last, v.cursor+1
	for end < len(v.rows) && (v.rows[end].item == it || it.kind == itemSection && v.rows[end].part == it.part) {
		end++
	}
	v.top = min(max(v.top, end-v.page()), v.cursor)
}

func (v *story) ask(s tui.Shell) tea.Cmd {
	s.Ask(tui.Prompt{Label: "find: ", Value: v.find, Hint: "a text in this run: names, arguments, results, errors",
		Done: func(typed string) tea.Cmd {
			v.find = strings.ToLower(strings.TrimSpace(typed))
			v.folded, v.stale = map[part]bool{}, true
			v.list()
			v.match(s, 1)
			return nil
		}})
	return nil
}

func (v *story) match(s tui.Shell, by int) {
	switch {
	case v.find == "":
		s.Note("nothing was searched for yet: / does")
	case !v.seek(by, func(d *sources.Detail, it item) bool { return contains(d, it, v.find) }):
		s.Note("no row holds " + strconv.Quote(v.find))
	}
}

// Copy gives the text under the cursor.
func (v *story) Copy() (string, string) {
	v.list()
	if v.of == nil || v.last.kind == itemNone {
		return "", ""
	}
	return textOf(v.of, v.last)
}

// Keep gives the sections that are folded, by title, to be remembered.
func (v *story) Keep() map[string]string {
	var folded []string
	for p, title := range partTitles {
		if v.folded[part(p)] {
			folded = append(folded, title)
		}
	}
	return map[string]string{"folded": strings.Join(folded, ",")}
}

// Restore folds the sections that were folded; titles that it does not know are left out.
func (v *story) Restore(kept map[string]string) {
	v.folded, v.stale = map[part]bool{}, true
	for _, name := range strings.Split(kept["folded"], ",") {
		for p, title := range partTitles {
			if title == name {
				v.folded[part(p)] = true
			}
		}
	}
}

func (v *story) Draw(now time.Time, focused bool) []string {
	v.following = v.following && !focused
	v.list()
	d := v.of
	if d == nil {
		return centre(nothing(v.console, v.styles.Glyphs), v.width, v.height, v.styles)
	}
	now = d.Clock(now)
	lines := append(make([]string, 0, v.height), stripLine(d, v.width, now, v.styles), summaryLine(d, v.width, now, v.styles),
		v.styles.Border.Paint(strings.Repeat(v.styles.Glyphs.Plain.Top, v.width)))
	v.reveal()
	r := rowDrawer{d: d, s: v.styles, width: v.width - pointerWidth, now: now, loc: v.Location, bars: v.width >= 96, fold: v.folded}
	for i := v.top; i < min(v.top+v.page(), len(v.rows)); i++ {
		mark := rowPlain
		switch {
		case i == v.cursor && focused:
			mark = rowSelected
		case i == v.cursor:
			mark = rowCursor
		}
		lines = append(lines, r.row(v.rows[i]).line(v.width, mark, v.styles))
	}
	return fill(lines, v.width, v.height)
}

// nothing is what is said where there is no run to show.
func nothing(c *console, g theme.Glyphs) []string {
	switch {
	case c.selected.ok:
	case c.runs.Query != "" && len(c.runs.Rows) == 0:
		return []string{"no run matches " + text.Safe(c.runs.Query, " "), "/ changes the filter"}
	default:
		return []string{"no run is selected"}
	}
	return []string{"reading " + nameOf(c.selected.run) + g.Ellipsis}
}
