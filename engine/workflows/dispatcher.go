package workflows

import (
	"encoding/json"
	"slices"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/tasks/runner"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/operation"
)

// Limits of one run of the dispatcher, below Temporal's 10,000 signals and 50 MB per run.
const (
	maxNotices      = 10_000
	maxNoticesBytes = 8 << 20 // bytes of history
)

// Runs that hold a slot for longer than longHeld are checked every checkEvery, at most checkMost
// at a time.
const (
	longHeld   = 10 * time.Second
	checkEvery = 15 * time.Second
	checkMost  = 500
)

// Retry intervals.
const (
	minAnswerRetry = time.Second
	maxAnswerRetry = 30 * time.Second
	recallRetry    = 5 * time.Second
)

// dispatcher is the open workflow of the dispatcher. The table holds its runs and runners.
type dispatcher struct {
	table   *runner.Table
	runs    int
	signal  workflow.ReceiveChannel
	notices int // received in this run

	undelivered []*undelivered // in the order of their first failure
	byRun       map[string]*undelivered

	suspected bool      // a run that ended without a notice was just found
	freed     bool      // a slot was just freed
	checkAt   time.Time // next check, zero if none is needed
	checked   int       // runs checked in this round

	recallAt   time.Time // next recall of runs and runners, zero if none is needed
	recallPage []byte

	timer       workflow.Future
	timerAt     time.Time
	cancelTimer func()
}

// undelivered holds the answers to one run that were not delivered, in order.
type undelivered struct {
	answers runner.Answers
	wait    time.Duration
	at      time.Time // of the next attempt
}

// Dispatcher is the workflow that assigns runs to runners. It never ends; it continues as new with
// the state that [runner.Table.Carry] returns.
func Dispatcher(ctx workflow.Context, carried []byte) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // runs would wait forever after a cancellation
	table, runs, err := runner.Restore(carried)
	if err != nil {
		return temporal.NewNonRetryableApplicationError(err.Error(), ErrTypePermanent, nil)
	}
	d := &dispatcher{table: table, runs: runs, byRun: map[string]*undelivered{},
		signal: workflow.GetSignalChannel(ctx, runner.SignalNotices)}
	query := func(o runner.ViewOptions) (runner.View, error) { return d.table.View(o, d.runs), nil }
	if err := workflow.SetQueryHandler(ctx, runner.QueryDispatcher, query); err != nil {
		return err
	}
	if len(carried) == 0 {
		d.recallAt = workflow.Now(ctx)
		d.table.SetLastClaim(d.recallAt.UnixMilli())
	}
	for {
		d.receive(ctx)
		d.recall(ctx)
		d.answer(ctx, d.table.Match(workflow.Now(ctx)))
		d.retryAnswers(ctx)
		d.check(ctx)
		if operation.IsLong(ctx) || d.notices >= maxNotices ||
			workflow.GetInfo(ctx).GetCurrentHistorySize() >= maxNoticesBytes {
			return d.continueAsNew(ctx)
		}
		if err := d.wait(ctx); err != nil {
			return err
		}
	}
}

// recall asks a page of runs and runners to repeat their requests and claims: this dispatcher is
// new, and may replace one that was terminated.
func (d *dispatcher) recall(ctx workflow.Context) {
	if d.recallAt.IsZero() || d.recallAt.After(workflow.Now(ctx)) {
		return
	}
	var next []byte
	err := workflow.ExecuteLocalActivity(withLocalOptions(ctx), runner.ActivityRecall, d.recallPage).Get(ctx,
		&next)
	if err != nil {
		workflow.GetLogger(ctx).Warn("recall of runs and runners failed", "error", err)
		d.recallPage = nil
		d.recallAt = workflow.Now(ctx).Add(recallRetry)
		return
	}
	d.recallPage = next
	if len(next) == 0 {
		d.recallAt = time.Time{}
	}
}

// receive applies all notices that have arrived, so that one decision serves many runs.
func (d *dispatcher) receive(ctx workflow.Context) {
	var raw converter.RawValue
	for d.signal.ReceiveAsync(&raw) {
		var notices runner.Notices
		if json.Unmarshal(history.PayloadJSON(raw.Payload()), &notices) != nil {
			continue // not sent by acescope
		}
		for _, n := range notices {
			d.notices++
			d.table.Apply(n, workflow.Now(ctx))
		}
	}
}

// answer sends answers to runs. An answer to a run with undelivered answers is queued after them.
func (d *dispatcher) answer(ctx workflow.Context, answers runner.Answers) {
	now := answers[:0:0]
	for _, a := range answers {
		if u := d.byRun[a.RunID]; u != nil {
			u.answers = append(u.answers, a)
		} else {
			now = append(now, a)
		}
	}
	if len(now) == 0 {
		return
	}
	for _, a := range d.send(ctx, now) {
		u := d.byRun[a.RunID]
		if u == nil {
			u = &undelivered{wait: minAnswerRetry, at: workflow.Now(ctx).Add(minAnswerRetry)}
			d.undelivered = append(d.undelivered, u)
			d.byRun[a.RunID] = u
		}
		u.answers = append(u.answers, a)
	}
}

