package sources

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/history"
)

// Bounds and rhythm of the experiments' reader. Of MaxExperiments experiments the
// progress is known, of MaxSeries of them the whole series; keptSeries of those that
// have closed are kept besides, so that coming back to one costs nothing.
const (
	MaxExperiments = 200
	MaxSeries      = 8
	keptSeries     = 8
	seriesEvery    = 100 * time.Millisecond
	// seriesRest is added for each task that was published: drawing takes longer, the more
	// there are.
	seriesRest = 10 * time.Microsecond
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
	Run      // the newest of its runs; Start is that of the first, once that is known
	Progress *ace.ExperimentProgress
}

// Name is the experiment's id.
func (e Experiment) Name() string {
	return strings.TrimPrefix(e.WorkflowID, ace.ExperimentIDPrefix)
}

// wishes is what is wanted of the experiments' reader, and what it keeps between
// readings. Its lock is the store's.
type wishes struct {
	series []string // workflow ids
	wake   chan struct{}
	closed map[string]Experiment // with their progress, by run id
	kept   []*Series             // of closed ones; the last used is the last
}

// ShowExperiments asks for the series of these experiments, by workflow id, at most
// MaxSeries of them.
func (s *Store) ShowExperiments(workflowIDs []string) {
	s.mu.Lock()
	w := s.wishesLocked()
	same := slices.Equal(w.series, workflowIDs)
	w.series = slices.Clone(workflowIDs[:min(len(workflowIDs), MaxSeries)])
	s.mu.Unlock()
	if !same {
		signal(w.wake)
	}
}

func (s *Store) wishesLocked() *wishes {
	if s.wishes == nil {
		s.wishes = &wishes{wake: make(chan struct{}, 1)}
	}
	return s.wishes
}

// updateExperiments replaces the piece by a changed copy.
func (s *Store) updateExperiments(fn func(*Experiments)) {
	s.update(func(snap *Snapshot) {
		next := Experiments{}
		if snap.Experiments != nil {
			next = *snap.Experiments
		}
		fn(&next)
		snap.Experiments = &next
	})
}

// readExperiments keeps the list and the series that were asked for fresh until ctx ends.
func (s *Store) readExperiments(ctx context.Context, d Deps) {
	var wg sync.WaitGroup
	wg.Go(func() { s.listExperiments(ctx, d.Client) })
	wg.Go(func() { (&seriesReader{store: s, c: d.Client, followed: map[string]*seriesFollower{}}).run(ctx) })
	wg.Wait()
}

// listExperiments reads the list at the store's interval, at once the first time.
func (s *Store) listExperiments(ctx context.Context, c client.Client) {
	for {
		snap := s.Snapshot()
		if !snap.Runs.Paused || snap.Experiments == nil {
			s.listExperimentsOnce(ctx, c)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(snap.Runs.Interval):
		}
	}
}

func (s *Store) listExperimentsOnce(ctx context.Context, c client.Client) {
	rows, more, err := ListExperiments(ctx, c)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.updateExperiments(func(e *Experiments) { e.Err, e.Reading = plainError(err), false })
		return
	}
	settled := s.fillProgress(rows)
	s.updateExperiments(func(e *Experiments) {
		e.Rows, e.More, e.Loaded, e.Err, e.Reading = slices.Clone(rows), more, s.now(), "", len(settled) < len(rows)
	})
	for i := range rows {
		if ctx.Err() != nil {
			return
		}
		if !settled[rows[i].RunID] {
			rows[i].read(ctx, c)
		}
	}
	s.keepProgress(rows)
	s.updateExperiments(func(e *Experiments) { e.Rows, e.Reading = rows, false })
}

// fillProgress gives the rows what is known of them from earlier readings, and says of
// which runs, which have closed, there is nothing more to know.
func (s *Store) fillProgress(rows []Experiment) (settled map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	settled, before := map[string]bool{}, map[string]Experiment{}
	if e := s.snap.Experiments; e != nil {
		for _, r := range e.Rows {
			before[r.RunID] = r
		}
	}
	for i, r := range rows {
		known, ok := s.wishesLocked().closed[r.RunID]
		if ok {
			settled[r.RunID] = true
		} else {
			known = before[r.RunID]
		}
		if known.Progress != nil {
			rows[i].Progress, rows[i].Start = known.Progress, known.Start
		}
	}
	return settled
}

