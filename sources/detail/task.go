package detail

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// taskRun folds the history of a task, or of a workflow of another type.
type taskRun struct{ *histories.Folder }

func (t taskRun) fold(_ *draft, e *historypb.HistoryEvent) []histories.Change { return t.Apply(e) }

func (t taskRun) take(d *draft) { t.takePhase(d, t.State.CurrentPhase()) }

// takePhase sets the detail from a phase and the fold.
func (t taskRun) takePhase(d *draft, phase ace.PhaseAnswer) {
	s := &t.State
	d.Phase, d.Skills, d.Delta = phase, s.SkillUsage(), s.PlaybookDelta()
	if len(s.Steps) > 0 {
		d.Phase.Verdict = cmp.Or(phase.Verdict, ace.VerdictOf(s.Input.Label != nil, phase.Correct))
	}
	d.Input, d.Plan, d.TrajectoryID, d.BulletIDs = s.Input, s.Plan, s.TrajectoryID, s.BulletIDs
	d.ReviewUntil = s.ReviewUntil()
	d.RawInput, d.RawResult = nil, nil
	foreign := d.Type != ace.TaskWorkflow
	if foreign || len(s.Unread) > 0 {
		d.RawInput = d.input
	}
	var r ace.TaskResult
	if foreign || json.Unmarshal(d.result, &r) != nil || r.TaskID == "" {
		d.RawResult = d.result
	}
}

func (t taskRun) query(ctx context.Context, ask query) func(*draft) {
	var phase ace.PhaseAnswer
	var skills ace.SkillAnswer
	var delta ace.DeltaAnswer
	var missing, unread []string
	for _, q := range []struct {
		name   string
		answer any
	}{{ace.QueryPhase, &phase}, {ace.QuerySkills, &skills}, {ace.QueryDelta, &delta}} {
		var raw json.RawMessage
		if err := ask(ctx, q.name, &raw); err != nil {
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
	return func(d *draft) { t.takeAnswers(d, phase, skills, delta, missing, unread) }
}

// takeAnswers sets the detail from a worker's answers. The fold completes them: the phase of another
// program is often a bare string, its delta a list of operations.
func (t taskRun) takeAnswers(
	d *draft, phase ace.PhaseAnswer, skills ace.SkillAnswer, delta ace.DeltaAnswer, missing, unread []string,
) {
	fold := t.State.CurrentPhase()
	name := cmp.Or(phase.Phase, fold.Phase)
	if len(phase.Steps) == 0 {
		phase = fold
	}
	phase.Phase, phase.Unread = name, append(slices.Clone(fold.Unread), unread...)
	t.takePhase(d, phase)
	if skills.Skills != nil {
		d.Skills = skills
	}
	if delta.Operations != nil {
		delta.PlaybookBefore = cmp.Or(delta.PlaybookBefore, d.Delta.PlaybookBefore)
		d.Delta = delta
	}
	d.Missing, d.From, d.Err = missing, runs.FromQuery, ""
}
