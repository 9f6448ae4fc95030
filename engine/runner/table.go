package runner

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Table is what the dispatcher knows, and decides by: the runners, the runs that wait for
// one and those that were given to one. It is pure: the same notices at the same times lead
// to the same answers, on any machine. It is not safe for concurrent use.
//
// Runs that wait are grouped by what they demand, and a group knows which runners are able to
// take its runs, so that a decision looks at groups and not at runs. Between two calls of
// Match no runner is free that could take a run that waits.
type Table struct {
	rows   []*row // by id
	places []*row // by place; nil where there is none
	byID   map[string]*row
	free   places // of the runners that can take one more run
	eager  int    // free runners that are able to take a run that waits

	groups  map[string]*group
	order   []*group // in which runs wait, by the first of them
	empties []*group // in which none waited when they were listed here
	waits   map[string]*wait
	due     deadlines
	holds   map[string]*hold
	out     Answers // not told yet, except for claims
	// suspects have ended without a word.
	suspects []Request

	asked  int64 // requests so far, by which runs are ordered
	claims int64
	ticks  int64 // orders what runners did
	bytes  int   // of the demands of the groups
	offers int   // bytes of what runners offer
	count  Counts
	at     time.Time
}

// Counts are what became of requests so far.
type Counts struct {
	Matched int64 `json:"matched,omitempty"`
	Expired int64 `json:"expired,omitempty"`
	Refused int64 `json:"refused,omitempty"`
	Lost    int64 `json:"lost,omitempty"`
	// Turned counts registrations that were turned away, of more than [MaxRunners].
	Turned int64 `json:"turned,omitempty"`
}

// Bounds of the table beside [MaxPending] and [MaxRunners].
const (
	maxBytes = 512 << 10 // of different demands, and of what runners offer
	maxIdle  = 256       // groups without runs, kept for what they know of runners
	maxGone  = 50        // runners that are gone, kept to be shown
	maxAvoid = 16        // queues that a run can avoid

	maxSuspects = 2000
)

// NewTable makes an empty table.
func NewTable() *Table {
	return &Table{byID: map[string]*row{}, groups: map[string]*group{}, waits: map[string]*wait{}, holds: map[string]*hold{}}
}

// row is one runner.
type row struct {
	reg      Registration
	offer    Capabilities // in the form that is compared
	epoch    int64
	queue    string
	stale    bool
	draining bool
	gone     bool
	since    time.Time // of the status

	place  int
	wanted int   // groups that it is able to take runs of, and in which runs wait
	eager  bool  // is free, and wanted
	tick   int64 // when it was given a run last, or gave one back
	busy   int
	done   int64
	held   []*hold // by the number of their claims
}

func (r *row) status() Status {
	switch {
	case r.gone:
		return Gone
	case r.stale:
		return StaleNow
	case r.draining:
		return Draining
	}
	return Online
}

func (r *row) candidate() Candidate {
	return Candidate{ID: r.reg.ID, Queue: r.queue, Capabilities: r.offer, Status: r.status(), Busy: r.busy}
}

// hold is a run that was given to a runner and has not ended. One without a slot is only
// watched: its runner's process is gone.
type hold struct {
	req   Request
	row   *row
	claim int64
	slot  bool
	since time.Time
}

// wait is a run that waits for a runner.
type wait struct {
	req        Request
	seq        int64
	since      time.Time
	group      *group
	prev, next *wait // in the group
	index      int   // in the deadlines
}

// group is the runs that wait with the same demands, and avoid the same queues.
type group struct {
	key         string
	demands     Demands
	avoid       []string
	able        places
	first, last *wait
	waiting     int
	listed      bool // among the empties
}

// Apply takes in a notice. What it does not fit — it was heard before, or it tells of an
// epoch or a claim that is over — changes nothing.
func (t *Table) Apply(n Notice, now time.Time) {
	t.at = now
	switch n.Kind {
	case Enqueue:
		if n.Request != nil && n.Request.RunID == n.Run {
			t.enqueue(*n.Request, now)
		}
	case Withdraw:
		t.withdraw(n.Run)
	case Release:
		t.release(n.Run, n.Claim)
	case Holds:
		if n.Request != nil && n.Held != nil && n.Request.RunID == n.Run {
			t.recall(*n.Request, *n.Held, now)
		}
	case Registered:
		if n.Registration != nil && n.Registration.ID == n.Runner {
			t.register(n, now)
		}
	case WentStale, CameBack, Drains, Left, Removed:
		t.change(n, now)
	}
}

