package views

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// moreWithin is how near to the last loaded row the screen comes before more are
// asked for.
const moreWithin = 50

// runs is the list of runs.
type runs struct {
	*console
	styles        theme.Styles
	width, height int
	loaded        bool // a list was read at least once
	state         sources.ConnState
	cursor, top   int
	asked         int // rows loaded when more were last asked for
	cols          []column
	heading       string
	cache         rowCache
}

func newRuns(c *console) *runs { return &runs{console: c, asked: -1} }

func (v *runs) Name() string { return "Runs" }

func (v *runs) Title() string { return "Runs" }

// Footer is where the cursor is: "12/10,214", with a plus where the total is unknown.
func (v *runs) Footer() string {
	n := len(v.runs.Rows)
	if n == 0 {
		return ""
	}
	total := text.Count(v.runs.Total)
	if v.runs.Total < int64(n) {
		total = text.Count(int64(n))
		if v.runs.More {
			total += "+"
		}
	}
	where := text.Count(int64(v.cursor+1)) + "/" + total
	if v.following {
		return "following the newest " + v.styles.Glyphs.Dot + " " + where
	}
	return where
}

func (v *runs) Bindings() []tui.Binding { return motions("runs", v) }

func (v *runs) Update(tea.Msg) tea.Cmd { return nil }

func (v *runs) SetShown(bool) {}

func (v *runs) SetStyles(s theme.Styles) {
	v.styles = s
	v.arrange()
}

func (v *runs) SetSize(width, height int) {
	if width == v.width && height == v.height {
		return
	}
	v.width, v.height = width, height
	v.arrange()
	v.reveal()
}

// arrange chooses columns for the width and writes the table's heading.
func (v *runs) arrange() {
	v.cols = fitting(columns(v.styles.Glyphs), v.width)
	v.cache.clear()
	h := text.Spaces(pointerWidth)
	for i, c := range v.cols {
		if i > 0 {
			h += " "
		}
		h += c.fit(c.title, "")
	}
	v.heading = v.styles.Muted.Paint(text.Fit(h, v.width, ""))
}

// SetSnapshot keeps the selection on its run and, where new runs came in above, the
// rows on screen where they are; only at the very top do new runs come into sight.
// While it follows the newest, the selection moves on when its run has closed.
func (v *runs) SetSnapshot(s *sources.Snapshot) {
	queryChanged := v.loaded && s.Runs.Query != v.runs.Query
	v.runs, v.state = s.Runs, s.Connection.State
	v.loaded = v.loaded || !s.Runs.Loaded.IsZero() || len(s.Runs.Rows) > 0
	before, at := v.cursor, v.find()
	if at >= 0 {
		v.elsewhere = false
	}
	switch {
	case at >= 0:
		v.cursor = at
	case queryChanged:
		v.cursor = 0
	}
	if queryChanged {
		v.top, v.asked = 0, -1
	} else if v.top > 0 {
		v.top += v.cursor - before
	}
	if v.following {
		v.follow(at)
	}
	v.reveal()
	if !v.elsewhere {
		v.selectRow()
	}
}

// follow keeps the cursor on its run, at row at, while that is open and in sight of
// the newest; then it goes to the newest open one.
func (v *runs) follow(at int) {
	v.top = 0
	page := min(v.page(), len(v.runs.Rows))
	if at >= 0 && at < page && v.runs.Rows[at].Open() {
		return
	}
	for i, r := range v.runs.Rows[:page] {
		if r.Open() {
			v.cursor = i
			return
		}
	}
	if at >= page {
		v.cursor = 0
	}
}

// find is where the selected run is now, -1 if it is gone. It looks near the cursor
// first.
func (v *runs) find() int {
	rows, sel := v.runs.Rows, &v.selected
	if !sel.ok {
		return -1
	}
	for near := 0; near <= len(rows); near++ {
		up, down := v.cursor-near, v.cursor+near
		if up >= 0 && up < len(rows) && v.sameRun(rows[up]) {
			return up
		}
		if down < len(rows) && v.sameRun(rows[down]) {
			return down
		}
		if up < 0 && down >= len(rows) {
			break
		}
	}
	return -1
}

