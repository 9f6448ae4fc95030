package runs

import (
	"context"
	"reflect"
	"slices"
	"sort"
	"strings"
	"time"
)

// Bounds of the held part of a list.
const (
	scrollPage  = 200  // page size while the user scrolls
	walkPage    = 500  // page size while walking to the end
	maxHeld     = 4000 // held runs; those far from the cursor are dropped
	headPages   = 10   // pages that are read between two marks before the rest becomes a gap
	slack       = 1000 // new runs that may be added before others are dropped
	liveAtATime = 4    // intervals with open runs that are read again per refresh, besides the first
	glance      = 20   // newest runs that are checked first: if they are unchanged, so are the others
	maxGlances  = 15   // consecutive short checks; only a complete page shows that an older run was deleted
)

// place is a position in the server's order: open runs first, then by close time and start time, newest
// first, then by run id.
type place struct {
	open         bool
	close, start time.Time
	run          string
}

func placeOf(r Run) place { return place{r.Open(), r.Close, r.Start, r.RunID} }

func (p place) compare(q place) int {
	switch {
	case p.open != q.open && p.open:
		return -1
	case p.open != q.open:
		return 1
	}
	if c := q.close.Compare(p.close); c != 0 {
		return c
	}
	if c := q.start.Compare(p.start); c != 0 {
		return c
	}
	return strings.Compare(p.run, q.run)
}

func compareRuns(a, b Run) int { return placeOf(a).compare(placeOf(b)) }

// Joined merges parts of a list in the server's order. Of a run in several parts, the first one stays.
func Joined(parts ...[]Run) []Run {
	var rows []Run
	seen := map[string]bool{}
	for _, part := range parts {
		for _, r := range part {
			if !seen[r.RunID] {
				seen[r.RunID] = true
				rows = append(rows, r)
			}
		}
	}
	slices.SortStableFunc(rows, compareRuns)
	return rows
}

// mark is a position in the list from which pages can be read. It stays valid when runs move.
type mark struct {
	token []byte
	at    place // of the last run before it; unset for the first mark
	count int   // runs up to the next mark, when they were read last
	end   bool  // the list ends here
}

// lister reads one page of a list.
type lister func(ctx context.Context, size int, token []byte) ([]Run, []byte, error)

// window holds a bounded part of a list of any length: the runs between two marks. All marks reached so far
// are kept.
type window struct {
	marks   []mark
	rows    []Run // between marks lo and hi, in the server's order, each run once
	lo, hi  int
	upwards bool // the last step was toward newer runs
	whole   bool // all read runs are held, whatever maxHeld
	turn    int  // index of the interval with open runs that is read next
	glances int  // consecutive checks of the newest runs only
}

// first returns the number of runs before the held ones.
func (w *window) first() int64 {
	n := 0
	for _, m := range w.marks[:w.lo] {
		n += m.count
	}
	return int64(n)
}

// more reports whether there are runs after the held ones.
func (w *window) more() bool { return len(w.marks) == 0 || !w.marks[w.hi].end }

// refresh reads the newest runs again, and some intervals whose runs may have changed.
func (w *window) refresh(ctx context.Context, list lister) error {
	if len(w.marks) < 2 {
		return w.read(ctx, list, 0, scrollPage, true)
	}
	if same, err := w.unchanged(ctx, list); same || err != nil {
		return err
	}
	for _, i := range append(w.live(), 0) { // last first, so that indexes stay valid
		if err := w.read(ctx, list, i, scrollPage, false); err != nil {
			return err
		}
	}
	if len(w.rows) > maxHeld+slack {
		w.trim(w.upwards)
	}
	return nil
}

// unchanged reports, after reading a short page, that the newest runs are unchanged and all others are
// closed.
func (w *window) unchanged(ctx context.Context, list lister) (bool, error) {
	if w.lo > 0 || len(w.rows) <= glance || w.glances >= maxGlances ||
		slices.ContainsFunc(w.rows[glance:], Run.Open) {
		w.glances = 0
		return false, nil
	}
	rows, _, err := list(ctx, glance, nil)
	if err != nil || len(rows) < glance || !reflect.DeepEqual(rows[:glance], w.rows[:glance]) {
		w.glances = 0
		return false, err
	}
	w.glances++
	return true, nil
}

