package runner

import (
	"slices"
	"strconv"
	"time"
)

// Table is the state of the dispatcher: the runners, the runs that wait for a runner, and the
// runs that a runner holds. It is pure: the same notices at the same times give the same
// answers. It is not safe for concurrent use.
//
// Waiting runs are grouped by their requirements, and a group holds the runners that meet them. So the cost
// of a decision depends on the number of groups, not of runs. After Match, no free runner can execute a
// waiting run.
type Table struct {
	roster   roster
	queue    queue
	holds    map[string]*hold // by run id
	suspects []Request        // runs that ended without a notice
	out      Answers          // to be returned by Match
	claims   int64            // number of the last claim
	count    Counts
	at       time.Time // of the last notice
}

// Bounds of the table in addition to [MaxPending] and [MaxRunners].
const (
	maxBytes    = 512 << 10 // of all requirements, and of all capabilities
	maxIdle     = 256       // groups without runs
	maxGone     = 50        // runners that are gone, kept for the view
	maxAvoid    = 16        // queues that a run can avoid
	maxSuspects = 2000
)

// hold is a run that a runner holds. A hold without a slot only waits for the end of the run, because the
// runner's process has ended.
type hold struct {
	req   Request
	row   *row
	claim int64
	slot  bool
	since time.Time
}

// NewTable returns an empty table.
func NewTable() *Table {
	t := &Table{holds: map[string]*hold{}}
	t.roster.byID = map[string]*row{}
	t.queue = queue{roster: &t.roster, groups: map[string]*group{}, waits: map[string]*wait{}}
	return t
}

// Apply applies a notice. It ignores repeated notices, and notices of an old epoch or claim.
func (t *Table) Apply(n Notice, now time.Time) {
	t.at = now
	switch n.Kind {
	case Enqueue:
		if n.Request != nil && n.Request.RunID == n.Run {
			t.enqueue(*n.Request, now)
		}
	case Withdraw:
		t.queue.withdraw(n.Run)
		t.release(t.holds[n.Run])
	case Release:
		if h := t.holds[n.Run]; h != nil && h.claim == n.Claim {
			t.release(h)
		}
	case Holds:
		if n.Request != nil && n.Held != nil && n.Request.RunID == n.Run {
			t.recall(*n.Request, *n.Held, now)
		}
	case Registered:
		if n.Registration != nil && n.Registration.ID == n.Runner {
			t.register(n, now)
		}
	case WentStale, Recovered, DrainStarted, Left, Removed:
		t.change(n, now)
	}
}

// enqueue adds a waiting run. A request is a repetition unless its try is higher or its
// execution differs. A repetition for a run that has a runner gets the same answer again, or
// another runner if that runner's process has ended.
func (t *Table) enqueue(req Request, now time.Time) {
	if req.RunID == "" || checkText("run id", req.RunID, 2*maxName) != nil {
		return
	}
	if h := t.holds[req.RunID]; h != nil {
		if h.req.Execution == req.Execution && req.Try < h.req.Try {
			return
		}
		if h.req.Execution == req.Execution && req.Try == h.req.Try && h.slot {
			t.out = append(t.out, h.claimed())
			return
		}
		t.release(h)
	}
	if w := t.queue.waits[req.RunID]; w != nil && w.req.Execution == req.Execution && req.Try <= w.req.Try {
		return
	}
	t.queue.withdraw(req.RunID)
	req.Requirements = req.Requirements.normal()
	if err := checkRequest(req); err != nil {
		t.refuse(req, "bad_demands", err.Error())
		return
	}
	if len(t.queue.waits) >= MaxPending {
		t.refuse(req, "queue_full", strconv.Itoa(MaxPending)+
			" runs wait for a runner already: try again when there are fewer, or start more runners")
		return
	}
	g := t.queue.group(req)
	if g == nil {
		t.refuse(req, "queue_full", "the waiting runs have too many different requirements: try again later")
		return
	}
	since := now
	if !req.Asked.IsZero() && req.Asked.Before(now) {
		since = req.Asked
	}
	t.queue.asked++
	t.queue.add(&wait{req: req, seq: t.queue.asked, since: since, group: g})
}

func checkRequest(req Request) error {
	for _, f := range []struct{ what, text string }{
		{"execution", req.Execution}, {"parent session", req.Parent}, {"name", req.Name},
	} {
		if err := checkText(f.what, f.text, maxName); err != nil {
			return err
		}
	}
	return req.Requirements.Check()
}

func (t *Table) refuse(req Request, reason, message string) {
	t.count.Refused++
	t.out = append(t.out, answer(req,
		Answer{Unmatched: &Unmatched{Try: req.Try, Reason: reason, Message: message}}))
}

// answer returns a with the fields of a request.
func answer(req Request, a Answer) Answer {
	a.RunID = req.RunID
	a.Execution = req.Execution
	a.Parent = req.Parent
	a.Name = req.Name
	return a
}

