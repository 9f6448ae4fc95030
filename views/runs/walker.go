package runs

import (
	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/tui/widget"
)

// loadMargin is the distance of the cursor from the end of the loaded rows at which more are loaded.
const loadMargin = 50

// walker loads the rows around the cursor, and the rows up to an end of the list that the user goes to.
type walker struct {
	list  List
	table *table
	asked request // last request for more runs
	goal  goal
}

// request is a request for more runs at one end of the loaded rows.
type request struct {
	first int64
	rows  int
	newer bool
}

// goal is the end of the list that is being loaded.
type goal uint8

const (
	noGoal goal = iota
	toFirst
	toLast
	halted // loading the last rows was stopped
)

// reset forgets what was requested, for another query.
func (w *walker) reset() { w.asked, w.goal = request{}, noGoal }

// state says how far loading the last rows has come, "" if they are not being loaded.
func (w *walker) state() string {
	if w.goal != toLast {
		return ""
	}
	return "loading up to the last: " + ace.Number(w.table.listing.Runs.Walking) + " of " + w.table.total() +
		", any move stops it"
}

// begin loads the end that a move goes to. It returns false for a move that only stops loading.
func (w *walker) begin(lines int) bool {
	now := &w.table.listing.Runs
	switch w.goal {
	case toLast:
		w.goal = halted
		w.list.Load(runs.StopWalk)
		return false
	case toFirst:
		w.goal = noGoal
	}
	switch {
	case lines == -widget.AllLines && now.First > 0:
		w.goal = toFirst
		w.list.Load(runs.LoadFirst)
	case lines == widget.AllLines && now.More && !w.table.Sorting.on():
		w.goal = toLast
		w.list.Load(runs.LoadLast)
	}
	return true
}

// reach moves the cursor to the requested end of the list once it is loaded, or to the last loaded row if
// loading was stopped.
func (w *walker) reach() {
	switch now, t := &w.table.listing.Runs, w.table; {
	case w.goal == toFirst && now.First == 0:
		t.Cursor, t.Top = 0, 0
	case now.Walking == 0 && (w.goal == toLast && !now.More || w.goal == halted):
		t.Cursor = t.Count() - 1
	case w.goal == toLast && now.Err != "": // the list shows the error
	default:
		return
	}
	w.goal = noGoal
}

// more requests older runs if the cursor is near the end, and newer runs if it is near the beginning. It
// requests once per set of loaded rows, and not while an end is being loaded.
func (w *walker) more() {
	if w.goal != noGoal {
		return
	}
	list, t := &w.table.listing.Runs, w.table
	now := request{first: list.First, rows: len(list.Rows)}
	switch {
	case list.More && t.Cursor+loadMargin >= t.Count() && w.asked != now:
		w.asked = now
		w.list.Load(runs.LoadOlder)
	case list.First > 0 && t.Cursor < loadMargin:
		if now.newer = true; w.asked != now {
			w.asked = now
			w.list.Load(runs.LoadNewer)
		}
	}
}
