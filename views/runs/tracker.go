package runs

import (
	"slices"

	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/views/console"
)

// tracker keeps the cursor on the selected run while the list changes.
type tracker struct {
	nav      *console.Navigation
	controls console.Controls
	table    *table
}

// choose selects the run under the cursor and reads its detail if it changed.
func (k *tracker) choose() {
	if k.table.Count() == 0 {
		k.nav.Selected = console.Selection{}
		return
	}
	r := k.table.At(k.table.Cursor)
	changed := !k.nav.Selected.Ok || !k.same(r)
	k.nav.Selected = console.Selection{*r, true}
	if changed {
		k.controls.Select(r.ID())
	}
}

func (k *tracker) same(r *runs.Run) bool { return r.ID() == k.nav.Selected.Run.ID() }

// find returns the row of the selected run or of its successor, or -1. It searches from the cursor outward.
func (k *tracker) find() int {
	t := k.table
	n := t.Count()
	if !k.nav.Selected.Ok {
		return -1
	}
	for near := 0; near <= n; near++ {
		up, down := t.Cursor-near, t.Cursor+near
		if up >= 0 && up < n && k.same(t.At(up)) {
			return up
		}
		if down < n && k.same(t.At(down)) {
			return down
		}
		if up < 0 && down >= n {
			break
		}
	}
	return k.successor()
}

// successor returns the row of the run that continues the selected one, or -1.
func (k *tracker) successor() int {
	if !k.nav.Live() {
		return -1
	}
	was := &k.nav.Selected.Run
	for i := range k.table.Count() {
		r := k.table.At(i)
		if r.WorkflowID == was.WorkflowID && r.RunID != was.RunID && !r.Start.Before(was.Start) {
			return i
		}
	}
	return -1
}

// follow keeps the cursor on its run, at row at, while the run is open and on the first page. Otherwise it
// moves to the newest open run, or to the newest run.
func (k *tracker) follow(at, page int) {
	t := k.table
	t.Top = 0
	page = min(page, t.Count())
	if at >= 0 && at < page && t.At(at).Open() {
		return
	}
	for i := range page {
		if t.At(i).Open() {
			t.Cursor = i
			return
		}
	}
	t.Cursor = 0
}

// reconcile shows the selected run as closed as soon as its detail does, so that list and preview agree.
func (k *tracker) reconcile(d *histories.Detail) {
	if d == nil || d.Close.IsZero() {
		return
	}
	list := &k.table.listing.Runs
	at := slices.IndexFunc(list.Rows, func(r runs.Run) bool { return r.Open() && r.RunID == d.RunID })
	if at >= 0 {
		rows := slices.Clone(list.Rows) // the feed's own
		rows[at], _ = histories.Reconcile(rows[at], d)
		list.Rows = rows
	}
}
