package runner

import (
	"slices"
	"time"
)

// register takes in a runner, or what changed about one. A later epoch is a new process:
// programs of the earlier one have ended with it and take no slot any more; agents' sessions
// go on and keep theirs.
func (t *Table) register(n Notice, now time.Time) {
	reg := *n.Registration
	if reg.Check() != nil {
		return
	}
	r := t.byID[reg.ID]
	if r != nil && !r.takes(n) {
		return
	}
	offer := reg.Capabilities.normal()
	if !t.fits(r, offer) {
		t.count.Turned++
		return
	}
	switch {
	case r == nil:
		r = t.addRow(reg.ID)
		t.renew(r, n.Epoch, now)
	case r.reg.Token == "" && n.Epoch == r.epoch: // known by its runs only, which it has
		r.gone, r.since = false, now
	case n.Epoch > r.epoch || reg.Token != r.reg.Token:
		t.renew(r, n.Epoch, now)
	}
	t.offers += size(offer) - size(r.offer)
	r.reg, r.offer, r.queue = reg, offer, n.Queue
	t.compare(r)
}

// takes tells whether a registration is not older than what is known. A runner that is gone
// may come with any number, as another process: its workflow began anew.
func (r *row) takes(n Notice) bool {
	if n.Registration.Token == r.reg.Token {
		return n.Epoch > r.epoch || n.Epoch == r.epoch && !r.gone
	}
	return r.gone || n.Epoch > r.epoch
}

// fits tells whether there is room for a runner, or for what it offers now.
func (t *Table) fits(r *row, offer Capabilities) bool {
	if r == nil && len(t.rows) >= MaxRunners {
		t.forget(len(t.rows) - MaxRunners + 1)
	}
	now := t.offers + size(offer)
	if r != nil {
		now -= size(r.offer)
	}
	return now <= maxBytes && (r != nil || len(t.rows) < MaxRunners)
}

// size is about how much the capabilities take, in bytes.
func size(c Capabilities) int {
	n := len(c.Hostname) + len(c.ProjectDir)
	for _, s := range c.ExecutorTypes {
		n += len(s) + 1
	}
	for _, s := range c.Tags {
		n += len(s) + 1
	}
	return n
}

// renew begins an epoch of a runner.
func (t *Table) renew(r *row, epoch int64, now time.Time) {
	r.epoch, r.since, r.stale, r.draining, r.gone = epoch, now, false, false, false
	t.endPrograms(r)
	t.touch(r)
}

// endPrograms takes back the slots of the programs of a process that has ended. Those of
// agents' sessions stay taken: these go on.
func (t *Table) endPrograms(r *row) {
	for _, h := range r.held {
		if h.slot && Agent(h.req.Demands.ExecutorType) == "" {
			h.slot = false
			r.busy--
		}
	}
}

// change takes in what happened to a runner of an epoch.
func (t *Table) change(n Notice, now time.Time) {
	r := t.byID[n.Runner]
	if r == nil || r.epoch != n.Epoch || r.gone {
		return
	}
	before := r.status()
	switch n.Kind {
	case WentStale:
		r.stale = true
	case CameBack:
		r.stale = false
	case Drains:
		r.draining = true
	case Left:
		r.gone = true
		t.endPrograms(r)
	case Removed:
		r.gone = true
		t.lose(r)
	}
	if r.status() != before {
		r.since = now
	}
	t.weigh(r)
	if r.gone {
		t.forgetOld()
	}
}

// lose tells the agents' runs of a runner that it is gone. Programs have a heartbeat of their
// own, which tells their runs.
func (t *Table) lose(r *row) {
	for _, h := range r.held {
		if !h.slot {
			continue
		}
		h.slot = false
		r.busy--
		if Agent(h.req.Demands.ExecutorType) == "" {
			continue
		}
		t.count.Lost++
		t.out = append(t.out, answer(h.req, Answer{Lost: &Lost{Claim: h.claim, RunnerID: r.reg.ID,
			Message: "runner " + r.reg.ID + " on " + r.offer.Hostname + " is gone"}}))
	}
}

func (t *Table) addRow(id string) *row {
	r := &row{place: len(t.places)}
	r.reg.ID = id
	if free := slices.Index(t.places, nil); free >= 0 {
		r.place = free
		t.places[free] = r
	} else {
		t.places = append(t.places, r)
	}
	at, _ := t.rowAt(id)
	t.rows = slices.Insert(t.rows, at, r)
	t.byID[id] = r
	return r
}

// compare finds anew which groups a runner is able to take runs of.
func (t *Table) compare(r *row) {
	r.wanted = 0
	for _, g := range t.order {
		t.compareWith(r, g)
	}
	t.dropIdle()
	t.weigh(r)
}

func (t *Table) compareWith(r *row, g *group) {
	able := g.takes(r)
	g.able.set(r.place, able)
	if able && g.waiting > 0 {
		r.wanted++
	}
}

func (g *group) takes(r *row) bool {
	return !r.gone && r.offer.Meets(g.demands) && !slices.Contains(g.avoid, r.queue)
}

// forgetOld keeps as many of the runners that are gone as are to be shown.
func (t *Table) forgetOld() {
	gone := 0
	for _, r := range t.rows {
		if r.gone {
			gone++
		}
	}
	if gone > maxGone {
		t.forget(gone - maxGone)
	}
}

// forget drops up to n runners that are gone and of which no run is left, the longest gone
// first.
func (t *Table) forget(n int) {
	for ; n > 0; n-- {
		var oldest *row
		for _, r := range t.rows {
			if r.gone && len(r.held) == 0 && (oldest == nil || r.since.Before(oldest.since)) {
				oldest = r
			}
		}
		if oldest == nil {
			return
		}
		t.drop(oldest)
	}
}

func (t *Table) drop(r *row) {
	at, _ := t.rowAt(r.reg.ID)
	t.rows = slices.Delete(t.rows, at, at+1)
	t.places[r.place] = nil
	t.offers -= size(r.offer)
	delete(t.byID, r.reg.ID)
	for _, g := range t.order {
		g.able.set(r.place, false)
	}
	t.dropIdle()
}
