package ace

import (
	"slices"
	"time"
)

// tally counts the calls of one skill as they come and change.
type tally struct {
	calls, ok, failed, denied, pending int

	newest *entry // the call with the latest time; of several, the one with the first id
	error  *entry // the last call, by time and id, with an error
	stale  bool   // newest or error was taken out: they must be found again

	past struct{ newest, error *entry } // among calls before the run was continued

	durations []float64 // of finished calls, sorted; milliseconds
	added     []float64 // to durations since they were last sorted
	gone      []float64 // from durations since then
}

// slot is the counter that a call belongs to.
func (t *tally) slot(c Call) *int {
	switch {
	case !c.Accepted:
		return &t.denied
	case c.Pending:
		return &t.pending
	case c.OK:
		return &t.ok
	}
	return &t.failed
}

func timed(c Call) bool { return !c.Pending && c.Accepted }

func (t *tally) add(c *entry) {
	t.calls++
	*t.slot(c.now)++
	if timed(c.now) {
		t.added = append(t.added, c.now.DurationMS)
	}
	t.see(c)
}

func (t *tally) see(c *entry) {
	if n := t.newest; n == nil || n.number == c.number || c.now.At.After(n.now.At) || c.now.At.Equal(n.now.At) && c.now.ID < n.now.ID {
		t.newest = c
	}
	if c.now.Error != "" && (t.error == nil || t.error.number == c.number || compare(c, t.error) > 0) {
		t.error = c
	}
}

// remove takes a call out that will stand as next from now on.
func (t *tally) remove(c *entry, next Call) {
	t.calls--
	*t.slot(c.now)--
	if timed(c.now) {
		t.gone = append(t.gone, c.now.DurationMS)
	}
	moved := next.Name != c.now.Name || next.At.Before(c.now.At)
	t.stale = t.stale || t.newest.is(c) && moved || t.error.is(c) && (moved || next.Error == "")
}

// is tells whether two entries are of the same call. A call of before the run was
// continued has no number.
func (c *entry) is(d *entry) bool { return c != nil && c.number >= 0 && c.number == d.number }

// clone is a copy. Sorted durations are never written to, so that both may have them.
func (t *tally) clone() *tally {
	if len(t.added)+len(t.gone) > len(t.durations)/8 {
		t.settle()
	}
	c := *t
	c.added, c.gone = slices.Clone(t.added), slices.Clone(t.gone)
	return &c
}

func (t *tally) usage(name string) SkillUsage {
	u := SkillUsage{Name: name, Calls: t.calls, OK: t.ok, Failed: t.failed, Denied: t.denied, Pending: t.pending}
	t.settle()
	u.P50MS, u.P95MS = percentile(t.durations, 50), percentile(t.durations, 95)
	if t.newest != nil && t.newest.now.At.After(time.Time{}) {
		u.LastAt = t.newest.now.At
	}
	if t.error != nil {
		u.LastError = t.error.now.Error
	}
	return u
}

// settle brings the sorted durations up to date in one pass over them.
func (t *tally) settle() {
	if len(t.added)+len(t.gone) == 0 {
		return
	}
	slices.Sort(t.added)
	slices.Sort(t.gone)
	merged := make([]float64, 0, max(len(t.durations)+len(t.added)-len(t.gone), 0))
	a, b, gone := t.durations, t.added, t.gone
	for len(a)+len(b) > 0 {
		var next float64
		if len(b) == 0 || len(a) > 0 && a[0] <= b[0] {
			next, a = a[0], a[1:]
		} else {
			next, b = b[0], b[1:]
		}
		if len(gone) > 0 && gone[0] == next {
			gone = gone[1:]
			continue
		}
		merged = append(merged, next)
	}
	t.durations, t.added, t.gone = merged, t.added[:0], t.gone[:0]
}

// percentile is the nearest-rank percentile of sorted values, 0 where there are none.
func percentile(sorted []float64, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}
