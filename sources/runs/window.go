package runs

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Bounds of what is held of a list.
const (
	ListPage    = 200  // runs asked for at a time while somebody scrolls
	WalkPage    = 500  // while walking to the end
	MaxHeld     = 4000 // runs that are held; those far from the cursor are dropped
	HeadPages   = 10   // pages that a part may have grown by before what is missing is left as a gap
	Slack       = 1000 // new runs that may come into what is held before something is dropped for them
	liveAtATime = 4    // parts with open runs that are read again at a time, besides the first
	Glance      = 20   // newest runs that are looked at first: where they are as before, so is the rest
	MaxGlances  = 15   // in a row; only a whole page shows that an older run was deleted
)

// place is a position in the server's order: open runs first, then those that closed
// last, among these those that started last, then by run id.
type place struct {
	open         bool
	close, start time.Time
	run          string
}

func PlaceOf(r Run) place { return place{r.Open(), r.Close, r.Start, r.RunID} }

func (p place) Compare(q place) int {
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

// Joined is parts of a list as one, each run once as the first part has it, in the server's
// order.
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
	slices.SortStableFunc(rows, func(a, b Run) int { return PlaceOf(a).Compare(PlaceOf(b)) })
	return rows
}

// segment is a part of the list: what lies behind the end of the one before it, up to
// its own end. The token leads to its beginning, whether its rows are held or not; a
// position stays valid when the run that stood there has moved.
type segment struct {
	token []byte
	end   place
	rows  []Run
	count int // rows when it was last read; 0 for one that never was
}

// lister reads one page of a list.
type lister func(ctx context.Context, size int, token []byte) ([]Run, []byte, error)

// Window is a list of any length of which a bounded stretch is held. Segments between
// lo and hi have rows; all that was ever reached has a token.
type Window struct {
	segments []segment
	Lo, hi   int
	Next     []byte // behind the last segment; nil where the list ends there
	Upwards  bool   // the last step was towards newer runs
	turn     int    // which of the segments with open runs are next to be read again
	glances  int    // in a row, at the newest runs only
}

// First is how many rows lie before those that are held.
func (w *Window) First() int64 {
	n := 0
	for _, s := range w.segments[:w.Lo] {
		n += s.count
	}
	return int64(n)
}

// More tells whether there are rows behind those that are held.
func (w *Window) More() bool { return w.hi < len(w.segments) || len(w.Next) > 0 }

func (w *Window) Held() int {
	n := 0
	for _, s := range w.segments[w.Lo:w.hi] {
		n += len(s.rows)
	}
	return n
}

// Rows joins what is held, each run once: a run that closed between two readings may
// stand in two segments, and then its closed row is the newer one.
func (w *Window) Rows() []Run {
	rows := make([]Run, 0, w.Held())
	at := make(map[string]int, cap(rows))
	twice := false
	for _, s := range w.segments[w.Lo:w.hi] {
		for _, r := range s.rows {
			if i, ok := at[r.RunID]; ok {
				if twice = true; r.Open() || !rows[i].Open() {
					continue
				}
				rows[i].RunID = ""
			}
			at[r.RunID] = len(rows)
			rows = append(rows, r)
		}
	}
	if twice {
		rows = slices.DeleteFunc(rows, func(r Run) bool { return r.RunID == "" })
	}
	return rows
}

// Refresh reads the first segment anew, and some of those whose rows may have changed.
func (w *Window) Refresh(ctx context.Context, list lister) error {
	if len(w.segments) == 0 {
		return w.Down(ctx, list, ListPage)
	}
	if same, err := w.unchanged(ctx, list); same || err != nil {
		return err
	}
	for _, at := range append(w.live(), 0) { // from the back, so that numbers stay right
		if err := w.again(ctx, list, at); err != nil {
			return err
		}
	}
	if w.Held() > MaxHeld+Slack {
		w.trim(w.Upwards)
	}
	return nil
}

