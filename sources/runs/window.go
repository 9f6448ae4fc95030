package runs

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Bounds of the held part of a list.
const (
	ListPage    = 200  // page size while the user scrolls
	walkPage    = 500  // page size while walking to the end
	MaxHeld     = 4000 // held runs; those far from the cursor are dropped
	HeadPages   = 10   // pages that a segment may grow by before the rest becomes a gap
	Slack       = 1000 // new runs that may be added before others are dropped
	liveAtATime = 4    // segments with open runs that are read again per refresh, besides the first
	Glance      = 20   // newest runs that are checked first: if they are unchanged, so are the others
	MaxGlances  = 15   // consecutive short checks; only a complete page shows that an older run was deleted
)

// place is a position in the server's order: open runs first, then by close time and start time, newest first,
// then by run id.
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
	slices.SortStableFunc(rows, func(a, b Run) int { return PlaceOf(a).Compare(PlaceOf(b)) })
	return rows
}

// segment is a part of the list between the end of the previous segment and its own end. The token leads to its
// start, whether or not its rows are held. A position stays valid when its run has moved.
type segment struct {
	token []byte
	end   place
	rows  []Run
	count int // number of rows when last read; 0 if never read
}

// lister reads one page of a list.
type lister func(ctx context.Context, size int, token []byte) ([]Run, []byte, error)

// window holds a bounded part of a list of any length. Segments from lo to hi have rows; all segments reached
// so far have tokens.
type window struct {
	segments []segment
	lo, hi   int
	next     []byte // after the last segment; nil at the end of the list
	upwards  bool   // the last step was toward newer runs
	turn     int    // which segment with open runs is read next
	glances  int    // consecutive checks of the newest runs only
}

// first returns the number of rows before the held ones.
func (w *window) first() int64 {
	n := 0
	for _, s := range w.segments[:w.lo] {
		n += s.count
	}
	return int64(n)
}

// more reports whether there are rows after the held ones.
func (w *window) more() bool { return w.hi < len(w.segments) || len(w.next) > 0 }

func (w *window) held() int {
	n := 0
	for _, s := range w.segments[w.lo:w.hi] {
		n += len(s.rows)
	}
	return n
}

