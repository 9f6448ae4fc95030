package experiments

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	runspkg "acescope/sources/runs"
)

// Bounds and rhythm of the experiments' reader. Of MaxExperiments experiments the
// progress is known, of MaxSeries of them the whole series; keptSeries of those that
// have closed are kept besides, so that coming back to one costs nothing.
const (
	MaxExperiments = 200
	MaxSeries      = 8
	KeptSeries     = 8
	SeriesEvery    = 100 * time.Millisecond
	// SeriesRestt is added for each task that was published: drawing takes longer, the more
	// there are.
	SeriesRest = 10 * time.Microsecond
)

// experimentQuery finds experiments; a run that was continued as another one is not an
// experiment of its own.
const experimentQuery = `WorkflowType = "` + ace.ExperimentWorkflow + `" AND ExecutionStatus != "ContinuedAsNew"`

// Experiments is the newest experiments, and the series of those that were asked for.
type Experiments struct {
	Rows    []Experiment // newest first, at most MaxExperiments
	More    int64        // older ones that are not listed
	Series  []*Series    // in the order they were asked for, as far as they are read
	Loaded  time.Time    // when the list was last read, zero before the first time
	Reading bool         // the rows' progress is still being read
	Err     string       // why the last reading failed, "" if it did not
}

// Experiment is one experiment in the list. Progress is nil until it is read, and stays
// so where nothing tells it.
type Experiment struct {
	runspkg.Run // the newest of its runs; Start is that of the first, once that is known
	Progress    *ace.ExperimentProgress
}

// Name is the experiment's id.
func (e Experiment) Name() string {
	return strings.TrimPrefix(e.WorkflowID, ace.ExperimentIDPrefix)
}

// ListExperiments reads the newest experiments, without their progress, and how many
// more there are. Of several of one workflow id it gives the newest.
func ListExperiments(ctx context.Context, c client.Client) ([]Experiment, int64, error) {
	runs, token, err := runspkg.ListOnce(ctx, c, experimentQuery, MaxExperiments, nil)
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

// ReadProgress fills in how far each experiment has come, as far as that can be known.
func ReadProgress(ctx context.Context, c client.Client, rows []Experiment) error {
	for i := range rows {
		if rows[i].Read(ctx, c); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	slices.SortStableFunc(rows, func(a, b Experiment) int { return b.Start.Compare(a.Start) })
	return nil
}

// Read brings up to date how far the experiment has come. One that continued as new
// began with its first run, which is looked up once.
func (e *Experiment) Read(ctx context.Context, c client.Client) {
	known := e.Progress != nil
	if p := progressOf(ctx, c, e.Run); p != nil {
		e.Progress = p
	}
	if known || e.Progress == nil || e.Progress.Runs < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	runs, err := Chain(ctx, c, e.WorkflowID)
	if err != nil {
		return
	}
	if r, err := c.DescribeWorkflowExecution(ctx, e.WorkflowID, runs.First); err == nil {
		e.Start = r.GetWorkflowExecutionInfo().GetStartTime().AsTime()
	}
}

// progressOf is how far an experiment has come: as its worker or its result says, else
// as the history of its newest run does, which begins with what came before. It is nil
// where neither can be had.
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
	} else if resultOf(ctx, c, r, p) {
		return p
	}
	f := NewExperimentFolder(nil)
	var last int64
	iter := c.GetWorkflowHistory(ctx, r.WorkflowID, r.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	err := cluster.Drain(iter, &last, func(e *historypb.HistoryEvent) error { f.Apply(e); return f.Foreign })
	if err != nil {
		return nil
	}
	state := f.State.Progress
	state.ExitStatus = f.State.ExitStatus()
	return &state
}

// resultOf reads the result that a completed experiment left.
func resultOf(ctx context.Context, c client.Client, r runspkg.Run, p *ace.ExperimentProgress) bool {
	iter := c.GetWorkflowHistory(ctx, r.WorkflowID, r.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	for iter.HasNext() {
		e, err := iter.Next()
		if err != nil {
			return false
		}
		if a := e.GetWorkflowExecutionCompletedEventAttributes(); a != nil {
			return json.Unmarshal(history.PayloadJSON(cluster.First(a.GetResult().GetPayloads())), p) == nil && p.ExperimentID != ""
		}
	}
	return false
}

// ResolveExperiment finds the workflow id of the experiment that an experiment id or its
// workflow id names.
func ResolveExperiment(ctx context.Context, c client.Client, id string) (string, error) {
	name := strings.TrimPrefix(id, ace.ExperimentIDPrefix)
	if name != "" {
		workflowID := ace.ExperimentWorkflowID(name)
		_, err := c.DescribeWorkflowExecution(ctx, workflowID, "")
		if err == nil || !cluster.NotFound(err) {
			return workflowID, err
		}
	}
	missing := &runspkg.MissingError{ID: id}
	if rows, _, err := ListExperiments(ctx, c); err == nil {
		names := make([]string, len(rows))
		for i, r := range rows {
			names[i] = r.Name()
		}
		missing.Near = nearest(name, names)
	}
	return "", missing
}

// nearest lists up to three names that are like the given one.
func nearest(name string, names []string) []string {
	var near []string
	for _, n := range names {
		if runspkg.Distance(name, n) <= max(2, len(name)/3) {
			near = append(near, n)
		}
	}
	slices.SortStableFunc(near, func(a, b string) int { return runspkg.Distance(name, a) - runspkg.Distance(name, b) })
	return near[:min(len(near), 3)]
}
