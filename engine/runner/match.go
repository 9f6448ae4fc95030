package runner

import (
	"slices"
	"time"
)

// Match gives runs to runners: of the runs that a free runner can take, always the one next
// that asked first, and to the one of these runners that has most free slots, of several that
// was longest without news, and then the first by id. Runs whose time is over are told so.
// It returns all that is to be told since it was last called.
func (t *Table) Match(now time.Time) Answers {
	t.at = now
	for at := 0; t.eager > 0 && at < len(t.order); {
		g := t.order[at]
		if r := t.best(g); r != nil {
			t.give(g.first, r, now) // what stands here then asked later
		} else {
			at++
		}
	}
	for len(t.due) > 0 && !t.due[0].req.Deadline.After(now) {
		t.expire(t.due[0], now)
	}
	out := t.out
	t.out = nil
	return out
}

// best is the runner that gets the next run of a group, nil where none is free.
func (t *Table) best(g *group) (best *row) {
	g.able.both(t.free, func(place int) {
		if r := t.places[place]; best == nil || r.before(best) {
			best = r
		}
	})
	return best
}

// before tells whether a runner gets a run rather than another one.
func (r *row) before(other *row) bool {
	if a, b := r.offer.Slots-r.busy, other.offer.Slots-other.busy; a != b {
		return a > b
	}
	if r.tick != other.tick {
		return r.tick < other.tick
	}
	return r.reg.ID < other.reg.ID
}

func (t *Table) give(w *wait, r *row, now time.Time) {
	t.unwait(w)
	t.claims++
	t.count.Matched++
	h := &hold{req: w.req, row: r, claim: t.claims, slot: true, since: now}
	t.hold(h)
	t.touch(r)
	t.weigh(r)
	t.out = append(t.out, h.claimed())
}

// claimed is what the run is told that was given to a runner.
func (h *hold) claimed() Answer {
	r := h.row
	return answer(h.req, Answer{Claimed: &Claim{Number: h.claim, Try: h.req.Try, RunnerID: r.reg.ID, Epoch: r.epoch, Queue: r.queue,
		SessionQueue: r.reg.SessionQueue, Capabilities: r.reg.Capabilities, At: h.since}})
}

func (t *Table) hold(h *hold) {
	t.holds[h.req.RunID] = h
	h.row.held = append(h.row.held, h)
	if h.slot {
		h.row.busy++
	}
}

func (t *Table) expire(w *wait, now time.Time) {
	t.unwait(w)
	t.count.Expired++
	t.out = append(t.out, answer(w.req, Answer{Unmatched: &Unmatched{Try: w.req.Try, Reason: "no_runner",
		Message: unmatched(w.group.demands, t.candidates(), w.group.avoid, max(w.req.Deadline.Sub(w.since), 0))}}))
}

func (t *Table) candidates() []Candidate {
	all := make([]Candidate, len(t.rows))
	for i, r := range t.rows {
		all[i] = r.candidate()
	}
	return all
}

// Long are the runs that were given to a runner before a moment and have not ended.
func (t *Table) Long(before time.Time) (runs []Request) {
	for _, r := range t.rows {
		for _, h := range r.held {
			if h.since.Before(before) {
				runs = append(runs, h.req)
			}
		}
	}
	return runs
}

// Suspect keeps a run that has ended without a word, until Ended is told that somebody looked
// after it. Of more than a few thousand the first are dropped.
func (t *Table) Suspect(req Request) {
	if len(t.suspects) >= maxSuspects {
		t.suspects = t.suspects[1:]
	}
	t.suspects = append(t.suspects, req)
}

// Suspects are those that Suspect keeps.
func (t *Table) Suspects() []Request { return slices.Clone(t.suspects) }

// Holding tells how many runs are given to runners.
func (t *Table) Holding() int { return len(t.holds) }

// answer is an answer to a request.
func answer(req Request, a Answer) Answer {
	a.RunID, a.Execution, a.Parent, a.Name = req.RunID, req.Execution, req.Parent, req.Name
	return a
}