// retryAnswers sends the undelivered answers that are due.
func (d *dispatcher) retryAnswers(ctx workflow.Context) {
	now := workflow.Now(ctx)
	var due runner.Answers
	for _, u := range d.undelivered {
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
	d.undelivered = slices.DeleteFunc(d.undelivered, func(u *undelivered) bool {
		run := u.answers[0].RunID
		switch {
		case u.at.After(now):
			return false
		case failed[run]:
			u.wait = min(2*u.wait, maxAnswerRetry)
			u.at = now.Add(u.wait)
			return false
		}
		delete(d.byRun, run)
		return true
	})
}

// send sends answers and returns those whose delivery is unknown. It frees the slots of runs that
// have ended.
func (d *dispatcher) send(ctx workflow.Context, answers runner.Answers) (failed runner.Answers) {
	var told runner.DeliveryResult
	err := workflow.ExecuteLocalActivity(withLocalOptions(ctx), runner.ActivityNotifyRuns, answers).Get(ctx,
		&told)
	if err != nil {
		workflow.GetLogger(ctx).Warn("answers to runs were not sent", "error", err)
		return answers
	}
	ended, later := set(told.Ended), set(told.Later)
	for _, a := range answers {
		switch {
		case ended[a.RunID]:
			d.runGone(a)
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

// runGone frees the slot of a run that has ended, and suspects that its parent was not informed.
func (d *dispatcher) runGone(a runner.Answer) {
	if a.Claimed != nil {
		d.table.Ended(a.RunID, a.Execution, a.Claimed.Number)
		d.freed = true
	}
	if a.Parent != "" {
		d.table.Suspect(runner.Request{RunID: a.RunID, Execution: a.Execution, Parent: a.Parent,
			Name: a.Name})
		d.suspected = true
	}
}

// check checks runs that ended without a notice, and runs that hold a slot for long.
func (d *dispatcher) check(ctx workflow.Context) {
	runs := d.toCheck(workflow.Now(ctx))
	if len(runs) == 0 {
		return
	}
	var checked runner.CheckResult
	in := runner.CheckInput{Runs: runs}
	err := workflow.ExecuteLocalActivity(withLocalOptions(ctx), runner.ActivityCheckRuns, in).Get(ctx,
		&checked)
	if err != nil {
		workflow.GetLogger(ctx).Warn("check of runs failed", "error", err)
		return
	}
	for _, r := range runs {
		if _, over := checked.Ended[r.RunID]; over {
			d.table.Ended(r.RunID, r.Execution, 0)
			d.freed = true
		}
	}
}

// toCheck returns the runs to check now: the suspects if there is a new one, and when a check is due also the
// runs that hold a slot for long.
func (d *dispatcher) toCheck(now time.Time) []runner.Request {
	suspects, fresh := d.table.Suspects(), d.suspected
	d.suspected = false
	due := !d.checkAt.IsZero() && !now.Before(d.checkAt)
	if due {
		d.checkAt = time.Time{}
	}
	if d.checkAt.IsZero() && (d.table.HeldCount() > 0 || len(suspects) > 0) {
		d.checkAt = now.Add(checkEvery)
	}
	if !due {
		if fresh {
			return suspects
		}
		return nil
	}
	long := d.table.HeldSince(now.Add(-longHeld))
	if d.checked >= len(long) {
		d.checked = 0
	}
	next := long[d.checked:min(len(long), d.checked+checkMost)]
	d.checked += len(next)
	return append(suspects, next...)
}

// wait waits for a notice or the next due time. One timer serves all due times; a timer that fires
// too early is harmless.
func (d *dispatcher) wait(ctx workflow.Context) error {
	if d.freed || len(d.recallPage) > 0 {
		d.freed = false
		return nil
	}
	if d.timer != nil && d.timer.IsReady() {
		d.timer = nil
	}
	if at := d.due(); !at.IsZero() && (d.timer == nil || at.Before(d.timerAt)) {
		if d.timer != nil {
			d.cancelTimer()
		}
		own, cancel := workflow.WithCancel(ctx)
		wait := max(at.Sub(workflow.Now(ctx)), time.Millisecond)
		d.timer = workflow.NewTimerWithOptions(own, wait,
			workflow.TimerOptions{Summary: "the next that is due"})
		d.timerAt = at
		d.cancelTimer = cancel
	}
	return workflow.Await(ctx, func() bool {
		return d.signal.Len() > 0 || d.timer != nil && d.timer.IsReady()
	})
}

// due returns the next due time, or zero if nothing is due.
func (d *dispatcher) due() time.Time {
	at := earliest(earliest(d.table.Deadline(), d.checkAt), d.recallAt)
	for _, u := range d.undelivered {
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

// continueAsNew first applies the notices that have arrived; the server keeps later ones for the
// next run, because nothing in between yields.
func (d *dispatcher) continueAsNew(ctx workflow.Context) error {
	d.receive(ctx)
	var answers runner.Answers
	for _, u := range d.undelivered {
		answers = append(answers, u.answers...)
	}
	carried, err := d.table.Carry(d.runs+1, answers)
	if err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(ctx, runner.DispatcherWorkflow, carried)
}
