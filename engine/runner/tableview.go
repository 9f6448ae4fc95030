package runner

// defaultPending is how many waiting runs a view shows unless it is asked for more, and
// maxShown how many runs and queues it shows at most.
const (
	defaultPending = 100
	maxShown       = 1000
)

// View is what is known now. runs is the number of the dispatcher's run.
func (t *Table) View(o ViewOptions, runs int) View {
	v := View{At: t.at, Waiting: len(t.waits), Runs: runs, Matched: t.count.Matched, Expired: t.count.Expired, Refused: t.count.Refused,
		Lost: t.count.Lost, Turned: t.count.Turned, Runners: []RunnerView{}, Pending: []PendingView{}, Queues: []QueueView{}}
	for _, r := range t.rows {
		v.Running += r.busy
		v.Runners = append(v.Runners, r.view())
	}
	most := o.Pending
	if most <= 0 {
		most = defaultPending
	}
	t.viewWaits(&v, min(most, maxShown))
	return v
}

func (r *row) view() RunnerView {
	v := RunnerView{ID: r.reg.ID, Epoch: r.epoch, Status: r.status(), Since: r.since, Capabilities: r.reg.Capabilities, PID: r.reg.PID,
		Version: r.reg.Version, Busy: r.busy, Done: r.done}
	for _, h := range r.held {
		if h.slot {
			v.Runs = append(v.Runs, h.req.RunID)
		}
	}
	return v
}

func (t *Table) viewWaits(v *View, most int) {
	for i, w := range t.bySeq() {
		if i == most {
			break
		}
		v.Pending = append(v.Pending, PendingView{RunID: w.req.RunID, Name: w.req.Name, Demands: w.req.Demands, Since: w.since,
			Deadline: w.req.Deadline, Parent: w.req.Parent})
	}
	candidates := t.candidates()
	for i, g := range t.order {
		if i == most {
			break
		}
		q := QueueView{Demands: g.demands, Waiting: g.waiting, Oldest: g.first.req.RunID}
		for _, r := range t.rows {
			if g.takes(r) {
				q.Able++
			}
		}
		if q.Able == 0 {
			q.Nearest = Nearest(g.demands, candidates, g.avoid)
		}
		v.Queues = append(v.Queues, q)
	}
}