// unchanged tells, by a short page, that the newest runs are as they are held and that all
// others have closed: then nothing has come or changed.
func (w *Window) unchanged(ctx context.Context, list lister) (bool, error) {
	if first := w.segments[0].rows; w.Lo > 0 || len(first) <= Glance || w.glances >= MaxGlances || w.openAfter(Glance) {
		w.glances = 0
		return false, nil
	}
	rows, _, err := list(ctx, Glance, w.segments[0].token)
	if err != nil || !reflect.DeepEqual(rows, w.segments[0].rows[:Glance]) {
		w.glances = 0
		return false, err
	}
	w.glances++
	return true, nil
}

// openAfter tells whether a run is open among those that are held, but for the first ones.
func (w *Window) openAfter(first int) bool {
	for _, seg := range w.segments[w.Lo:w.hi] {
		if slices.ContainsFunc(seg.rows[min(first, len(seg.rows)):], Run.Open) {
			return true
		}
		first = 0
	}
	return false
}

// live lists held segments, last first, that hold open runs or the place where runs go
// when they close: at most liveAtATime, in turn.
func (w *Window) live() []int {
	var all []int
	for i := max(w.Lo, 1); i < w.hi; i++ {
		if w.segments[i-1].end.open || slices.ContainsFunc(w.segments[i].rows, Run.Open) {
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

// again reads one segment anew. It may have become several, or none.
func (w *Window) again(ctx context.Context, list lister, at int) error {
	if at == len(w.segments)-1 {
		return w.reread(ctx, list)
	}
	old := w.segments[at]
	fresh, err := between(ctx, list, old.token, old.end)
	if err != nil {
		return err
	}
	if len(fresh) == 0 {
		w.segments[at+1].token = old.token
	}
	w.replace(at, fresh)
	return nil
}

// reread reads the last segment anew. It ends where a page ends.
func (w *Window) reread(ctx context.Context, list lister) error {
	last := &w.segments[len(w.segments)-1]
	rows, next, err := list(ctx, max(min(last.count, WalkPage), ListPage), last.token)
	if err != nil {
		return err
	}
	*last, w.Next = segmentOf(last.token, rows), next
	if len(w.segments)-1 < w.Lo || w.hi < len(w.segments) {
		last.rows = nil
	}
	return nil
}

// replace puts segments in the place of one. A gap among them ends what is held.
func (w *Window) replace(at int, fresh []segment) {
	grown := len(fresh) - 1
	switch {
	case at < w.Lo:
		w.Lo, w.hi = w.Lo+grown, w.hi+grown
		for i := range fresh {
			fresh[i].rows = nil
		}
	case at < w.hi:
		w.hi += grown
	default:
		for i := range fresh {
			fresh[i].rows = nil
		}
	}
	w.segments = slices.Concat(w.segments[:at], fresh, w.segments[at+1:])
	if gap := at + grown; at >= w.Lo && gap < w.hi && len(fresh) > 0 && fresh[grown].count == 0 {
		for i := gap; i < w.hi; i++ {
			w.segments[i].rows = nil
		}
		w.hi = gap
	}
}

// between reads from a token to an end. Pages become segments, except that a short rest
// goes with the page before it. Where there are more than headPages, the last segment
// has no rows and stands for what was not read.
func between(ctx context.Context, list lister, token []byte, end place) ([]segment, error) {
	var out []segment
	for range HeadPages {
		rows, next, err := list(ctx, ListPage, token)
		if err != nil {
			return nil, err
		}
		n := len(rows)
		for n > 0 && PlaceOf(rows[n-1]).Compare(end) > 0 {
			n--
		}
		ended := n < len(rows) || len(next) == 0 || n > 0 && PlaceOf(rows[n-1]).Compare(end) == 0
		rows = rows[:n:n]
		if last := len(out) - 1; last >= 0 && n < ListPage/2 {
			out[last].rows = append(out[last].rows, rows...)
			out[last].count += n
		} else if n > 0 {
			out = append(out, segmentOf(token, rows))
		}
		if ended {
			if len(out) > 0 {
				out[len(out)-1].end = end
			}
			return out, nil
		}
		if n > 0 && len(out) > 0 {
			out[len(out)-1].end = PlaceOf(rows[n-1])
		}
		token = next
	}
	return append(out, segment{token: token, end: end}), nil
}

func segmentOf(token []byte, rows []Run) segment {
	s := segment{token: token, rows: rows, count: len(rows)}
	if len(rows) > 0 {
		s.end = PlaceOf(rows[len(rows)-1])
	}
	return s
}

// Down holds the next segment towards older runs, and drops what is far above.
func (w *Window) Down(ctx context.Context, list lister, size int) error {
	if w.hi < len(w.segments)-1 {
		old := w.segments[w.hi]
		fresh, err := between(ctx, list, old.token, old.end)
		if err != nil {
			return err
		}
		w.open(w.hi, fresh)
		w.hi += max(len(held(fresh)), 0)
		w.trim(false)
		return nil
	}
	token := w.Next
	if w.hi < len(w.segments) { // the last one
		token = w.segments[w.hi].token
	} else if len(w.segments) > 0 && len(token) == 0 {
		return nil
	}
	rows, next, err := list(ctx, size, token)
	if err != nil {
		return err
	}
	w.segments = append(w.segments[:w.hi:w.hi], segmentOf(token, rows))
	w.Next = next
	w.hi++
	if len(rows) == 0 && w.hi > 1 { // the page before was full, and the last
		w.segments, w.hi = w.segments[:w.hi-1], w.hi-1
	}
	w.trim(false)
	return nil
}

// Up holds the segment before the first that is held, and drops what is far below.
func (w *Window) Up(ctx context.Context, list lister) error {
	if w.Lo == 0 {
		return nil
	}
	if w.Lo == len(w.segments) { // only a walk leaves it so
		w.Lo, w.hi = w.Lo-1, w.Lo-1
		return w.Down(ctx, list, WalkPage)
	}
	at := w.Lo - 1
	old := w.segments[at]
	fresh, err := between(ctx, list, old.token, old.end)
	if err != nil {
		return err
	}
	w.open(at, fresh)
	if got := held(fresh); len(got) < len(fresh) { // a gap between: what was held goes
		for i := range w.segments[at+len(fresh):] {
			w.segments[at+len(fresh)+i].rows = nil
		}
		w.Lo, w.hi = at, at+len(got)
	} else {
		w.Lo, w.hi = at, w.hi+len(fresh)-1
	}
	w.trim(true)
	return nil
}

// open puts segments that were read in the place of one that was not held.
func (w *Window) open(at int, fresh []segment) {
	if len(fresh) == 0 {
		w.segments[at+1].token = w.segments[at].token
	}
	w.segments = slices.Concat(w.segments[:at], fresh, w.segments[at+1:])
}

// held is the segments before a gap.
func held(fresh []segment) []segment {
	if n := len(fresh); n > 0 && fresh[n-1].count == 0 {
		return fresh[:n-1]
	}
	return fresh
}

// Top goes back to the newest runs.
func (w *Window) Top(ctx context.Context, list lister) error {
	if w.Lo == 0 && w.hi > 0 {
		return nil
	}
	w.drop()
	w.Lo, w.hi = 0, 0
	return w.Down(ctx, list, ListPage)
}

// Bottom goes behind the last segment that is known, to walk on from there.
func (w *Window) Bottom() {
	if w.hi < len(w.segments) {
		w.drop()
		w.Lo, w.hi = len(w.segments), len(w.segments)
	}
}

func (w *Window) drop() {
	for i := w.Lo; i < w.hi; i++ {
		w.segments[i].rows = nil
	}
}

// trim drops rows until no more than maxHeld are held, but never the segment at the end
// that is looked at.
func (w *Window) trim(fromBelow bool) {
	w.Upwards = fromBelow
	for n := w.Held(); n > MaxHeld && w.hi-w.Lo > 1; {
		at := w.Lo
		if fromBelow {
			w.hi--
			at = w.hi
		} else {
			w.Lo++
		}
		n -= len(w.segments[at].rows)
		w.segments[at].rows = nil
	}
}
