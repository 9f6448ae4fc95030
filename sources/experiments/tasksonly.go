package experiments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	runspkg "acescope/sources/runs"
)

// Experiments of other programs may have no workflow: they consist of the tasks with the same ExperimentId.

const (
	maxListedTasks   = 500 // newest tasks that a list reads
	maxTaskHistories = 200 // newest closed tasks of an experiment whose histories are read
)

// Notes on an experiment that has only tasks.
const (
	noWorkflow  = "no experiment workflow, only the tasks with its ExperimentId, such as those of another program"
	noHistories = noWorkflow + "; answers and playbook sizes are known only of the newest %d tasks"
)

func tasksQuery(condition string) string {
	return `WorkflowType = "` + ace.TaskWorkflow + `" AND ExecutionStatus != "ContinuedAsNew" AND ` +
		condition
}

// listTasksOnly lists the experiments of the newest tasks that are not known, by workflow id, and have no
// workflow.
func listTasksOnly(ctx context.Context, c client.Client, known map[string]bool) ([]Experiment, error) {
	names := []string{strconv.Quote(""), strconv.Quote(ace.ObservedExperiment)}
	for workflowID := range known {
		names = append(names, strconv.Quote(strings.TrimPrefix(workflowID, ace.ExperimentIDPrefix)))
	}
	slices.Sort(names)
	query := tasksQuery(ace.AttrExperiment + " NOT IN (" + strings.Join(names, ", ") + ")")
	list, token, err := runspkg.ListOnce(ctx, c, query, maxListedTasks)
	if _, noAttribute := errors.AsType[*serviceerror.InvalidArgument](err); noAttribute {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	tasks := map[string][]runspkg.Run{}
	for _, r := range list {
		tasks[r.Experiment] = append(tasks[r.Experiment], r)
	}
	var rows []Experiment
	for name, of := range tasks {
		_, err := c.DescribeWorkflowExecution(ctx, ace.ExperimentWorkflowID(name), "")
		if err == nil {
			continue // the list does not reach back to this experiment
		}
		if !cluster.NotFound(err) {
			return nil, err
		}
		s := taskSeries(name, of, nil)
		row := Experiment{Note: s.Note, Progress: &s.Progress, Run: runspkg.Run{
			WorkflowID: s.WorkflowID, Experiment: name, Dataset: s.Input.DatasetID, Model: s.Input.Model,
			Adapter: string(s.Input.Adapter), Status: s.Status, Start: s.Start, Close: s.Close}}
		// There are more tasks, perhaps of this experiment, or only their histories have the verdicts.
		noVerdict := func(r runspkg.Run) bool { return r.Status == ace.Completed && r.Verdict == "" }
		if len(token) > 0 || slices.ContainsFunc(of, noVerdict) {
			row.Progress = nil
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// CountBullets sets the number of bullets of experiments without a workflow from the branches of the same
// names, unless it is known. If there is such an experiment, it calls sync once, to bring the store up to
// date. Without the store, the number stays unknown.
func CountBullets(books *playbook.Store, rows []Experiment, sync func() error) {
	synced := false
	for i, e := range rows {
		if e.Note == "" || e.Progress == nil || e.Progress.Bullets > 0 {
			continue
		}
		if !synced && sync() != nil {
			return
		}
		synced = true
		b, err := books.Branch(e.Name())
		if err != nil {
			continue
		}
		if newest, err := books.Page(b.Name, b.Versions, b.Versions); err == nil && len(newest) == 1 {
			p := *e.Progress // it may be published
			p.Bullets = newest[0].Bullets
			rows[i].Progress = &p
		}
	}
}

// readTasks reads the series of an experiment from its tasks. Histories that are in known are not read again;
// it adds those that it reads, by run id. The error is [cluster.NotFound] if there are no tasks.
func readTasks(
	ctx context.Context, c client.Client, workflowID string, known map[string]Finished,
) (*Series, error) {
	name := strings.TrimPrefix(workflowID, ace.ExperimentIDPrefix)
	var list []runspkg.Run
	query := tasksQuery(ace.AttrExperiment + " = " + strconv.Quote(name))
	err := runspkg.List(ctx, c, query, MaxSeriesTasks, func(r runspkg.Run) error {
		list = append(list, r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, serviceerror.NewNotFound("no experiment and no task of " + name)
	}
	slices.SortStableFunc(list, func(a, b runspkg.Run) int { return b.Close.Compare(a.Close) })
	closed := 0
	for _, r := range list {
		if r.Open() || closed == maxTaskHistories {
			continue
		}
		closed++
		if _, read := known[r.RunID]; !read {
			done, err := readTask(ctx, c, r)
			if err != nil {
				return nil, err
			}
			known[r.RunID] = done
		}
	}
	s := taskSeries(name, list, known)
	if len(s.Tasks) > closed {
		s.Note = fmt.Sprintf(noHistories, closed)
	}
	return s, nil
}

// readTask folds the history of a closed task.
func readTask(ctx context.Context, c client.Client, r runspkg.Run) (Finished, error) {
	var state ace.State
	var decoder history.Decoder
	all := enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT
	iter := c.GetWorkflowHistory(ctx, r.WorkflowID, r.RunID, false, all)
	err := cluster.Drain(iter, func(e *historypb.HistoryEvent) error {
		if fact, ok, _ := decoder.Fact(e); ok { // facts that cannot be read stay unknown
			state.Apply(fact)
		}
		return nil
	})
	if err != nil {
		return Finished{}, err
	}
	done := listed(r)
	done.Result = state.Result()
	done.Result.TaskID = r.TaskID
	if done.Status == ace.Completed {
		done.Verdict = cmp.Or(r.Verdict, state.Verdict())
	}
	prompt := state.Input.Prompt
	if state.Input.PromptRef != nil {
		prompt = state.Input.PromptRef.SHA256
	}
	done.began = &taskStart{TaskID: r.TaskID, Epoch: state.Input.Epoch, Index: state.Input.Index,
		key: promptKey(prompt)}
	if state.Input.Epoch < 1 {
		done.began.Epoch, done.began.Index = 1, -1
	}
	return done, nil
}

// listed returns a closed task with the fields that a list has.
func listed(r runspkg.Run) Finished {
	done := Finished{Status: r.Status, WorkflowID: r.WorkflowID, RunID: r.RunID, At: r.Close,
		Took:   r.Close.Sub(r.Start),
		Result: ace.TaskResult{TaskID: r.TaskID, Index: -1},
		began:  &taskStart{TaskID: r.TaskID, Epoch: 1, Index: -1}}
	if r.Summary != nil {
		done.Result.Summary = *r.Summary
	}
	if r.Status == ace.Completed {
		done.Verdict = cmp.Or(r.Verdict, ace.Unlabeled)
	} else {
		done.Failure = &ace.Failure{Kind: r.Status}
	}
	return done
}

// taskSeries folds tasks into a series, with the results from their histories as far as they are known. Like
// an experiment workflow, it counts as failed if too many of its tasks failed.
func taskSeries(name string, list []runspkg.Run, known map[string]Finished) *Series {
	slices.SortStableFunc(list, func(a, b runspkg.Run) int { return a.Close.Compare(b.Close) })
	first := slices.MinFunc(list, func(a, b runspkg.Run) int { return a.Start.Compare(b.Start) })
	f := NewSeriesFolder(ace.ExperimentWorkflowID(name), "")
	f.Series.Start, f.Series.Note = first.Start, noWorkflow
	state := &f.run.State
	state.Apply(ace.ExperimentFact{Input: &ace.ExperimentInput{ExperimentID: name, DatasetID: first.Dataset,
		Model: first.Model, Adapter: ace.Adapter(first.Adapter), Tasks: len(list), Epochs: 1, Parallel: 1,
		Revision:         ace.Revision,
		ExperimentBounds: ace.ExperimentBounds{MaxFailed: new(ace.DefaultMaxFailed)}}})
	for _, r := range list {
		if r.Open() {
			continue
		}
		done, read := known[r.RunID]
		if !read {
			done = listed(r)
		}
		f.Series.Close = r.Close
		if done.Failure != nil {
			state.Apply(ace.ExperimentFact{Failed: done.Failure})
		} else {
			done.Result.Verdict = done.Verdict
			state.Apply(ace.ExperimentFact{Completed: &done.Result})
		}
		f.Ended(state.Input, done)
	}
	if state.Progress.Stage == ace.StageDone {
		state.ClosedAs = state.Progress.Status
		if state.Progress.Done() == 0 && state.Progress.Canceled() > 0 {
			state.ClosedAs = ace.Canceled
		}
	} else {
		f.Series.Close = list[0].Close // zero: the open ones are first
	}
	return f.Value()
}
