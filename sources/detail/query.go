package detail

import (
	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"cmp"
	"context"
	"fmt"
	"time"
)

// question asks an open run's worker whenever there is something new.
func (w *watcher) question(ctx context.Context) {
	pause := time.NewTicker(cluster.PublishEvery)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.asks:
		}
		if w.takeFresh() {
			w.ask(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

func (w *watcher) takeFresh() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	fresh := w.fresh
	w.fresh = false
	return fresh
}

// ask brings the answers up to date: from the run's worker while the run is open, from
// the fold where it is closed or nobody answers in time.
func (w *watcher) ask(ctx context.Context) {
	w.mu.Lock()
	open, tasks, talk, course := w.detail.Close.IsZero(), w.tasks != nil, w.talk != nil, w.course != nil
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
		case course: // its history tells all that it would answer
		default:
			take = w.askTask(ctx)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asking, w.asked = time.Time{}, true
	w.changed = true
	w.touch()
	// What a worker said before the run closed is older than its history.
	w.live = take != nil && w.detail.Close.IsZero()
	if w.live {
		take()
		w.changed = false
	}
}

// takeFold takes over what the fold says, unless a worker that answered the last time is
// being asked and may still answer. Call it with the lock held.
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
	if w.talk != nil {
		state := w.talk.State
		if w.talk.Foreign != nil {
			d.Err = fmt.Sprintf("the input of this session is not the contract's: %v", w.talk.Foreign)
		}
		w.takeSession(&state)
		return
	}
	if w.course != nil {
		w.takeCourse()
		return
	}
	s := &w.folder.State
	if err := w.folder.Foreign(); err != nil {
		switch {
		case !w.asked:
		case d.Type != "" && d.Type != ace.TaskWorkflow:
			d.Err = fmt.Sprintf("%s is no workflow of ACE and tells no phases: its events are all that is known", d.Type)
		default:
			d.Err = fmt.Sprintf("the input of this %s is not the contract's: %v", d.Type, err)
		}
		w.takeStatus()
		return
	}
	d.Phase, d.Skills, d.Delta = s.CurrentPhase(), s.SkillUsage(), s.PlaybookDelta()
	d.Phase.ExitStatus = histories.StatusOf(s.ExitStatus(), d)
	w.takeState()
}

// takeStatus takes over how a run stands whose steps cannot be told.
func (w *watcher) takeStatus() {
	w.detail.Phase.ExitStatus = histories.StatusOf(w.folder.State.ExitStatus(), &w.detail)
}

// takeState takes over what no query tells.
func (w *watcher) takeState() {
	s, d := &w.folder.State, &w.detail
	d.Input, d.Plan, d.TrajectoryID, d.BulletIDs = s.Input, s.Plan, s.TrajectoryID, s.BulletIDs
}

// askTask queries a live run; nil where none of the contract's queries was answered.
func (w *watcher) askTask(ctx context.Context) func() {
	var phase ace.PhaseAnswer
	var skills ace.SkillAnswer
	var delta ace.DeltaAnswer
	missing := []string{}
	for _, q := range []struct {
		name   string
		answer any
	}{{ace.QueryPhase, &phase}, {ace.QuerySkills, &skills}, {ace.QueryDelta, &delta}} {
		if err := w.query(ctx, q.name, q.answer); err != nil {
			if cluster.Away(err) || ctx.Err() != nil {
				return nil
			}
			missing = append(missing, q.name)
		}
	}
	if len(missing) == 3 {
		return nil
	}
	return func() {
		d := &w.detail
		d.Phase, d.Skills, d.Delta = phase, skills, delta
		d.Phase.ExitStatus = cmp.Or(phase.ExitStatus, ace.Running) // a bare phase does not say it
		d.Missing, d.From, d.Err = missing, runs.FromQuery, ""
		w.takeState()
	}
}

// query asks one question. A phase may come as a bare string.
func (w *watcher) query(ctx context.Context, name string, answer any) error {
	v, err := w.c.QueryWorkflow(ctx, w.id.WorkflowID, w.id.RunID, name)
	if err != nil {
		return err
	}
	if p, ok := answer.(*ace.PhaseAnswer); ok {
		var bare string
		if v.Get(&bare) == nil {
			*p = ace.PhaseAnswer{Phase: ace.Phase(bare)}
			return nil
		}
	}
	return v.Get(answer)
}

// askExperiment asks how far a live experiment has come; nil where nobody answers.
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
	p.ExitStatus = histories.StatusOf(state.ExitStatus(), d)
	d.Experiment = &p
	d.Phase.ExitStatus, d.Phase.Failure = p.ExitStatus, state.Failure
}

// settleOld looks up what the run's operations replaced, once for each delta. It reads
// files and so holds no lock meanwhile.
func (w *watcher) settleOld() {
	w.mu.Lock()
	delta := w.detail.Delta
	key := delta.PlaybookBefore + " " + delta.PlaybookAfter + " " + fmt.Sprint(len(delta.Operations))
	known := key == w.oldOf
	w.oldOf = key
	w.mu.Unlock()
	if known || len(delta.Operations) == 0 {
		return
	}
	old := histories.OldBullets(w.link.Deps, delta)
	w.mu.Lock()
	w.detail.Old = old
	w.touch()
	w.mu.Unlock()
}
