package sources

import (
	"context"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// askOpen asks the newest open runs how far they are, since only a run that has ended
// leaves a summary. The first that does not answer ends the round.
func (r *runsReader) askOpen(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cluster.AskTimeout)
	defer cancel()
	fresh := map[string]runs.Asked{}
	for _, row := range r.list.Rows() {
		if len(fresh) >= runs.AskAtMost {
			break
		}
		if !row.Open() || row.Type != ace.TaskWorkflow && row.Type != ace.ExperimentWorkflow {
			continue
		}
		a, err := r.askOne(ctx, row)
		if err != nil {
			break
		}
		fresh[row.RunID] = a
	}
	r.live = fresh
}

func (r *runsReader) askOne(ctx context.Context, row runs.Run) (runs.Asked, error) {
	if row.Type == ace.ExperimentWorkflow {
		var p ace.ExperimentProgress
		err := r.query1(ctx, row, ace.QueryExperiment, &p)
		p.Summary.Usage = p.Usage
		return runs.Asked{&p.Summary, ace.Phase(p.Stage)}, err
	}
	var answer ace.SkillAnswer
	err := r.query1(ctx, row, ace.QuerySkills, &answer)
	sum := &ace.Summary{}
	for _, u := range answer.Skills {
		sum.Skills += u.Calls
		sum.SkillsOK += u.OK
	}
	return runs.Asked{Sum: sum}, err
}

func (r *runsReader) query1(ctx context.Context, row runs.Run, name string, answer any) error {
	v, err := r.c.QueryWorkflow(ctx, row.WorkflowID, row.RunID, name)
	if err != nil {
		return err
	}
	return v.Get(answer)
}

// fill adds to rows what was found out besides visibility. The rows are not published yet.
func (r *runsReader) fill(rows []runs.Run) {
	for i := range rows {
		row := &rows[i]
		if !row.Open() {
			continue
		}
		if a, ok := r.live[row.RunID]; ok && row.Summary == nil {
			row.Summary = a.Sum
			if row.Phase == "" {
				row.Phase = a.Phase
			}
		}
		if t, ok := r.retries.Known[row.RunID]; ok {
			row.Attempt, row.LastError = t.Attempt, t.LastError
		}
	}
}
