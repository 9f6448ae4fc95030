package playbooks

import (
	"context"
	"strconv"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// StepsOf finds the history events of a run that changed a playbook.
func StepsOf(ctx context.Context, c client.Client, key RunKey) RunSteps {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	var steps RunSteps
	var decoder history.Decoder
	var last int64
	iter := c.GetWorkflowHistory(ctx, key.WorkflowID, key.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	err := cluster.Drain(iter, &last, func(e *historypb.HistoryEvent) error {
		fact, ok, _ := decoder.Fact(e) // a foreign input does not matter here
		if ok && fact.Kind == ace.FactStepCompleted {
			switch fact.Step {
			case ace.PhaseCurator:
				steps.Curator = e.GetEventId()
			case ace.PhasePersist:
				steps.Persist = e.GetEventId()
			}
		}
		return nil
	})
	if err != nil {
		steps.Err = cluster.PlainError(err)
	}
	return steps
}

// Outcomes is how the tasks of an experiment were judged, whose playbooks are the branch of
// its name: those that ended right or wrong, at most the newest maxOutcomes.
func Outcomes(ctx context.Context, c client.Client, experiment string) ([]playbook.Outcome, error) {
	query := ace.AttrExperiment + " = " + strconv.Quote(experiment) + ` AND WorkflowType = "` + ace.TaskWorkflow + `"`
	var list []playbook.Outcome
	err := runs.List(ctx, c, query, maxOutcomes, func(r runs.Run) error {
		if r.Exit == ace.Success || r.Exit == ace.Wrong {
			list = append(list, playbook.Outcome{At: r.Close, Correct: r.Exit == ace.Success})
		}
		return nil
	})
	return list, err
}