// enqueue lets a run wait. Of one that is known already it is a repetition, unless it asks
// anew, with a higher number, or is another execution of the same id. One that was given to a
// runner hears the same again, or gets another one where that runner's process is gone.
func (t *Table) enqueue(req Request, now time.Time) {
	if checkText("run id", req.RunID, 2*maxName) != nil || req.RunID == "" {
		return
	}
	if h := t.holds[req.RunID]; h != nil {
		switch {
		case h.req.Execution != req.Execution || req.Try > h.req.Try:
		case req.Try < h.req.Try:
			return
		case h.slot: // it has not heard what it was answered, or does not remember
			t.out = append(t.out, h.claimed())
			return
		}
		t.letGo(h)
	}
	if w := t.waits[req.RunID]; w != nil {
		if w.req.Execution == req.Execution && req.Try <= w.req.Try {
			return
		}
		t.unwait(w)
	}
	req.Demands = req.Demands.normal()
	if err := checkRequest(req); err != nil {
		t.refuse(req, "bad_demands", err.Error())
		return
	}
	if len(t.waits) >= MaxPending {
		t.refuse(req, "queue_full", strconv.Itoa(MaxPending)+" runs wait for a runner already: try again when there are fewer, or start more runners")
		return
	}
	g := t.groupOf(req)
	if g == nil {
		t.refuse(req, "queue_full", "the runs that wait demand too many different things: try again when there are fewer")
		return
	}
	t.asked++
	since := now
	if !req.Asked.IsZero() && req.Asked.Before(now) {
		since = req.Asked
	}
	t.addWait(&wait{req: req, seq: t.asked, since: since, group: g})
}

func checkRequest(req Request) error {
	for _, f := range []struct{ what, text string }{{"execution", req.Execution}, {"parent session", req.Parent}, {"name", req.Name}} {
		if err := checkText(f.what, f.text, maxName); err != nil {
			return err
		}
	}
	return req.Demands.Check()
}

func (t *Table) refuse(req Request, reason, message string) {
	t.count.Refused++
	t.out = append(t.out, answer(req, Answer{Unmatched: &Unmatched{Try: req.Try, Reason: reason, Message: message}}))
}

func (t *Table) withdraw(run string) {
	if w := t.waits[run]; w != nil {
		t.unwait(w)
	}
	if h := t.holds[run]; h != nil {
		t.letGo(h)
	}
}

// release frees the slot of a claim.
func (t *Table) release(run string, claim int64) {
	if h := t.holds[run]; h != nil && h.claim == claim {
		t.letGo(h)
	}
}

// Ended tells that an answer did not reach its run, which has ended, or that the run was
// found to have ended, where claim is 0. Nothing happens where it was given to a runner anew.
func (t *Table) Ended(run, execution string, claim int64) {
	if claim == 0 {
		t.suspects = slices.DeleteFunc(t.suspects, func(r Request) bool { return r.RunID == run && r.Execution == execution })
	}
	if h := t.holds[run]; h != nil && h.req.Execution == execution && (claim == 0 || h.claim == claim) {
		t.letGo(h)
	}
}

// letGo forgets a run that was given to a runner.
func (t *Table) letGo(h *hold) {
	r := h.row
	delete(t.holds, h.req.RunID)
	if i := slices.Index(r.held, h); i >= 0 {
		r.held = slices.Delete(r.held, i, i+1)
	}
	r.done++
	if h.slot {
		r.busy--
		t.touch(r)
	}
	t.weigh(r)
}

func (t *Table) touch(r *row) {
	t.ticks++
	r.tick = t.ticks
}

// weigh keeps what depends on whether a runner is free.
func (t *Table) weigh(r *row) {
	free := r.status() == Online && r.busy < r.offer.Slots
	t.free.set(r.place, free)
	if eager := free && r.wanted > 0; eager != r.eager {
		r.eager = eager
		if eager {
			t.eager++
		} else {
			t.eager--
		}
	}
}

func (t *Table) rowAt(id string) (int, bool) {
	return slices.BinarySearchFunc(t.rows, id, func(r *row, id string) int { return strings.Compare(r.reg.ID, id) })
}
