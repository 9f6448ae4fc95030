package flow

import (
	"encoding/json"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/history"
	"acescope/engine/runner"
)

// Bounds of one run of the dispatcher, under Temporal's 10,000 signals and 50 MB a run.
const (
	maxNotices = 10_000
	maxSignals = 8 << 20 // bytes of history
)

// How runs that hold a slot are looked after: those that do so for longer than longHeld, so
// many at a time, so often.
const (
	longHeld   = time.Minute
	checkEvery = time.Minute
	checkMost  = 500
)

// How soon an answer is told again that did not arrive.
const (
	againFirst   = time.Second
	againLongest = 30 * time.Second
)

// dispatching is the dispatcher in progress. What it knows of runs and runners is in table.
type dispatching struct {
	table   *runner.Table
	runs    int
	signal  workflow.ReceiveChannel
	heard   int       // notices in this run
	later   []*untold // answers that did not arrive, in the order in which they failed first
	laterOf map[string]*untold
	suspect bool      // a run was found to have ended just now
	freed   bool      // and gave back what it held
	checkAt time.Time // zero where there is nothing to look after
	checked int       // how many of those that hold one were looked after in this round

	timer  workflow.Future
	wakeAt time.Time
	cancel func()
}

// untold are the answers of one run that did not arrive, in order.
type untold struct {
	answers runner.Answers
	wait    time.Duration
	at      time.Time
}

// Dispatcher is the workflow that gives runs to runners. It never ends: it continues as new
// with what it knows, carried as [runner.Table.Carry] leaves it.
func Dispatcher(ctx workflow.Context, carried []byte) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a cancellation would leave runs waiting for good
	table, runs, err := runner.Restore(carried)
	if err != nil {
		return temporal.NewNonRetryableApplicationError(err.Error(), ErrTypePermanent, nil)
	}
	d := &dispatching{table: table, runs: runs, laterOf: map[string]*untold{}, signal: workflow.GetSignalChannel(ctx, runner.SignalNotices)}
	if err := workflow.SetQueryHandler(ctx, runner.QueryDispatcher, func(o runner.ViewOptions) (runner.View, error) {
		return d.table.View(o, d.runs), nil
	}); err != nil {
		return err
	}
	for {
		d.hear(ctx)
		d.tell(ctx, d.table.Match(workflow.Now(ctx)))
		d.tellAgain(ctx)
		d.check(ctx)
		if d.full(ctx) {
			return d.leave(ctx)
		}
		if err := d.wait(ctx); err != nil {
			return err
		}
	}
}

// hear takes in all that was told so far, so that one decision serves many runs.
func (d *dispatching) hear(ctx workflow.Context) {
	var raw converter.RawValue
	for d.signal.ReceiveAsync(&raw) {
		var notices runner.Notices
		if json.Unmarshal(history.JSONOf(raw.Payload()), &notices) != nil {
			continue // nobody of ours said that
		}
		for _, n := range notices {
			d.heard++
			d.table.Apply(n, workflow.Now(ctx))
		}
	}
}

// tell tells runs what was decided. A run of which an earlier answer did not arrive gets this
// one after that.
func (d *dispatching) tell(ctx workflow.Context, answers runner.Answers) {
	now := answers[:0:0]
	for _, a := range answers {
		if u := d.laterOf[a.RunID]; u != nil {
			u.answers = append(u.answers, a)
		} else {
			now = append(now, a)
		}
	}
	if len(now) == 0 {
		return
	}
	for _, a := range d.send(ctx, now) {
		u := d.laterOf[a.RunID]
		if u == nil {
			u = &untold{wait: againFirst, at: workflow.Now(ctx).Add(againFirst)}
			d.later, d.laterOf[a.RunID] = append(d.later, u), u
		}
		u.answers = append(u.answers, a)
	}
}

// tellAgain tries once more what is due.
func (d *dispatching) tellAgain(ctx workflow.Context) {
	now := workflow.Now(ctx)
	var due runner.Answers
	for _, u := range d.later {
		if !u.at.After(now) {
			due = append(due, u.answers...)
		}
	}
	if len(due) == 0 {
		return
	}
	failed := map[string]bool{}
	for _, a := range d.send(ctx, due) {
		failed[a.RunID] = true
	}
	left := d.later[:0:0]
	for _, u := range d.later {
		run := u.answers[0].RunID
		switch {
		case u.at.After(now):
		case failed[run]:
			u.wait = min(2*u.wait, againLongest)
			u.at = now.Add(u.wait)
		default:
			delete(d.laterOf, run)
			continue
		}
		left = append(left, u)
	}
	d.later = left
}