// rows returns the held rows, each run once. A run that closed between two readings may be in two segments; its
// closed row is the newer one.
func (w *window) rows() []Run {
	rows := make([]Run, 0, w.held())
	at := make(map[string]int, cap(rows))
	twice := false
	for _, s := range w.segments[w.lo:w.hi] {
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

// refresh reads the first segment again, and some segments whose rows may have changed.
func (w *window) refresh(ctx context.Context, list lister) error {
	if len(w.segments) == 0 {
		return w.down(ctx, list, ListPage)
	}
	if same, err := w.unchanged(ctx, list); same || err != nil {
		return err
	}
	for _, at := range append(w.live(), 0) { // last first, so that indexes stay valid
		if err := w.readAgain(ctx, list, at); err != nil {
			return err
		}
	}
	if w.held() > MaxHeld+Slack {
		w.trim(w.upwards)
	}
	return nil
}

// unchanged reports, after reading a short page, that the newest runs are unchanged and all others are closed.
func (w *window) unchanged(ctx context.Context, list lister) (bool, error) {
	if first := w.segments[0].rows; w.lo > 0 || len(first) <= Glance || w.glances >= MaxGlances || w.openAfter(Glance) {
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

// openAfter reports whether a held run is open, besides the first ones.
func (w *window) openAfter(first int) bool {
	for _, seg := range w.segments[w.lo:w.hi] {
		if slices.ContainsFunc(seg.rows[min(first, len(seg.rows)):], Run.Open) {
			return true
		}
		first = 0
	}
	return false
}

// live returns held segments, last first, that contain open runs or the place where closing runs move to: at
// most liveAtATime, in turn.
func (w *window) live() []int {
	var all []int
	for i := max(w.lo, 1); i < w.hi; i++ {
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

// readAgain reads one segment again. It may be replaced by several segments, or by none.
func (w *window) readAgain(ctx context.Context, list lister, at int) error {
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

// reread reads the last segment again. It ends where a page ends.
func (w *window) reread(ctx context.Context, list lister) error {
	last := &w.segments[len(w.segments)-1]
	rows, next, err := list(ctx, max(min(last.count, walkPage), ListPage), last.token)
	if err != nil {
		return err
	}
	*last, w.next = segmentOf(last.token, rows), next
	if len(w.segments)-1 < w.lo || w.hi < len(w.segments) {
		last.rows = nil
	}
	return nil
}

// replace replaces one segment. A gap among the new ones ends the held part.
func (w *window) replace(at int, fresh []segment) {
	grown := len(fresh) - 1
	switch {
	case at < w.lo:
		w.lo, w.hi = w.lo+grown, w.hi+grown
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
	if gap := at + grown; at >= w.lo && gap < w.hi && len(fresh) > 0 && fresh[grown].count == 0 {
		for i := gap; i < w.hi; i++ {
			w.segments[i].rows = nil
		}
		w.hi = gap
	}
}

// between reads from a token to an end. Pages become segments; a short rest is added to the previous page.
// Beyond HeadPages, the last segment has no rows and stands for the gap.
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

// down loads the next segment toward older runs, and drops newer rows.
func (w *window) down(ctx context.Context, list lister, size int) error {
	if w.hi < len(w.segments)-1 {
		old := w.segments[w.hi]
		fresh, err := between(ctx, list, old.token, old.end)
		if err != nil {
			return err
		}
		w.open(w.hi, fresh)
		w.hi += max(len(beforeGap(fresh)), 0)
		w.trim(false)
		return nil
	}
	token := w.next
	if w.hi < len(w.segments) { // the last segment
		token = w.segments[w.hi].token
	} else if len(w.segments) > 0 && len(token) == 0 {
		return nil
	}
	rows, next, err := list(ctx, size, token)
	if err != nil {
		return err
	}
	w.segments = append(w.segments[:w.hi:w.hi], segmentOf(token, rows))
	w.next = next
	w.hi++
	if len(rows) == 0 && w.hi > 1 { // the previous page was full, and the last
		w.segments, w.hi = w.segments[:w.hi-1], w.hi-1
	}
	w.trim(false)
	return nil
}

// up loads the segment before the first held one, and drops older rows.
func (w *window) up(ctx context.Context, list lister) error {
	if w.lo == 0 {
		return nil
	}
	if w.lo == len(w.segments) { // only a walk ends here
		w.lo, w.hi = w.lo-1, w.lo-1
		return w.down(ctx, list, walkPage)
	}
	at := w.lo - 1
	old := w.segments[at]
	fresh, err := between(ctx, list, old.token, old.end)
	if err != nil {
		return err
	}
	w.open(at, fresh)
	if got := beforeGap(fresh); len(got) < len(fresh) { // there is a gap: drop the old rows
		for i := range w.segments[at+len(fresh):] {
			w.segments[at+len(fresh)+i].rows = nil
		}
		w.lo, w.hi = at, at+len(got)
	} else {
		w.lo, w.hi = at, w.hi+len(fresh)-1
	}
	w.trim(true)
	return nil
}

// open replaces a segment without rows by segments that were read.
func (w *window) open(at int, fresh []segment) {
	if len(fresh) == 0 {
		w.segments[at+1].token = w.segments[at].token
	}
	w.segments = slices.Concat(w.segments[:at], fresh, w.segments[at+1:])
}

// beforeGap returns the segments before a gap.
func beforeGap(fresh []segment) []segment {
	if n := len(fresh); n > 0 && fresh[n-1].count == 0 {
		return fresh[:n-1]
	}
	return fresh
}

// top goes back to the newest runs.
func (w *window) top(ctx context.Context, list lister) error {
	if w.lo == 0 && w.hi > 0 {
		return nil
	}
	w.drop()
	w.lo, w.hi = 0, 0
	return w.down(ctx, list, ListPage)
}

// bottom goes to the last known segment, to walk on from there.
func (w *window) bottom() {
	if w.hi < len(w.segments) {
		w.drop()
		w.lo, w.hi = len(w.segments), len(w.segments)
	}
}

func (w *window) drop() {
	for i := w.lo; i < w.hi; i++ {
		w.segments[i].rows = nil
	}
}

// trim drops rows until at most MaxHeld are held, but never the segment under the cursor.
func (w *window) trim(fromBelow bool) {
	w.upwards = fromBelow
	for n := w.held(); n > MaxHeld && w.hi-w.lo > 1; {
		at := w.lo
		if fromBelow {
			w.hi--
			at = w.hi
		} else {
			w.lo++
		}
		n -= len(w.segments[at].rows)
		w.segments[at].rows = nil
	}
}
