package experiments

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"math"
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

// Bounds of a series: tasks, about 100 bytes each, further ones are counted in [Series.Dropped]; and bytes of
// an answer.
const (
	MaxSeriesTasks = 100_000
	maxAnswer      = 80
)

// Series is an experiment with its tasks in the order of completion, over all its runs. Progress is as [Follow]
// returns it.
type Series struct {
	WorkflowID string
	RunID      string              // newest run
	Input      ace.ExperimentInput // without its progress
	Progress   ace.ExperimentProgress
	Failure    *ace.Failure
	Exit       ace.ExitStatus
	Start      time.Time
	Close      time.Time // zero while it runs
	Tasks      TaskColumns
	Reading    bool   // it has closed, but is not completely read
	Dropped    int    // tasks after the first MaxSeriesTasks
	Err        string // why it is incomplete
}

// Verdict is the verdict on an answer.
type Verdict int8

// Verdicts. A task without a label and a canceled task are not judged; a failed task is wrong, as in
// [ace.EpochResult.Accuracy].
const (
	NotJudged Verdict = iota
	AnsweredWrong
	AnsweredRight
)

// TaskColumns holds tasks in columns to save memory. All columns have the same length.
type TaskColumns struct {
	TaskID   []string
	Answer   []string // its first 80 bytes
	Prompt   []uint64 // equal for equal prompts, 0 if unknown
	Epoch    []int32  // 1-based
	Index    []int32  // 0-based in the data set, -1 if unknown
	Exit     []ace.ExitStatus
	Verdict  []Verdict
	Bullets  []int32 // in the playbook after it, 0 if unknown
	Accepted []int32 // operations
	Rejected []int32
	Input    []int32 // tokens
	Output   []int32
	Cost     []float64 // US dollars
	At       []int64   // end, in milliseconds after the experiment's start
	Duration []int32   // milliseconds
}

// Len returns the number of tasks.
func (t *TaskColumns) Len() int { return len(t.TaskID) }

// SeriesTask is one row of the columns.
type SeriesTask struct {
	TaskID   string
	Answer   string
	Epoch    int
	Index    int
	Exit     ace.ExitStatus
	Verdict  Verdict
	Bullets  int
	Accepted int
	Rejected int
	Usage    ace.Usage
	At, Took time.Duration
}

// Row returns the task at an index in the order of completion.
func (t *TaskColumns) Row(i int) SeriesTask {
	return SeriesTask{TaskID: t.TaskID[i], Answer: t.Answer[i], Epoch: int(t.Epoch[i]), Index: int(t.Index[i]), Exit: t.Exit[i],
		Verdict: t.Verdict[i], Bullets: int(t.Bullets[i]), Accepted: int(t.Accepted[i]), Rejected: int(t.Rejected[i]),
		Usage: ace.Usage{InputTokens: int64(t.Input[i]), OutputTokens: int64(t.Output[i]), CostUSD: t.Cost[i]},
		At:    time.Duration(t.At[i]) * time.Millisecond, Took: time.Duration(t.Duration[i]) * time.Millisecond}
}

func (t *TaskColumns) Add(r SeriesTask, prompt uint64) {
	t.TaskID = append(t.TaskID, r.TaskID)
	t.Answer = append(t.Answer, r.Answer)
	t.Prompt = append(t.Prompt, prompt)
	t.Epoch = append(t.Epoch, narrow(r.Epoch))
	t.Index = append(t.Index, narrow(r.Index))
	t.Exit = append(t.Exit, r.Exit)
	t.Verdict = append(t.Verdict, r.Verdict)
	t.Bullets = append(t.Bullets, narrow(r.Bullets))
	t.Accepted = append(t.Accepted, narrow(r.Accepted))
	t.Rejected = append(t.Rejected, narrow(r.Rejected))
	t.Input = append(t.Input, narrow(r.Usage.InputTokens))
	t.Output = append(t.Output, narrow(r.Usage.OutputTokens))
	t.Cost = append(t.Cost, r.Usage.CostUSD)
	t.At = append(t.At, r.At.Milliseconds())
	t.Duration = append(t.Duration, narrow(r.Took.Milliseconds()))
}

func narrow[T int | int64](n T) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

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
	if err != nil {
		return nil, err
	}
	f := NewSeriesFolder(workflowID, runs.Newest)
	err = f.Read(ctx, runs.First, func(runID string, take func(*historypb.HistoryEvent) error) error {
		var last int64
		return cluster.Drain(c.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT), &last, take)
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
	open   map[int64]taskStart // of the run, by initiated event id
	Event  *historypb.HistoryEvent
	dirty  bool
}

// taskStart is the input of a task.
type taskStart struct {
	TaskID    string   `json:"task_id"`
	Prompt    string   `json:"prompt"`
	PromptRef *ace.Ref `json:"prompt_ref"`
	Epoch     int      `json:"epoch"`
	Index     int      `json:"index"`

	key uint64
}

func NewSeriesFolder(workflowID, newest string) *SeriesFolder {
	f := &SeriesFolder{Series: Series{WorkflowID: workflowID, RunID: newest}}
	f.begin()
	return f
}