func (v *runs) sameRun(r sources.Run) bool {
	return r.RunID == v.selected.run.RunID && r.WorkflowID == v.selected.run.WorkflowID
}

// selectRow makes the row under the cursor the selected run and, if it was another
// one before, asks for its detail.
func (v *runs) selectRow() {
	if len(v.runs.Rows) == 0 {
		v.selected = selection{}
		return
	}
	r := v.runs.Rows[v.cursor]
	changed := !v.selected.ok || !v.sameRun(r)
	v.selected = selection{r, true}
	if changed {
		v.Controls.Select(r.WorkflowID, r.RunID)
	}
}

func (v *runs) page() int { return max(v.height-1-len(v.problem()), 1) }

func (v *runs) scroll(lines int) {
	v.following, v.elsewhere = lines == -allLines, false
	v.cursor = max(min(v.cursor+lines, len(v.runs.Rows)-1), 0)
	v.reveal()
	v.selectRow()
	v.more()
}

// reveal moves the visible part so that it holds the cursor.
func (v *runs) reveal() {
	v.cursor = max(min(v.cursor, len(v.runs.Rows)-1), 0)
	page := v.page()
	v.top = clamp(v.top, v.cursor-page+1, v.cursor)
	v.top = max(min(v.top, len(v.runs.Rows)-page), 0)
}

// more asks for older runs once per loaded length when the end comes near.
func (v *runs) more() {
	n := len(v.runs.Rows)
	if v.runs.More && v.asked != n && v.cursor+moreWithin >= n {
		v.asked = n
		v.Controls.LoadMore()
	}
}

func (v *runs) Draw(now time.Time, focused bool) []string {
	lines := append(make([]string, 0, v.height), v.problem()...)
	if len(v.runs.Rows) == 0 {
		return fill(append(lines, centre(v.empty(), v.width, v.height-len(lines), v.styles)...), v.width, v.height)
	}
	lines = append(lines, v.heading)
	end := min(v.top+v.page(), len(v.runs.Rows))
	for i := v.top; i < end; i++ {
		lines = append(lines, v.row(v.runs.Rows[i], i == v.cursor, focused, now))
	}
	return fill(lines, v.width, v.height)
}

// empty is what is said in place of an empty list.
func (v *runs) empty() []string {
	switch {
	case !v.loaded && v.state == sources.ConnLost:
		return []string{"the server is away", "nothing was read from it yet"}
	case !v.loaded && v.state == sources.ConnReady:
		return []string{"reading the list of runs" + v.styles.Glyphs.Ellipsis}
	case !v.loaded:
		return []string{"starting the server" + v.styles.Glyphs.Ellipsis}
	case v.runs.Err != "":
		return nil
	case v.runs.Query != "":
		return []string{"no run matches", text.Safe(v.runs.Query, " "), "/ to look for others"}
	}
	return []string{"no runs yet", "start some:  acescope run --dataset FILE"}
}

// problem is why the list could not be read, with a caret below the place in the
// query where that is known.
func (v *runs) problem() []string {
	if v.runs.Err == "" {
		return nil
	}
	s := v.styles
	say := func(ink theme.Ink, t string) string {
		return ink.Paint(text.Fit(t, v.width, s.Glyphs.Ellipsis))
	}
	what := say(s.Error, " "+s.Glyphs.Failed+" "+text.Safe(v.runs.Err, " "))
	at := v.runs.ErrAt
	if at < 0 || at > len(v.runs.Query) {
		return []string{what}
	}
	query, caret := around(v.runs.Query, at, v.width-5)
	return []string{say(s.Text, " / "+query), say(s.Error, " "+text.Spaces(caret+2)+"^"), what}
}

// around is the part of a query of at most width cells that holds the byte at, and
// how many cells before that byte it begins.
func around(query string, at, width int) (string, int) {
	before, after := text.Safe(query[:at], " "), text.Safe(query[at:], " ")
	if w := text.Width(before); w > width/2 && w+text.Width(after) > width {
		before = text.Last(before, width/2)
	}
	return text.Cut(before+after, width, ""), text.Width(before)
}
