package runner

import "time"

// NumberFrom has claims be numbered from there on. A dispatcher that knows of no earlier one
// begins above what any of those can have reached: a run takes no claim below one that it had.
func (t *Table) NumberFrom(n int64) { t.claims = max(t.claims, n) }

// recall takes in a run that an earlier dispatcher gave to a runner. One that is not known
// stands there as gone until it comes.
func (t *Table) recall(req Request, c Claim, now time.Time) {
	req.Demands = req.Demands.normal()
	if !validName(req.RunID, 2*maxName) || !validName(c.RunnerID, maxName) || checkRequest(req) != nil || t.holds[req.RunID] != nil {
		return
	}
	r := t.byID[c.RunnerID]
	if r == nil {
		if len(t.rows) >= MaxRunners {
			t.forget(1)
		}
		if len(t.rows) >= MaxRunners {
			return
		}
		r = t.addRow(c.RunnerID)
		r.epoch, r.gone, r.since = c.Epoch, true, now
	}
	if w := t.waits[req.RunID]; w != nil {
		t.unwait(w)
	}
	t.NumberFrom(c.Number)
	t.hold(&hold{req: req, row: r, claim: c.Number, slot: c.Epoch == r.epoch || Agent(req.Demands.ExecutorType) != "", since: now})
	t.weigh(r)
}
