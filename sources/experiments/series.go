package experiments

import (
	"context"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
)

// Bounds of a series.
const (
	MaxSeriesTasks = 100_000 // further tasks are counted in [Series.Dropped]
	maxAnswer      = 80      // bytes
)

// Series is an experiment with its tasks in the order of completion, over all its runs. Progress is as
// [Follow] returns it.
type Series struct {
	WorkflowID string
	RunID      string              // newest run
	Input      ace.ExperimentInput // without its progress
	Progress   ace.ExperimentProgress
	Failure    *ace.Failure
	Status     ace.Status
	Start      time.Time
	Close      time.Time // zero while it runs
	Tasks      []Task
	Reading    bool   // it has closed, but is not completely read
	Dropped    int    // tasks after the first MaxSeriesTasks
	Err        string // why it is incomplete
	Note       string // information about the experiment that is missing
}

// Task is a closed task of an experiment, of about 130 bytes.
type Task struct {
	TaskID   string      `json:"task_id"`
	Prompt   uint64      `json:"-"`     // equal for equal prompts, 0 if unknown
	Epoch    int32       `json:"epoch"` // 1-based
	Index    int32       `json:"index"` // 0-based in the data set, -1 if unknown
	Status   ace.Status  `json:"status"`
	Verdict  ace.Verdict `json:"verdict,omitempty"` // "" if it did not complete
	Answer   string      `json:"answer"`            // its first 80 bytes
	Bullets  int32       `json:"bullets"`           // in the playbook after it, 0 if unknown
	Accepted int32       `json:"operations_accepted"`
	Rejected int32       `json:"operations_rejected"`
	Input    int32       `json:"input_tokens"`
	Output   int32       `json:"output_tokens"`
	Duration int32       `json:"duration_ms"`
	Cost     float64     `json:"cost_usd"`
	At       int64       `json:"at_ms"` // end, in milliseconds after the experiment's start
}

func (t *Task) tokens() float64 { return float64(t.Input) + float64(t.Output) }

// Duration returns how long the experiment took, or has taken so far.
func (s *Series) Duration(now time.Time) time.Duration {
	switch {
	case s.Start.IsZero():
		return 0
	case s.Close.IsZero():
		return max(now.Sub(s.Start), 0)
	}
	return max(s.Close.Sub(s.Start), 0)
}

// Name returns the experiment's id.
func (s *Series) Name() string { return strings.TrimPrefix(s.WorkflowID, ace.ExperimentIDPrefix) }

// ReadSeries reads the series of an experiment so far.
func ReadSeries(ctx context.Context, c client.Client, workflowID string) (*Series, error) {
	runs, err := readChain(ctx, c, workflowID)
	if cluster.NotFound(err) {
		return readTasks(ctx, c, workflowID, map[string]Finished{})
	}
	if err != nil {
		return nil, err
	}
	f := NewSeriesFolder(workflowID, runs.Newest)
	err = f.Read(ctx, runs.First, func(runID string, take func(*historypb.HistoryEvent) error) error {
		all := enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT
		return cluster.Drain(c.GetWorkflowHistory(ctx, workflowID, runID, false, all), take)
	})
	if err != nil {
		return nil, err
	}
	return f.Value(), nil
}

// runChain names the first and the newest run of an experiment.
type runChain struct {
	First, Newest string
	Open          bool
}

func readChain(ctx context.Context, c client.Client, workflowID string) (runChain, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	r, err := c.DescribeWorkflowExecution(ctx, workflowID, "")
	if err != nil {
		return runChain{}, err
	}
	info := r.GetWorkflowExecutionInfo()
	runs := runChain{info.GetFirstRunId(), info.GetExecution().GetRunId(), info.GetCloseTime() == nil}
	if runs.First == "" {
		runs.First = runs.Newest
	}
	return runs, nil
}

// SeriesFolder folds the histories of an experiment into a series. Another goroutine may read it meanwhile.
type SeriesFolder struct {
	mu     sync.Mutex
	Series Series
	run    *Folder
	value  *Series // the last result of Value; nil after a change
	dirty  bool    // changed since the last call of changed
}

func NewSeriesFolder(workflowID, newest string) *SeriesFolder {
	f := &SeriesFolder{Series: Series{WorkflowID: workflowID, RunID: newest}}
	f.run = NewFolder(f.Ended)
	return f
}

// Read folds the chain from its first run; events returns the histories. If the oldest are deleted, it begins
// with the newest and sets Err.
func (f *SeriesFolder) Read(ctx context.Context, runID string,
	events func(string, func(*historypb.HistoryEvent) error) error) error {
	for {
		next := ""
		err := events(runID, func(e *historypb.HistoryEvent) error {
			next = history.NextRun(e)
			return f.Apply(e)
		})
		if newest := f.Series.RunID; cluster.NotFound(err) && runID != newest {
			f.change(func(s *Series) {
				f.run = NewFolder(f.Ended)
				s.Err = "the histories of its first runs are deleted; only the newest run was read"
			})
			runID = newest
			continue
		}
		if err != nil {
			return err
		}
		if next == "" {
			f.change(func(s *Series) { s.Reading = false })
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.change(func(s *Series) {
			f.run = NewFolder(f.Ended)
			s.Close, s.RunID = time.Time{}, next
		})
		runID = next
	}
}

func (f *SeriesFolder) change(change func(*Series)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.value = nil
	f.dirty = true
	change(&f.Series)
}

func (f *SeriesFolder) Apply(e *historypb.HistoryEvent) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.value = nil
	f.dirty = true
	at := e.GetEventTime().AsTime()
	if f.Series.Start.IsZero() && e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED {
		f.Series.Start = at
	}
	if cluster.ClosesRun(e.GetEventType()) {
		f.Series.Close = at
	}
	f.run.Apply(e)
	return f.run.Foreign
}

// Ended adds a task that ended with the current event.
func (f *SeriesFolder) Ended(_ ace.ExperimentInput, d Finished) {
	s := &f.Series
	if len(s.Tasks) >= MaxSeriesTasks {
		s.Dropped++
		return
	}
	r := d.Result
	usage := r.Summary.Usage
	t := Task{
		TaskID: r.TaskID, Answer: ace.Cut(r.Answer, maxAnswer),
		Epoch: int32(f.run.State.Progress.Epoch), Index: int32(r.Index),
		Status: d.Status, Verdict: d.Verdict, Bullets: int32(r.Bullets),
		Accepted: int32(r.Summary.Accepted()), Rejected: int32(r.Summary.Rejected),
		Input: int32(usage.InputTokens), Output: int32(usage.OutputTokens), Cost: usage.CostUSD,
		At: max(d.At.Sub(s.Start), 0).Milliseconds(), Duration: int32(d.Took.Milliseconds()),
	}
	if began := d.began; began != nil {
		t.TaskID, t.Epoch, t.Index, t.Prompt = began.TaskID, int32(began.Epoch), int32(began.Index), began.key
	} else if d.Failure != nil {
		t.Index = -1
	}
	s.Tasks = append(s.Tasks, t)
}

// Value returns the current series. Tasks are only appended, so values share them.
func (f *SeriesFolder) Value() *Series {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.value != nil {
		return f.value
	}
	s, state := f.Series, &f.run.State
	s.Input, s.Progress, s.Failure = state.Input, state.Progress, state.Failure
	s.Input.Progress = nil
	s.Status = state.Status()
	s.Progress.Status = s.Status
	f.value = &s
	return f.value
}

// changed reports whether anything is new since the last call.
func (f *SeriesFolder) changed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	dirty := f.dirty
	f.dirty = false
	return dirty
}