// send tells answers and returns those of which it is not known whether they arrived. Runs
// that have ended give back what they hold.
func (d *dispatching) send(ctx workflow.Context, answers runner.Answers) (failed runner.Answers) {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: 10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	var told runner.Told
	if err := workflow.ExecuteLocalActivity(ctx, runner.ActivityTellRuns, answers).Get(ctx, &told); err != nil {
		workflow.GetLogger(ctx).Warn("runs were not told", "error", err)
		return answers
	}
	ended, later := set(told.Ended), set(told.Later)
	for _, a := range answers {
		switch {
		case ended[a.RunID]:
			d.gone(a)
		case later[a.RunID]:
			failed = append(failed, a)
		}
	}
	return failed
}

func set(ids []string) map[string]bool {
	s := make(map[string]bool, len(ids))
	for _, id := range ids {
		s[id] = true
	}
	return s
}

// gone is an answer to a run that has ended. Its parent may not know.
func (d *dispatching) gone(a runner.Answer) {
	if a.Claimed != nil {
		d.table.Ended(a.RunID, a.Execution, a.Claimed.Number)
		d.freed = true
	}
	if a.Parent != "" {
		d.table.Suspect(runner.Request{RunID: a.RunID, Execution: a.Execution, Parent: a.Parent, Name: a.Name})
		d.suspect = true
	}
}

// check looks after runs that ended without a word, and after those that hold a slot for long.
func (d *dispatching) check(ctx workflow.Context) {
	runs := d.toCheck(workflow.Now(ctx))
	if len(runs) == 0 {
		return
	}
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: 10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	var checked runner.Checked
	if err := workflow.ExecuteLocalActivity(ctx, runner.ActivityCheckRuns, runner.Check{Runs: runs}).Get(ctx, &checked); err != nil {
		workflow.GetLogger(ctx).Warn("runs were not looked after", "error", err)
		return
	}
	for _, r := range runs {
		if _, over := checked.Ended[r.RunID]; over {
			d.table.Ended(r.RunID, r.Execution, 0)
			d.freed = true
		}
	}
}

// toCheck are the runs to be looked after now.
func (d *dispatching) toCheck(now time.Time) []runner.Request {
	suspects, fresh := d.table.Suspects(), d.suspect
	d.suspect = false
	due := !d.checkAt.IsZero() && !now.Before(d.checkAt)
	if due {
		d.checkAt = time.Time{}
	}
	if d.checkAt.IsZero() && (d.table.Holding() > 0 || len(suspects) > 0) {
		d.checkAt = now.Add(checkEvery)
	}
	switch {
	case due:
		return append(suspects, d.some(d.table.Long(now.Add(-longHeld)))...)
	case fresh:
		return suspects
	}
	return nil
}

// some are the next of the runs to be looked after.
func (d *dispatching) some(runs []runner.Request) []runner.Request {
	if d.checked >= len(runs) {
		d.checked = 0
	}
	next := runs[d.checked:min(len(runs), d.checked+checkMost)]
	d.checked += len(next)
	return next
}

// wait waits until somebody says something, or something is due. One timer serves all; one
// that goes off too early only wakes.
func (d *dispatching) wait(ctx workflow.Context) error {
	if d.freed {
		d.freed = false
		return nil
	}
	if d.timer != nil && d.timer.IsReady() {
		d.timer = nil
	}
	if at := d.due(); !at.IsZero() && (d.timer == nil || at.Before(d.wakeAt)) {
		if d.timer != nil {
			d.cancel()
		}
		own, cancel := workflow.WithCancel(ctx)
		d.timer = workflow.NewTimerWithOptions(own, max(at.Sub(workflow.Now(ctx)), time.Millisecond), workflow.TimerOptions{Summary: "the next that is due"})
		d.wakeAt, d.cancel = at, cancel
	}
	return workflow.Await(ctx, func() bool { return d.signal.Len() > 0 || d.timer != nil && d.timer.IsReady() })
}

// due is when there is something to do next, the zero time where there is nothing.
func (d *dispatching) due() time.Time {
	at := earliest(d.table.Deadline(), d.checkAt)
	for _, u := range d.later {
		at = earliest(at, u.at)
	}
	return at
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// full tells whether the run has had enough.
func (d *dispatching) full(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() >= maxHistory || info.GetCurrentHistorySize() >= maxSignals || d.heard >= maxNotices
}

// leave continues as a new run. What was said until this moment is heard first, and whatever
// comes later the server keeps for the next run: nothing here waits in between.
func (d *dispatching) leave(ctx workflow.Context) error {
	d.hear(ctx)
	var answers runner.Answers
	for _, u := range d.later {
		answers = append(answers, u.answers...)
	}
	carried, err := d.table.Carry(d.runs+1, answers)
	if err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(ctx, runner.DispatcherWorkflow, carried)
}