// begin prepares for the next run's history.
func (f *SeriesFolder) begin() {
	f.run = NewFolder(f.Ended)
	f.open = map[int64]taskStart{}
}

// Read folds the chain from its first run; events returns the histories. If the oldest are deleted, it begins
// with the newest and sets Err.
func (f *SeriesFolder) Read(ctx context.Context, runID string, events func(string, func(*historypb.HistoryEvent) error) error) error {
	newest := f.Series.RunID
	for {
		next := ""
		err := events(runID, func(e *historypb.HistoryEvent) error {
			next = history.NextRun(e)
			return f.Apply(e)
		})
		if cluster.NotFound(err) && runID != newest {
			f.lose("the history of its first runs is gone: only the newest was read")
			f.begin()
			runID = newest
			continue
		}
		if err != nil || next == "" || ctx.Err() != nil {
			return err
		}
		f.continueAs(next)
		runID, newest = next, f.newest()
	}
}

func (f *SeriesFolder) lose(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Series.Err, f.dirty = why, true
}

func (f *SeriesFolder) newest() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Series.RunID
}

func (f *SeriesFolder) continueAs(runID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begin()
	f.Series.Close = time.Time{}
	f.Series.RunID = runID
}

func (f *SeriesFolder) Apply(e *historypb.HistoryEvent) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Event, f.dirty = e, true
	at := e.GetEventTime().AsTime()
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		if f.Series.Start.IsZero() {
			f.Series.Start = at
		}
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
		f.open[e.GetEventId()] = startOf(e.GetStartChildWorkflowExecutionInitiatedEventAttributes())
	}
	if cluster.ClosesRun(e.GetEventType()) {
		f.Series.Close = at
	}
	f.run.Apply(e)
	return f.run.Foreign
}

// startOf reads the input of a child, without the prompt.
func startOf(a *historypb.StartChildWorkflowExecutionInitiatedEventAttributes) taskStart {
	var t taskStart
	err := json.Unmarshal(history.PayloadJSON(cluster.First(a.GetInput().GetPayloads())), &t)
	if err != nil || t.Epoch < 1 { // not a task of an experiment: index 0 means nothing
		t.Index = -1
	}
	if t.TaskID == "" {
		t.TaskID = ace.TaskIDOf(a.GetWorkflowId())
	}
	h := fnv.New64a()
	switch {
	case t.PromptRef != nil:
		_, _ = h.Write([]byte(t.PromptRef.SHA256))
		t.key = h.Sum64()
	case t.Prompt != "":
		_, _ = h.Write([]byte(t.Prompt))
		t.key = h.Sum64()
	}
	t.Prompt, t.PromptRef = "", nil
	return t
}

// Ended adds a task that ended with the current event.
func (f *SeriesFolder) Ended(_ ace.ExperimentInput, d Finished) {
	s := &f.Series
	if s.Tasks.Len() >= MaxSeriesTasks {
		s.Dropped++
		return
	}
	id := initiated(f.Event)
	if a := f.Event.GetStartChildWorkflowExecutionFailedEventAttributes(); a != nil {
		id = a.GetInitiatedEventId()
	}
	began, known := f.open[id]
	delete(f.open, id)
	r := d.Result
	t := SeriesTask{TaskID: r.TaskID, Answer: clip(r.Answer), Epoch: f.run.State.Progress.Epoch, Index: r.Index, Exit: r.ExitStatus,
		Verdict: verdictOf(r), Bullets: r.Bullets, Accepted: r.Summary.Accepted(), Rejected: r.Summary.Rejected,
		Usage: r.Summary.Usage, At: max(d.At.Sub(s.Start), 0), Took: d.Took}
	if known {
		t.TaskID, t.Epoch, t.Index = began.TaskID, began.Epoch, began.Index
	} else if d.Failure != nil {
		t.Index = -1
	}
	s.Tasks.Add(t, began.key)
}

func verdictOf(r ace.TaskResult) Verdict {
	switch {
	case r.ExitStatus == ace.Canceled:
		return NotJudged
	case r.ExitStatus != ace.Success && r.ExitStatus != ace.Wrong:
		return AnsweredWrong
	case r.Correct == nil:
		return NotJudged
	case *r.Correct && r.ExitStatus == ace.Success:
		return AnsweredRight
	}
	return AnsweredWrong
}

// clip returns the start of an answer, without a reference to the rest.
func clip(answer string) string {
	if len(answer) <= maxAnswer {
		return answer
	}
	return strings.Clone(strings.ToValidUTF8(answer[:maxAnswer], "")) + "…"
}

// Value returns the current series. Columns only grow, so values share them.
func (f *SeriesFolder) Value() *Series {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dirty = false
	s, state := f.Series, &f.run.State
	s.Input, s.Progress, s.Failure = state.Input, state.Progress, state.Failure
	s.Input.Progress = nil
	s.Exit = state.ExitStatus()
	s.Progress.ExitStatus = s.Exit
	return &s
}

// all returns the series when it is completely read.
func (f *SeriesFolder) all() *Series {
	f.mu.Lock()
	f.Series.Reading = false
	f.mu.Unlock()
	return f.Value()
}

// changed reports whether anything is new since the last Value.
func (f *SeriesFolder) changed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dirty
}
