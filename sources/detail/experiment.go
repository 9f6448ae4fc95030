package detail

import (
	"context"
	"fmt"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/sources/experiments"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// experimentRun folds the history of an experiment.
type experimentRun struct {
	*experiments.Folder
	ended []experiments.Finished // tasks that end with the event being folded
}

func (x *experimentRun) fold(d *draft, e *historypb.HistoryEvent) (changes []histories.Change) {
	x.ended = nil
	x.Apply(e)
	for _, f := range x.ended {
		changes = append(changes, noted(histories.TaskLine(f)))
		if f.Failure == nil {
			continue
		}
		if len(d.FailedTasks) == histories.MaxFailedTasks {
			d.FailedTasks = d.FailedTasks[1:]
			d.FailedDropped++
		}
		d.FailedTasks = append(d.FailedTasks, f)
	}
	return changes
}

// noted returns a line of a log as a change.
func noted(l runs.LogLine) histories.Change {
	return histories.Change{Event: l.Event, At: l.At, Type: histories.ChangeType(l.Kind), Note: l.Text}
}

func (x *experimentRun) query(ctx context.Context, ask query) func(*draft) {
	var live ace.ExperimentProgress
	if ask(ctx, ace.QueryExperiment, &live) != nil {
		return nil
	}
	return func(d *draft) {
		d.From = runs.FromQuery
		x.takeProgress(d, live)
	}
}

func (x *experimentRun) take(d *draft) { x.takeProgress(d, x.State.Progress) }

func (x *experimentRun) takeProgress(d *draft, p ace.ExperimentProgress) {
	if x.Foreign != nil {
		d.Err = fmt.Sprintf("the input of this experiment does not match the contract: %v", x.Foreign)
	}
	p.Status = d.status()
	d.Experiment, d.ExperimentInput = &p, x.State.Input
	d.ExperimentInput.Progress = nil
	d.Phase.Failure = x.State.Failure
}
