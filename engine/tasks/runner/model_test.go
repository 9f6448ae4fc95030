package runner_test

import (
	"cmp"
	"slices"
	"time"

	"acescope/engine/tasks/runner"
)

// model is a simple dispatcher with linear searches.
type model struct {
	runners []*modelRunner
	pending []*modelRun // in the order of their requests
	held    []*modelRun
	claims  int64
	ticks   int64
	out     []said
}

type modelRunner struct {
	reg                   *runner.Registration
	queue                 string
	epoch                 int64
	stale, draining, gone bool
	tick                  int64
}

type modelRun struct {
	req   runner.Request
	on    *modelRunner
	claim int64
	slot  bool
	// which registrations meet its requirements, as far as they were compared
	able map[*runner.Registration]bool
}

// meets reports whether a registration has what the run requires.
func (r *modelRun) meets(reg *runner.Registration) bool {
	able, compared := r.able[reg]
	if !compared {
		able = len(reg.Capabilities.Missing(r.req.Requirements)) == 0
		r.able[reg] = able
	}
	return able
}

// said is an answer without its message.
type said struct {
	Run    string
	Kind   string
	Runner string
	Claim  int64
}

func (m *model) runner(id string) *modelRunner {
	for _, r := range m.runners {
		if r.reg.ID == id {
			return r
		}
	}
	return nil
}

func (m *model) busy(r *modelRunner) (n int) {
	for _, h := range m.held {
		if h.on == r && h.slot {
			n++
		}
	}
	return n
}

func (m *model) touch(r *modelRunner) {
	m.ticks++
	r.tick = m.ticks
}

func find(runs []*modelRun, id string) int {
	return slices.IndexFunc(runs, func(r *modelRun) bool { return r.req.RunID == id })
}

func (m *model) release(i int) {
	h := m.held[i]
	m.held = slices.Delete(m.held, i, i+1)
	if h.slot {
		m.touch(h.on)
	}
}

func (m *model) apply(n runner.Notice) {
	switch n.Kind {
	case runner.Enqueue:
		m.enqueue(*n.Request)
	case runner.Withdraw:
		if i := find(m.pending, n.Run); i >= 0 {
			m.pending = slices.Delete(m.pending, i, i+1)
		}
		if i := find(m.held, n.Run); i >= 0 {
			m.release(i)
		}
	case runner.Release:
		if i := find(m.held, n.Run); i >= 0 && m.held[i].claim == n.Claim {
			m.release(i)
		}
	case runner.Registered:
		m.register(n)
	default:
		m.change(n)
	}
}

func (m *model) enqueue(req runner.Request) {
	again := func(have runner.Request) bool { return have.Execution == req.Execution && req.Try <= have.Try }
	if i := find(m.held, req.RunID); i >= 0 {
		if h := m.held[i]; again(h.req) && (h.slot || req.Try < h.req.Try) {
			if req.Try == h.req.Try {
				m.out = append(m.out, said{req.RunID, "claimed", h.on.reg.ID, h.claim})
			}
			return
		}
		m.release(i)
	}
	if i := find(m.pending, req.RunID); i >= 0 {
		if again(m.pending[i].req) {
			return
		}
		m.pending = slices.Delete(m.pending, i, i+1)
	}
	m.pending = append(m.pending, &modelRun{req: req, able: map[*runner.Registration]bool{}})
}

func (m *model) register(n runner.Notice) {
	r := m.runner(n.Runner)
	switch {
	case r == nil:
		r = &modelRunner{}
		m.runners = append(m.runners, r)
	case n.Epoch < r.epoch, n.Epoch == r.epoch && r.gone:
		return
	case n.Epoch == r.epoch:
		r.reg, r.queue = n.Registration, n.Queue
		return
	}
	*r = modelRunner{reg: n.Registration, queue: n.Queue, epoch: n.Epoch}
	for _, h := range m.held {
		if h.on == r && runner.Agent(h.req.Requirements.ExecutorType) == "" {
			h.slot = false
		}
	}
	m.touch(r)
}

func (m *model) change(n runner.Notice) {
	r := m.runner(n.Runner)
	if r == nil || r.epoch != n.Epoch || r.gone {
		return
	}
	switch n.Kind {
	case runner.WentStale:
		r.stale = true
	case runner.Recovered:
		r.stale = false
	case runner.DrainStarted:
		r.draining = true
	case runner.Left:
		r.gone = true
		for _, h := range m.held {
			if h.on == r && runner.Agent(h.req.Requirements.ExecutorType) == "" {
				h.slot = false
			}
		}
	case runner.Removed:
		r.gone = true
		for _, h := range m.held {
			if h.on != r || !h.slot {
				continue
			}
			h.slot = false
			if runner.Agent(h.req.Requirements.ExecutorType) != "" {
				m.out = append(m.out, said{h.req.RunID, "lost", r.reg.ID, h.claim})
			}
		}
	}
}

func (m *model) match(now time.Time) []said {
	for i := 0; i < len(m.pending); {
		p := m.pending[i]
		r := m.best(p)
		if r == nil {
			i++
			continue
		}
		m.pending = slices.Delete(m.pending, i, i+1)
		m.claims++
		p.on, p.claim, p.slot = r, m.claims, true
		m.held = append(m.held, p)
		m.touch(r)
		m.out = append(m.out, said{p.req.RunID, "claimed", r.reg.ID, p.claim})
		i = 0
	}
	var late []*modelRun
	for _, p := range m.pending {
		if !p.req.Deadline.After(now) {
			late = append(late, p)
		}
	}
	slices.SortStableFunc(late, func(a, b *modelRun) int { return a.req.Deadline.Compare(b.req.Deadline) })
	for _, p := range late {
		m.pending = slices.DeleteFunc(m.pending, func(q *modelRun) bool { return q == p })
		m.out = append(m.out, said{Run: p.req.RunID, Kind: "no_runner"})
	}
	out := m.out
	m.out = nil
	return out
}

func (m *model) best(run *modelRun) *modelRunner {
	var able []*modelRunner
	for _, r := range m.runners {
		if !r.gone && !r.stale && !r.draining && m.busy(r) < r.reg.Capabilities.Slots &&
			run.meets(r.reg) && !slices.Contains(run.req.Avoid, r.queue) {
			able = append(able, r)
		}
	}
	if len(able) == 0 {
		return nil
	}
	return slices.MinFunc(able, func(a, b *modelRunner) int {
		freeA, freeB := a.reg.Capabilities.Slots-m.busy(a), b.reg.Capabilities.Slots-m.busy(b)
		return cmp.Or(cmp.Compare(freeB, freeA), cmp.Compare(a.tick, b.tick), cmp.Compare(a.reg.ID, b.reg.ID))
	})
}