// Match assigns runs to runners: always the oldest run that a free runner can execute, to the
// runner with the most free slots, then the one idle longest, then the first by id. It fails
// runs whose deadline has passed, and returns all answers since the last call.
func (t *Table) Match(now time.Time) Answers {
	t.at = now
	for i := 0; t.roster.eager > 0 && i < len(t.queue.order); {
		g := t.queue.order[i]
		if r := best(g.able); r != nil {
			t.assign(g.first(), r, now) // g moves back, and the next group is at i
		} else {
			i++
		}
	}
	for len(t.queue.due) > 0 && !t.queue.due[0].req.Deadline.After(now) {
		t.expire(t.queue.due[0])
	}
	out := t.out
	t.out = nil
	return out
}

func (t *Table) assign(w *wait, r *row, now time.Time) {
	t.queue.remove(w)
	t.claims++
	t.count.Matched++
	h := &hold{req: w.req, row: r, claim: t.claims, slot: true, since: now}
	t.hold(h)
	t.roster.touch(r)
	t.roster.update(r)
	t.out = append(t.out, h.claimed())
}

func (h *hold) claimed() Answer {
	r := h.row
	return answer(h.req, Answer{Claimed: &Claim{Number: h.claim, Try: h.req.Try, RunnerID: r.Registration.ID,
		Epoch: r.Epoch, Queue: r.Queue, SessionQueue: r.Registration.SessionQueue,
		Capabilities: r.Registration.Capabilities, At: h.since}})
}

func (t *Table) expire(w *wait) {
	t.queue.remove(w)
	t.count.Expired++
	waited := max(w.req.Deadline.Sub(w.since), 0)
	precision := time.Second
	if waited < time.Second/2 {
		precision = time.Millisecond
	}
	message := "no runner took it within " + waited.Round(precision).String() + ": " +
		t.roster.nearest(w.group)
	t.out = append(t.out, answer(w.req,
		Answer{Unmatched: &Unmatched{Try: w.req.Try, Reason: "no_runner", Message: message}}))
}

func (t *Table) hold(h *hold) {
	t.holds[h.req.RunID] = h
	h.row.held = append(h.row.held, h)
	if h.slot {
		h.row.busy++
	}
}

// release removes a hold and frees its slot. h may be nil.
func (t *Table) release(h *hold) {
	if h == nil {
		return
	}
	r := h.row
	delete(t.holds, h.req.RunID)
	r.held = slices.DeleteFunc(r.held, func(other *hold) bool { return other == h })
	r.Done++
	if h.slot {
		r.busy--
		t.roster.touch(r)
	}
	t.roster.update(r)
}

// SetLastClaim makes the next claim number higher than n. A new dispatcher starts above all
// numbers of earlier ones, since a run does not accept a lower number.
func (t *Table) SetLastClaim(n int64) { t.claims = max(t.claims, n) }

// recall restores a hold of an earlier dispatcher. An unknown runner counts as gone until it
// registers.
func (t *Table) recall(req Request, c Claim, now time.Time) {
	req.Requirements = req.Requirements.normal()
	if !isName(req.RunID, 2*maxName) || !isName(c.RunnerID, maxName) || checkRequest(req) != nil ||
		t.holds[req.RunID] != nil {
		return
	}
	r := t.roster.byID[c.RunnerID]
	if r == nil {
		if !t.makeRoom() {
			return
		}
		r = t.roster.add(c.RunnerID)
		r.Epoch = c.Epoch
		r.Gone = true
		r.Since = now
	}
	t.queue.withdraw(req.RunID)
	t.SetLastClaim(c.Number)
	slot := c.Epoch == r.Epoch || Agent(req.Requirements.ExecutorType) != ""
	t.hold(&hold{req: req, row: r, claim: c.Number, slot: slot, since: now})
	t.roster.update(r)
}

// register applies the registration of a runner. A later epoch is a new process: programs of
// the previous one have ended, agents' sessions continue.
func (t *Table) register(n Notice, now time.Time) {
	reg := *n.Registration
	if reg.Check() != nil {
		return
	}
	r := t.roster.byID[reg.ID]
	if r != nil && !r.accepts(n) {
		return
	}
	oldSize := 0
	if r != nil {
		oldSize = r.size
	}
	if r == nil && !t.makeRoom() || t.roster.bytes-oldSize+size(reg.Capabilities.normal()) > maxBytes {
		t.count.TurnedAway++
		return
	}
	switch {
	case r == nil:
		r = t.roster.add(reg.ID)
		t.startEpoch(r, n.Epoch, now)
	case r.Registration.Token == "" && n.Epoch == r.Epoch: // recalled, and still has its runs
		r.Gone = false
		r.Since = now
	case n.Epoch > r.Epoch || reg.Token != r.Registration.Token:
		t.startEpoch(r, n.Epoch, now)
	}
	r.Queue = n.Queue
	t.roster.setRegistration(r, reg)
	t.queue.compare(r)
	t.roster.update(r)
}

// makeRoom reports whether there is room for one more runner. If needed, it forgets a runner that is gone.
func (t *Table) makeRoom() bool {
	if len(t.roster.rows) >= MaxRunners {
		t.forgetGone(len(t.roster.rows) - MaxRunners + 1)
	}
	return len(t.roster.rows) < MaxRunners
}