// live returns intervals, except the first, that contain open runs or that closing runs move to. It
// returns at most liveAtATime, the last one first, and others at the next call.
func (w *window) live() []int {
	var all []int
	for i := max(w.lo, 1); i < w.hi; i++ {
		if w.marks[i].at.open {
			all = append(all, i)
		}
	}
	if len(all) > liveAtATime {
		from := w.turn % len(all)
		w.turn += liveAtATime
		all = append(all[from:], all[:from]...)[:liveAtATime]
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all
}

// read reads from mark i to the next one, or from the last mark one page. It holds the runs if they were held
// before, or if grow is set. If there are more than headPages pages between the marks, the runs after them
// are not held.
func (w *window) read(ctx context.Context, list lister, i, size int, grow bool) error {
	if i == 0 && len(w.marks) < 2 {
		w.marks = []mark{{}}
	}
	rows, fresh, reached, err := w.pages(ctx, list, i, size)
	if err != nil {
		return err
	}
	held := grow || w.lo <= i && i < w.hi
	last := i == len(w.marks)-1
	added := len(fresh) - 1
	w.marks = slices.Concat(w.marks[:i], fresh, w.marks[i+1:])
	to := i + added // the mark up to which was read
	if reached && !last {
		to++
	}
	if w.lo > i {
		w.lo += added
	}
	if w.hi > i {
		w.hi += added
	}
	if held {
		from, rest := w.after(i), w.after(to)
		if !reached {
			rest, w.hi = len(w.rows), to
		}
		w.rows = Joined(rows, w.rows[:from], w.rows[rest:])
		w.lo, w.hi = min(w.lo, i), max(w.hi, to)
	}
	if len(rows) == 0 && i > 0 && !last && reached {
		w.remove(i)
	}
	return nil
}

// pages reads from mark i to the next one, and returns the runs, the mark with those that follow each further
// page, and whether the next mark was reached.
func (w *window) pages(ctx context.Context, list lister, i, size int) (
	rows []Run, fresh []mark, reached bool, err error,
) {
	fresh = []mark{{token: w.marks[i].token, at: w.marks[i].at}}
	last := i == len(w.marks)-1
	for !reached && len(fresh) <= headPages {
		from := &fresh[len(fresh)-1]
		page, next, err := list(ctx, size, from.token)
		if err != nil {
			return nil, nil, false, err
		}
		n := len(page)
		if !last && !w.marks[i+1].end {
			end := w.marks[i+1].at
			n = sort.Search(n, func(k int) bool { return placeOf(page[k]).compare(end) > 0 })
			reached = n < len(page) || n > 0 && placeOf(page[n-1]).compare(end) == 0
		}
		from.count = n
		rows = append(rows, page[:n]...)
		reached = reached || last || len(next) == 0
		switch {
		case n == 0 && len(next) == 0 && last:
			from.end = true
		case !reached || last:
			after := mark{token: next, at: from.at, end: len(next) == 0}
			if n > 0 {
				after.at = placeOf(page[n-1])
			}
			fresh = append(fresh, after)
		}
	}
	// A short last page is added to the page before.
	if k := len(fresh) - 1; k > 0 && !last && reached && fresh[k].count < scrollPage/2 {
		fresh[k-1].count += fresh[k].count
		fresh = fresh[:k]
	}
	return rows, fresh, reached, nil
}

// remove removes a mark with no runs before the next one.
func (w *window) remove(i int) {
	w.marks = slices.Delete(w.marks, i, i+1)
	if w.lo > i {
		w.lo--
	}
	if w.hi > i {
		w.hi--
	}
}

// after returns the index of the first held run after a mark.
func (w *window) after(i int) int {
	switch m := w.marks[i]; {
	case i == 0:
		return 0
	case m.end:
		return len(w.rows)
	default:
		return sort.Search(len(w.rows), func(k int) bool { return placeOf(w.rows[k]).compare(m.at) > 0 })
	}
}

// down loads the next runs toward older ones, and drops newer ones.
func (w *window) down(ctx context.Context, list lister, size int) error {
	if !w.more() {
		return nil
	}
	err := w.read(ctx, list, w.hi, size, true)
	w.trim(false)
	return err
}

// up loads the runs before the first held one, and drops older ones.
func (w *window) up(ctx context.Context, list lister) error {
	if w.lo == 0 {
		return nil
	}
	err := w.read(ctx, list, w.lo-1, max(scrollPage, min(w.marks[w.lo-1].count, walkPage)), true)
	w.trim(true)
	return err
}

// top goes back to the newest runs.
func (w *window) top(ctx context.Context, list lister) error {
	if w.lo == 0 && w.hi > 0 {
		return nil
	}
	w.rows, w.lo, w.hi = nil, 0, 0
	return w.read(ctx, list, 0, scrollPage, true)
}

// bottom goes to the last mark, to walk on from there.
func (w *window) bottom() {
	if last := len(w.marks) - 1; w.hi < last {
		w.rows, w.lo, w.hi = nil, last, last
	}
}

// trim drops runs until at most maxHeld are held, but never the interval under the cursor.
func (w *window) trim(fromBelow bool) {
	w.upwards = fromBelow
	for !w.whole && len(w.rows) > maxHeld && w.hi-w.lo > 1 {
		if fromBelow {
			w.hi--
			at := w.after(w.hi)
			w.marks[w.hi].count = len(w.rows) - at
			w.rows = w.rows[:at]
			continue
		}
		w.lo++
		at := w.after(w.lo)
		w.marks[w.lo-1].count = at
		w.rows = w.rows[at:]
	}
}
