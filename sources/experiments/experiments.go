package experiments

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	runspkg "acescope/sources/runs"
)

// Bounds and intervals of the experiments' reader: MaxExperiments are listed with their progress, MaxSeries
// are read completely, and maxKeptSeries closed series stay in memory.
const (
	MaxExperiments = 200
	MaxSeries      = 8
	maxKeptSeries  = 8
	seriesEvery    = 100 * time.Millisecond
	syncEvery      = 30 * time.Second // of the playbooks of other machines
	// seriesRest is added per published task, because drawing takes longer the more there are.
	seriesRest = 10 * time.Microsecond
)

// experimentQuery finds the newest run of each experiment.
const experimentQuery = `WorkflowType = "` + ace.ExperimentWorkflow +
	`" AND ExecutionStatus != "ContinuedAsNew"`

// Experiments holds the newest experiments and the requested series.
type Experiments struct {
	Rows   []Experiment // newest first, at most MaxExperiments
	More   int64        // number of older experiments
	Series []*Series    // in the requested order, as far as they are read
	Loaded time.Time    // time of the last reading, zero before the first
	Err    string       // why the last reading failed
}

// Experiment is one experiment in the list. Progress is nil until it is read, or if it cannot be read.
type Experiment struct {
	runspkg.Run // the newest run; Start is that of the first run if it is known
	Progress    *ace.ExperimentProgress
	Note        string // why it has no workflow, so no RunID; "" if it has one
}

// Name returns the experiment's id.
func (e Experiment) Name() string {
	return strings.TrimPrefix(e.WorkflowID, ace.ExperimentIDPrefix)
}

// Answers counts the closed tasks of all epochs, the correct answers and the labeled tasks.
func Answers(p *ace.ExperimentProgress) (closed, correct, labeled int) {
	for _, e := range p.Epochs {
		closed += e.Tasks
		correct += e.Correct
		labeled += e.Tasks - e.Unlabeled
	}
	return closed, correct, labeled
}

// List reads the newest experiments, without their progress, and the number of older ones. A workflow id is
// listed once, with its newest run. An experiment without a workflow has its progress if the list of its
// tasks contains it.
func List(ctx context.Context, c client.Client) ([]Experiment, int64, error) {
	runs, token, err := runspkg.ListOnce(ctx, c, experimentQuery, MaxExperiments)
	if err != nil {
		return nil, 0, err
	}
	slices.SortStableFunc(runs, func(a, b runspkg.Run) int { return b.Start.Compare(a.Start) })
	seen := map[string]bool{}
	var rows []Experiment
	for _, r := range runs {
		if !seen[r.WorkflowID] {
			seen[r.WorkflowID] = true
			rows = append(rows, Experiment{Run: r})
		}
	}
	others, err := listTasksOnly(ctx, c, seen)
	if err != nil {
		return nil, 0, err
	}
	rows = append(rows, others...)
	slices.SortStableFunc(rows, func(a, b Experiment) int { return b.Start.Compare(a.Start) })
	more := int64(0)
	if len(token) > 0 {
		ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
		defer cancel()
		total, err := runspkg.Count(ctx, c, experimentQuery)
		if err != nil {
			return nil, 0, err
		}
		more = max(total-int64(len(runs)), 1)
	}
	return rows, more, nil
}

