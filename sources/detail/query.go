package detail

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// queryLoop queries an open run's worker after each change.
func (w *watcher) queryLoop(ctx context.Context) {
	repeat(ctx, w.asks, func() {
		if w.takeFresh() {
			w.ask(ctx)
		}
	})
}

func (w *watcher) takeFresh() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	fresh := w.fresh
	w.fresh = false
	return fresh
}

// ask updates the detail: from the run's worker while the run is open, from the fold if it is closed or the
// worker does not answer in time.
func (w *watcher) ask(ctx context.Context) {
	w.mu.Lock()
	open, tasks, talk, blueprint := w.detail.Close.IsZero(), w.tasks != nil, w.session != nil, w.blueprint != nil
	ofFlow := w.flow != nil
	if open {
		w.asking = time.Now()
	}
	w.mu.Unlock()
	var take func()
	if open {
		ctx, cancel := context.WithTimeout(ctx, cluster.QueryTimeout)
		defer cancel()
		switch {
		case tasks:
			take = w.askExperiment(ctx)
		case talk:
			take = w.askSession(ctx)
		case ofFlow:
			take = w.askFlow(ctx)
		case blueprint: // its history contains all facts
		default:
			take = w.askTask(ctx)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asking, w.asked = time.Time{}, true
	w.changed = true
	w.touch()
	// An answer from before the close is older than the history.
	w.live = take != nil && w.detail.Close.IsZero()
	if w.live {
		take()
		w.changed = false
	} else if open && !blueprint { // no event may come for long
		time.AfterFunc(askAgain, w.askLater)
	}
}

// askAgain is the time after which a worker is asked again that did not answer.
const askAgain = 5 * time.Second

func (w *watcher) askLater() {
	w.mu.Lock()
	w.fresh = w.fresh || w.detail.Close.IsZero()
	w.mu.Unlock()
	cluster.Signal(w.asks)
}

// takeFold sets the detail from the fold, unless a worker that answered last time may still answer. The lock
// must be held.
func (w *watcher) takeFold() {
	if !w.changed {
		return
	}
	waiting := w.live && w.detail.Close.IsZero() && (w.asking.IsZero() || time.Since(w.asking) < cluster.QueryPatience)
	if waiting {
		return
	}
	w.changed, w.dirty = false, true
	d := &w.detail
	d.From = runs.FromHistory
	if w.tasks != nil {
		w.takeExperiment(w.tasks.State.Progress)
		return
	}
	if w.session != nil {
		state := w.session.State
		if w.session.Foreign != nil {
			d.Err = fmt.Sprintf("the input of this session is not the contract's: %v", w.session.Foreign)
		}
		w.takeSession(&state)
		return
	}
	if w.blueprint != nil {
		w.takeBlueprintRun()
		return
	}
	if w.flow != nil {
		w.takeFlow(w.flow.State)
		return
	}
	w.takeTask(w.folder.State.CurrentPhase())
}

// takeTask sets the detail of a task, or of a workflow of another type, from a phase and the fold.
func (w *watcher) takeTask(phase ace.PhaseAnswer) {
	s, d := &w.folder.State, &w.detail
	d.Phase, d.Skills, d.Delta = phase, s.SkillUsage(), s.PlaybookDelta()
	if len(s.Steps) > 0 {
		d.Phase.Verdict = cmp.Or(phase.Verdict, ace.VerdictOf(s.Input.Label != nil, phase.Correct))
	}
	d.Input, d.Plan, d.TrajectoryID, d.BulletIDs = s.Input, s.Plan, s.TrajectoryID, s.BulletIDs
	d.ReviewUntil = s.ReviewUntil()
	d.RawInput, d.RawResult = nil, nil
	foreign := d.Type != ace.TaskWorkflow
	if foreign || len(s.Unread) > 0 {
		d.RawInput = w.input
	}
	var r ace.TaskResult
	if foreign || json.Unmarshal(w.result, &r) != nil || r.TaskID == "" {
		d.RawResult = w.result
	}
}

// askTask queries the phase, skills and delta of a live run. It returns a function that stores the answers, or nil if
// no query was answered.
func (w *watcher) askTask(ctx context.Context) func() {
	var phase ace.PhaseAnswer
	var skills ace.SkillAnswer
	var delta ace.DeltaAnswer
	var missing, unread []string
	for _, q := range []struct {
		name   string
		answer any
	}{{ace.QueryPhase, &phase}, {ace.QuerySkills, &skills}, {ace.QueryDelta, &delta}} {
		var raw json.RawMessage
		if err := w.query(ctx, q.name, &raw); err != nil {
			if cluster.Unreachable(err) || ctx.Err() != nil {
				return nil
			}
			missing = append(missing, q.name)
			continue
		}
		unread = append(unread, ace.Read(q.name, raw, q.answer)...)
	}
	if len(missing) == 3 {
		return nil
	}
	return func() { w.takeAnswers(phase, skills, delta, missing, unread) }
}

// takeAnswers sets the detail from a worker's answers. The fold completes them: the phase of another
// program is often a bare string, its delta a list of operations.
func (w *watcher) takeAnswers(
	phase ace.PhaseAnswer, skills ace.SkillAnswer, delta ace.DeltaAnswer, missing, unread []string,
) {
	d := &w.detail
	fold := w.folder.State.CurrentPhase()
	name := cmp.Or(phase.Phase, fold.Phase)
	if len(phase.Steps) == 0 {
		phase = fold
	}
	phase.Phase, phase.Unread = name, append(slices.Clone(fold.Unread), unread...)
	w.takeTask(phase)
	if skills.Skills != nil {
		d.Skills = skills
	}
	if delta.Operations != nil {
		delta.PlaybookBefore = cmp.Or(delta.PlaybookBefore, d.Delta.PlaybookBefore)
		d.Delta = delta
	}
	d.Missing, d.From, d.Err = missing, runs.FromQuery, ""
}

// query calls one query.
func (w *watcher) query(ctx context.Context, name string, answer any) error {
	v, err := w.c.QueryWorkflow(ctx, w.id.WorkflowID, w.id.RunID, name)
	if err != nil {
		return err
	}
	return v.Get(answer)
}

// askExperiment queries the progress of a live experiment. It returns nil if the worker does not answer.
func (w *watcher) askExperiment(ctx context.Context) func() {
	var live ace.ExperimentProgress
	if w.query(ctx, ace.QueryExperiment, &live) != nil {
		return nil
	}
	return func() {
		w.detail.From = runs.FromQuery
		w.takeExperiment(live)
	}
}

func (w *watcher) takeExperiment(p ace.ExperimentProgress) {
	d, state := &w.detail, &w.tasks.State
	if w.tasks.Foreign != nil {
		d.Err = fmt.Sprintf("the input of this experiment is not the contract's: %v", w.tasks.Foreign)
	}
	p.Status = w.status()
	d.Experiment, d.ExperimentInput = &p, state.Input
	d.ExperimentInput.Progress = nil
	d.Phase.Failure = state.Failure
}

// settleOld reads the bullets that the run's operations replaced, once for each delta. It reads files, so it
// does not hold the lock.
func (w *watcher) settleOld(ctx context.Context) {
	w.mu.Lock()
	delta := w.detail.Delta
	key := delta.PlaybookBefore + " " + delta.PlaybookAfter + " " + fmt.Sprint(len(delta.Operations))
	known := key == w.oldBulletsOf
	w.oldBulletsOf = key
	w.mu.Unlock()
	if known || len(delta.Operations) == 0 {
		return
	}
	old := histories.OldBullets(ctx, w.link.Deps, delta)
	w.mu.Lock()
	w.detail.OldBullets = old
	w.touch()
	w.mu.Unlock()
}