func (t *Table) startEpoch(r *row, epoch int64, now time.Time) {
	r.Epoch = epoch
	r.Since = now
	r.Stale, r.Draining, r.Gone = false, false, false
	t.freeSlots(r, false)
	t.roster.touch(r)
}

// freeSlots frees the slots of programs after the end of the runner's process. If lost is set, it also frees
// the slots of agents, and answers their runs that the runner is lost. The runs of programs notice it by a
// missing heartbeat.
func (t *Table) freeSlots(r *row, lost bool) {
	for _, h := range r.held {
		agent := Agent(h.req.Requirements.ExecutorType) != ""
		if !h.slot || agent && !lost {
			continue
		}
		h.slot = false
		r.busy--
		if agent {
			t.count.Lost++
			id := r.Registration.ID
			t.out = append(t.out, answer(h.req, Answer{Lost: &Lost{Claim: h.claim, RunnerID: id,
				Message: "runner " + id + " on " + r.offer.Hostname + " is gone"}}))
		}
	}
}

// change applies a change of a runner's status.
func (t *Table) change(n Notice, now time.Time) {
	r := t.roster.byID[n.Runner]
	if r == nil || r.Epoch != n.Epoch || r.Gone {
		return
	}
	before := r.status()
	switch n.Kind {
	case WentStale:
		r.Stale = true
	case Recovered:
		r.Stale = false
	case DrainStarted:
		r.Draining = true
	case Left, Removed:
		r.Gone = true
		t.freeSlots(r, n.Kind == Removed)
	}
	if r.status() != before {
		r.Since = now
	}
	t.roster.update(r)
	if r.Gone {
		t.forgetGone(t.roster.countGone() - maxGone)
	}
}

// forgetGone removes up to n runners that are gone and hold no run, the longest gone first.
func (t *Table) forgetGone(n int) {
	for ; n > 0; n-- {
		r := t.roster.longestGone()
		if r == nil {
			return
		}
		t.roster.remove(r)
		t.queue.compare(r) // it is gone, so it matches no group
	}
}

// Ended releases the claim of a run that has ended without a notice. Claim 0 releases any claim of the
// execution.
func (t *Table) Ended(run, execution string, claim int64) {
	if claim == 0 {
		t.suspects = slices.DeleteFunc(t.suspects, func(r Request) bool {
			return r.RunID == run && r.Execution == execution
		})
	}
	if h := t.holds[run]; h != nil && h.req.Execution == execution && (claim == 0 || h.claim == claim) {
		t.release(h)
	}
}

// Suspect remembers a run that ended without a notice until Ended is called. Above a bound it
// forgets the oldest.
func (t *Table) Suspect(req Request) {
	if len(t.suspects) >= maxSuspects {
		t.suspects = t.suspects[1:]
	}
	t.suspects = append(t.suspects, req)
}

// Suspects returns the runs given to Suspect.
func (t *Table) Suspects() []Request { return slices.Clone(t.suspects) }

// HeldCount returns the number of runs that a runner holds.
func (t *Table) HeldCount() int { return len(t.holds) }

// HeldSince returns the runs that a runner has held since before the given time.
func (t *Table) HeldSince(before time.Time) (runs []Request) {
	for _, r := range t.roster.rows {
		for _, h := range r.held {
			if h.since.Before(before) {
				runs = append(runs, h.req)
			}
		}
	}
	return runs
}

// Deadline returns the first deadline of the waiting runs, or the zero time.
func (t *Table) Deadline() time.Time {
	if len(t.queue.due) == 0 {
		return time.Time{}
	}
	return t.queue.due[0].req.Deadline
}

// Default and maximum numbers of waiting runs and queues in a view.
const (
	defaultShown = 100
	maxShown     = 1000
)

// View returns the state. runs is the number of the current run of the dispatcher's workflow.
func (t *Table) View(o ViewOptions, runs int) View {
	v := View{At: t.at, Waiting: len(t.queue.waits), Runs: runs, Counts: t.count,
		Runners: []RunnerView{}, Pending: []PendingView{}, Queues: []QueueView{}}
	for _, r := range t.roster.rows {
		v.Running += r.busy
		v.Runners = append(v.Runners, r.view())
	}
	shown := defaultShown
	if o.Pending > 0 {
		shown = min(o.Pending, maxShown)
	}
	waiting := t.queue.sorted()
	for _, w := range waiting[:min(shown, len(waiting))] {
		v.Pending = append(v.Pending, PendingView{RunID: w.req.RunID, Name: w.req.Name,
			Requirements: w.req.Requirements, Since: w.since, Deadline: w.req.Deadline, Parent: w.req.Parent})
	}
	for _, g := range t.queue.order[:min(shown, len(t.queue.order))] {
		q := QueueView{Requirements: g.requirements, Waiting: g.waits.Len(), Oldest: g.first().req.RunID}
		for _, r := range t.roster.rows {
			if g.matches(r) {
				q.Able++
			}
		}
		if q.Able == 0 {
			q.Nearest = t.roster.nearest(g)
		}
		v.Queues = append(v.Queues, q)
	}
	return v
}