// ReadProgress sets the progress of each experiment if it is available.
func ReadProgress(ctx context.Context, c client.Client, rows []Experiment) error {
	for i := range rows {
		if rows[i].Read(ctx, c); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	slices.SortStableFunc(rows, func(a, b Experiment) int { return b.Start.Compare(a.Start) })
	return nil
}

// key identifies what was read of the experiment. Without a workflow, it changes when another task closes.
func (e *Experiment) key() string { return cmp.Or(e.RunID, e.WorkflowID+" "+e.Close.String()) }

// unread reports whether there is more to read. The histories of tasks without a workflow are read once they
// have all closed, because there may be many.
func (e *Experiment) unread() bool { return e.Note == "" || e.Progress == nil && !e.Open() }

// Read updates the progress of the experiment. It reads the start of a continued experiment once, from its
// first run.
func (e *Experiment) Read(ctx context.Context, c client.Client) {
	if e.Note != "" {
		if !e.unread() {
			return
		}
		if s, err := readTasks(ctx, c, e.WorkflowID, map[string]Finished{}); err == nil {
			e.Progress = &s.Progress
		}
		return
	}
	known := e.Progress != nil
	if p := progressOf(ctx, c, e.Run); p != nil {
		e.Progress = p
	}
	if known || e.Progress == nil || e.Progress.Runs < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	runs, err := readChain(ctx, c, e.WorkflowID)
	if err != nil {
		return
	}
	if r, err := c.DescribeWorkflowExecution(ctx, e.WorkflowID, runs.First); err == nil {
		e.Start = r.GetWorkflowExecutionInfo().GetStartTime().AsTime()
	}
}

// progressOf returns the progress of an experiment from its worker, its result, or the history of its newest
// run, which begins with the earlier progress. It returns nil if all fail.
func progressOf(ctx context.Context, c client.Client, r runspkg.Run) *ace.ExperimentProgress {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	p := &ace.ExperimentProgress{}
	if r.Open() {
		asking, stop := context.WithTimeout(ctx, cluster.AskTimeout)
		defer stop()
		v, err := c.QueryWorkflow(asking, r.WorkflowID, r.RunID, ace.QueryExperiment)
		if err == nil && v.Get(p) == nil {
			return p
		}
	} else if c.GetWorkflow(ctx, r.WorkflowID, r.RunID).Get(ctx, p) == nil && p.ExperimentID != "" {
		return p
	}
	f := NewFolder(nil)
	iter := c.GetWorkflowHistory(ctx, r.WorkflowID, r.RunID, false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	err := cluster.Drain(iter, func(e *historypb.HistoryEvent) error { f.Apply(e); return f.Foreign })
	if err != nil {
		return nil
	}
	return &f.State.Progress
}

// ReadSummary returns the summary of an open experiment so far, which its memo gets when it closes, or nil if
// its progress cannot be read. Its metered usage is that of finished evaluations.
func ReadSummary(ctx context.Context, c client.Client, r runspkg.Run) *ace.Summary {
	p := progressOf(ctx, c, r)
	if p == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	iter := c.GetWorkflowHistory(ctx, r.WorkflowID, r.RunID, false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !iter.HasNext() {
		return nil
	}
	began, err := iter.Next()
	if err != nil {
		return nil
	}
	f := NewFolder(nil)
	f.Apply(began)
	f.State.Progress = *p
	sum := f.State.Summary()
	return &sum
}

// Find returns the progress of the newest run of an experiment, or nil if it has no workflow or cannot be
// read.
func Find(ctx context.Context, c client.Client, name string) (*ace.ExperimentProgress, error) {
	query := experimentQuery + " AND WorkflowId = " + strconv.Quote(ace.ExperimentWorkflowID(name))
	found, _, err := runspkg.ListOnce(ctx, c, query, MaxExperiments)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	newest := slices.MaxFunc(found, func(a, b runspkg.Run) int { return a.Start.Compare(b.Start) })
	return progressOf(ctx, c, newest), nil
}

// ErrNotFound means that no experiment has the name.
var ErrNotFound = ace.NotFound{Kind: "experiment", Hint: `run "acescope experiment list"`}

// Resolve returns the workflow id of an experiment, given its id or workflow id.
func Resolve(ctx context.Context, c client.Client, id string) (string, error) {
	name := strings.TrimPrefix(id, ace.ExperimentIDPrefix)
	if name != "" {
		workflowID := ace.ExperimentWorkflowID(name)
		_, err := c.DescribeWorkflowExecution(ctx, workflowID, "")
		if err == nil || !cluster.NotFound(err) {
			return workflowID, err
		}
		query := tasksQuery(ace.AttrExperiment + " = " + strconv.Quote(name))
		if n, err := runspkg.Count(ctx, c, query); err == nil && n > 0 {
			return workflowID, nil
		}
	}
	var near []string
	if rows, _, err := List(ctx, c); err == nil {
		names := make([]string, len(rows))
		for i, r := range rows {
			names[i] = r.Name()
		}
		near = runspkg.Near(name, names)
	}
	return "", ErrNotFound.Near(id, near)
}
