package runner

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// roster holds the runners of a [Table].
type roster struct {
	rows  []*row // by id
	byID  map[string]*row
	eager int   // number of free runners that meet the requirements of a waiting run
	ticks int64 // orders assignments and releases
	bytes int   // of all capabilities
}

// row is a runner.
type row struct {
	record
	offer  Capabilities // in normal form
	size   int          // of offer, in bytes
	wanted int          // number of groups with waiting runs whose requirements the runner meets
	eager  bool         // the runner is free and wanted
	busy   int
	held   []*hold // by claim
}

// record is the part of a row that the next run of the dispatcher needs.
type record struct {
	Registration Registration `json:"registration"`
	Epoch        int64        `json:"epoch"`
	Queue        string       `json:"queue"`
	Stale        bool         `json:"stale,omitempty"`
	Draining     bool         `json:"draining,omitempty"`
	Gone         bool         `json:"gone,omitempty"`
	Since        time.Time    `json:"since"` // of the status
	Tick         int64        `json:"tick"`  // of the last assignment or release
	Done         int64        `json:"done"`
}

func (r *row) status() Status { return statusOf(r.Gone, r.Stale, r.Draining) }

// free reports whether the runner can execute one more run.
func (r *row) free() bool { return r.status() == Online && r.busy < r.offer.Slots }

// accepts reports whether a registration is newer than the known one. If the runner is gone, any epoch is
// accepted, because a new lease workflow may start with a lower epoch.
func (r *row) accepts(n Notice) bool {
	if n.Registration.Token == r.Registration.Token {
		return n.Epoch > r.Epoch || n.Epoch == r.Epoch && !r.Gone
	}
	return r.Gone || n.Epoch > r.Epoch
}

func (r *row) view() RunnerView {
	reg := r.Registration
	v := RunnerView{ID: reg.ID, Epoch: r.Epoch, Status: r.status(), Since: r.Since,
		Capabilities: reg.Capabilities,
		PID:          reg.PID, Version: reg.Version, Busy: r.busy, Done: r.Done}
	for _, h := range r.held {
		if h.slot {
			v.Runs = append(v.Runs, h.req.RunID)
		}
	}
	return v
}

func (t *roster) search(id string) int {
	i, _ := slices.BinarySearchFunc(t.rows, id, func(r *row, id string) int {
		return strings.Compare(r.Registration.ID, id)
	})
	return i
}

func (t *roster) add(id string) *row {
	r := &row{record: record{Registration: Registration{ID: id}}}
	t.rows = slices.Insert(t.rows, t.search(id), r)
	t.byID[id] = r
	return r
}

func (t *roster) remove(r *row) {
	i := t.search(r.Registration.ID)
	t.rows = slices.Delete(t.rows, i, i+1)
	t.bytes -= r.size
	delete(t.byID, r.Registration.ID)
}

func (t *roster) setRegistration(r *row, reg Registration) {
	t.bytes -= r.size
	r.Registration = reg
	r.offer = reg.Capabilities.normal()
	r.size = size(r.offer)
	t.bytes += r.size
}

// size returns the approximate size of capabilities in bytes.
func size(c Capabilities) int {
	n := len(c.Hostname) + len(c.ProjectDir)
	for _, s := range slices.Concat(c.ExecutorTypes, c.Tags) {
		n += len(s) + 1
	}
	return n
}

// touch records that a run was assigned to the runner, or released.
func (t *roster) touch(r *row) {
	t.ticks++
	r.Tick = t.ticks
}

// update sets the fields that depend on whether the runner is free and wanted.
func (t *roster) update(r *row) {
	eager := r.free() && r.wanted > 0
	if eager && !r.eager {
		t.eager++
	}
	if !eager && r.eager {
		t.eager--
	}
	r.eager = eager
}

// best returns the free runner that gets the next run, or nil.
func best(able []*row) (best *row) {
	for _, r := range able {
		if r.free() && (best == nil || r.before(best)) {
			best = r
		}
	}
	return best
}

// before reports whether r takes precedence over other for the next run.
func (r *row) before(other *row) bool {
	return cmp.Or(
		cmp.Compare(other.offer.Slots-other.busy, r.offer.Slots-r.busy),
		cmp.Compare(r.Tick, other.Tick),
		strings.Compare(r.Registration.ID, other.Registration.ID)) < 0
}

func (t *roster) countGone() (n int) {
	for _, r := range t.rows {
		if r.Gone {
			n++
		}
	}
	return n
}

// longestGone returns the runner that has been gone longest and holds no run, or nil.
func (t *roster) longestGone() (oldest *row) {
	for _, r := range t.rows {
		if r.Gone && len(r.held) == 0 && (oldest == nil || r.Since.Before(oldest.Since)) {
			oldest = r
		}
	}
	return oldest
}

// nearest describes the runners that meet the requirements of a group but are not available, or else the
// first runner with the fewest missing requirements.
func (t *roster) nearest(g *group) string {
	var busy, away []*row
	var best *row
	var least []string
	for _, r := range t.rows {
		if r.Gone {
			continue
		}
		missing := r.offer.Missing(g.requirements)
		if slices.Contains(g.avoid, r.Queue) {
			missing = append(missing, "a new start (it lost the run before)")
		}
		switch {
		case len(missing) == 0 && r.status() == Online:
			busy = append(busy, r)
		case len(missing) == 0:
			away = append(away, r)
		case best == nil || len(missing) < len(least):
			best, least = r, missing
		}
	}
	switch {
	case len(busy) == 1:
		return "1 runner could take it, " + busy[0].name() + ", and is busy"
	case len(busy) > 1:
		return strconv.Itoa(len(busy)) + " runners could take it, all busy"
	case len(away) > 0:
		return "nearest is " + away[0].name() + ", which is " + string(away[0].status())
	case best != nil:
		return "nearest is " + best.name() + ", which lacks " + enumerate(least)
	}
	return "no runner is registered: start one with acescope runner start"
}

func (r *row) name() string { return r.Registration.ID + " on " + r.offer.Hostname }

// enumerate returns "a", "a and b" or "a, b and c". If there are more than four items, it names four.
func enumerate(items []string) string {
	const most = 4
	last := items[len(items)-1]
	rest := items[:len(items)-1]
	if len(items) > most {
		last = strconv.Itoa(len(items)-most) + " more"
		rest = items[:most]
	}
	if len(rest) == 0 {
		return last
	}
	return strings.Join(rest, ", ") + " and " + last
}
