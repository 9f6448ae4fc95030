package cost

import (
	"cmp"
	"path/filepath"
	"time"

	"acescope/sources/costs"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// sessionList lists the sessions and runs of the selected row, the most expensive one first.
type sessionList struct {
	console.List[transcripts.Cost]
	nav  *console.Navigation
	from *rows

	made struct { // the inputs of the list
		data *sessions.Transcripts
		runs *costs.Costs
		by   transcripts.By
		key  string
	}
}

func newSessionList(nav *console.Navigation, from *rows) *sessionList {
	return &sessionList{nav: nav, from: from, List: console.NewList[transcripts.Cost]("Sessions",
		widget.Heading{Title: "SESSION", Minimum: 16},
		widget.Heading{Title: "PROJECT", Width: 12, Drop: 1},
		widget.Heading{Title: "TOKENS", Width: 6, Right: true, Drop: 2},
		widget.Heading{Title: "COST", Width: 9, Right: true},
	)}
}

func (v *sessionList) Title() string {
	if v.made.key == "" {
		return "Sessions"
	}
	return "Sessions of " + text.Cut(text.Safe(v.made.key, " "), 40, v.Styles.Glyphs.Ellipsis)
}

func (v *sessionList) Bindings() []tui.Binding {
	all := append(widget.Motions("costsessions", v),
		console.Key("costsessions.open", "open the session or the run", "open", v.open, "enter"))
	return append(all, v.from.unitBindings("costsessions")...)
}

func (v *sessionList) open(s tui.Shell) {
	c, ok := v.Current()
	if !ok {
		s.Note("no session is selected")
		return
	}
	if v.made.runs != nil {
		if r, ok := v.made.runs.Runs[c.Path]; ok {
			v.nav.OpenRun(s, r)
			return
		}
	}
	v.nav.OpenSession(s, c.Path)
}

func (v *sessionList) Copy() (what, content string) {
	c, _ := v.Current()
	return "session id", c.Key
}

// arrange lists the sessions again if the row or the transcripts have changed. The cursor stays on its
// session as long as the row is the same.
func (v *sessionList) arrange(now time.Time) {
	v.from.arrange(now)
	row, ok := v.from.Current()
	next := v.made
	next.data, next.runs, next.by, next.key = v.from.data, v.from.runs, v.from.by, row.Key
	if next == v.made {
		return
	}
	same := next.by == v.made.by && next.key == v.made.key
	at, _ := v.Current()
	v.made = next
	var list []transcripts.Cost
	if ok {
		query := transcripts.CostQuery{By: next.by, Key: next.key}
		list, _ = transcripts.Costs(v.from.all, transcripts.BySession, query)
	}
	v.Set(list, func(c transcripts.Cost) bool { return same && c.Path == at.Path })
	if !same {
		v.GoTo(0)
	}
}

func (v *sessionList) Draw(now time.Time, focused bool) []string {
	v.arrange(now)
	if len(v.Rows) == 0 {
		return v.Message(nil, v.from.empty()...)
	}
	return v.DrawRows(nil, focused, v.cells)
}

func (v *sessionList) cells(c transcripts.Cost) []widget.Cell {
	s, g := v.Styles, v.Styles.Glyphs
	return []widget.Cell{{text.Safe(cmp.Or(c.Name, c.Key), " "), s.Text},
		{console.OrDash(filepath.Base(c.Project), g), s.Muted},
		{text.ShortCount(c.Tokens.Total()), s.Muted}, {console.CostCell(c.Totals.Usage(), g), s.Text}}
}