// keepProgress keeps what closed experiments on the list have come to, and no more.
func (s *Store) keepProgress(rows []Experiment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := map[string]Experiment{}
	for _, r := range rows {
		if !r.Open() && r.Progress != nil {
			keep[r.RunID] = r
		}
	}
	s.wishesLocked().closed = keep
}

// ListExperiments reads the newest experiments, without their progress, and how many
// more there are. Of several of one workflow id it gives the newest.
func ListExperiments(ctx context.Context, c client.Client) ([]Experiment, int64, error) {
	runs, token, err := listOnce(ctx, c, experimentQuery, MaxExperiments, nil)
	if err != nil {
		return nil, 0, err
	}
	slices.SortStableFunc(runs, func(a, b Run) int { return b.Start.Compare(a.Start) })
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
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		total, err := Count(ctx, c, experimentQuery)
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
		if rows[i].read(ctx, c); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	slices.SortStableFunc(rows, func(a, b Experiment) int { return b.Start.Compare(a.Start) })
	return nil
}

// read brings up to date how far the experiment has come. One that continued as new
// began with its first run, which is looked up once.
func (e *Experiment) read(ctx context.Context, c client.Client) {
	known := e.Progress != nil
	if p := progressOf(ctx, c, e.Run); p != nil {
		e.Progress = p
	}
	if known || e.Progress == nil || e.Progress.Runs < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	runs, err := chain(ctx, c, e.WorkflowID)
	if err != nil {
		return
	}
	if r, err := c.DescribeWorkflowExecution(ctx, e.WorkflowID, runs.first); err == nil {
		e.Start = r.GetWorkflowExecutionInfo().GetStartTime().AsTime()
	}
}

// progressOf is how far an experiment has come: as its worker or its result says, else
// as the history of its newest run does, which begins with what came before. It is nil
// where neither can be had.
func progressOf(ctx context.Context, c client.Client, r Run) *ace.ExperimentProgress {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	p := &ace.ExperimentProgress{}
	if r.Open() {
		asking, stop := context.WithTimeout(ctx, askTimeout)
		defer stop()
		v, err := c.QueryWorkflow(asking, r.WorkflowID, r.RunID, ace.QueryExperiment)
		if err == nil && v.Get(p) == nil {
			return p
		}
	} else if resultOf(ctx, c, r, p) {
		return p
	}
	f := newExperimentFolder(nil)
	var last int64
	iter := c.GetWorkflowHistory(ctx, r.WorkflowID, r.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	err := drain(iter, &last, func(e *historypb.HistoryEvent) error { f.apply(e); return f.foreign })
	if err != nil {
		return nil
	}
	state := f.state.Progress
	state.ExitStatus = f.state.ExitStatus()
	return &state
}

// resultOf reads the result that a completed experiment left.
func resultOf(ctx context.Context, c client.Client, r Run, p *ace.ExperimentProgress) bool {
	iter := c.GetWorkflowHistory(ctx, r.WorkflowID, r.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	for iter.HasNext() {
		e, err := iter.Next()
		if err != nil {
			return false
		}
		if a := e.GetWorkflowExecutionCompletedEventAttributes(); a != nil {
			return json.Unmarshal(history.JSONOf(first(a.GetResult().GetPayloads())), p) == nil && p.ExperimentID != ""
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
		if err == nil || !NotFound(err) {
			return workflowID, err
		}
	}
	missing := &MissingError{ID: id}
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
		if distance(name, n) <= max(2, len(name)/3) {
			near = append(near, n)
		}
	}
	slices.SortStableFunc(near, func(a, b string) int { return distance(name, a) - distance(name, b) })
	return near[:min(len(near), 3)]
}
