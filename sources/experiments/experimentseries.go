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

// Bounds of a series: how many tasks it keeps (about 100 bytes each), the rest is
// counted in [Series.Dropped]; and how many bytes of an answer.
const (
	MaxSeriesTasks = 100_000
	maxAnswer      = 80
)

// Series is an experiment with its tasks in the order in which they ended, through all
// the runs that it continued as. Progress is as [FollowExperiment] gives it.
type Series struct {
	WorkflowID string
	RunID      string              // the newest
	Input      ace.ExperimentInput // without its progress
	Progress   ace.ExperimentProgress
	Failure    *ace.Failure
	Exit       ace.ExitStatus
	Start      time.Time
	Close      time.Time // zero while it runs
	Tasks      TaskColumns
	Reading    bool   // it has closed, and this is not yet all of it
	Dropped    int    // tasks that ended after MaxSeriesTasks
	Err        string // why not all of it could be read, "" if it was
}

// Verdict says how a task was answered.
type Verdict int8

// Verdicts. A task without a label and one that was cancelled are not judged; one that
// failed is wrong, as in [ace.EpochResult.Accuracy].
const (
	NotJudged Verdict = iota
	AnsweredWrong
	AnsweredRight
)

// TaskColumns holds tasks column by column, so that many take little memory. All columns
// are equally long.
type TaskColumns struct {
	TaskID   []string
	Answer   []string // its first 80 bytes
	Prompt   []uint64 // equal for equal prompts, 0 where unknown
	Epoch    []int32  // 1-based
	Index    []int32  // 0-based in the data set, -1 where unknown
	Exit     []ace.ExitStatus
	Verdict  []Verdict
	Bullets  []int32 // in the playbook after it, 0 where unknown
	Accepted []int32 // operations
	Rejected []int32
	Input    []int32 // tokens
	Output   []int32
	Cost     []float64 // US dollars
	At       []int64   // when it ended, milliseconds after the experiment's start
	Took     []int32   // milliseconds
}

// Len is how many tasks there are.
func (t *TaskColumns) Len() int { return len(t.TaskID) }

// SeriesTask is one task of a series, out of its columns.
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

// Row is the i-th task that ended.
func (t *TaskColumns) Row(i int) SeriesTask {
	return SeriesTask{TaskID: t.TaskID[i], Answer: t.Answer[i], Epoch: int(t.Epoch[i]), Index: int(t.Index[i]), Exit: t.Exit[i],
		Verdict: t.Verdict[i], Bullets: int(t.Bullets[i]), Accepted: int(t.Accepted[i]), Rejected: int(t.Rejected[i]),
		Usage: ace.Usage{InputTokens: int64(t.Input[i]), OutputTokens: int64(t.Output[i]), CostUSD: t.Cost[i]},
		At:    time.Duration(t.At[i]) * time.Millisecond, Took: time.Duration(t.Took[i]) * time.Millisecond}
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
	t.Took = append(t.Took, narrow(r.Took.Milliseconds()))
}

func narrow[T int | int64](n T) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

// Took is how long the experiment took, or has taken at now.
func (s *Series) Took(now time.Time) time.Duration {
	switch {
	case s.Start.IsZero():
		return 0
	case s.Close.IsZero():
		return max(now.Sub(s.Start), 0)
	}
	return max(s.Close.Sub(s.Start), 0)
}

// Name is the experiment's id.
func (s *Series) Name() string { return strings.TrimPrefix(s.WorkflowID, ace.ExperimentIDPrefix) }

// ReadSeries reads the series of an experiment as far as it has come.
func ReadSeries(ctx context.Context, c client.Client, workflowID string) (*Series, error) {
	runs, err := Chain(ctx, c, workflowID)
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

// RunChain is the first and the newest run of an experiment.
type RunChain struct {
	First, Newest string
	Open          bool
}

func Chain(ctx context.Context, c client.Client, workflowID string) (RunChain, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	r, err := c.DescribeWorkflowExecution(ctx, workflowID, "")
	if err != nil {
		return RunChain{}, err
	}
	info := r.GetWorkflowExecutionInfo()
	runs := RunChain{info.GetFirstRunId(), info.GetExecution().GetRunId(), info.GetCloseTime() == nil}
	if runs.First == "" {
		runs.First = runs.Newest
	}
	return runs, nil
}

// SeriesFolder folds an experiment's histories, one run after the other, into a series.
// It may be read while another goroutine feeds it.
type SeriesFolder struct {
	mu     sync.Mutex
	Series Series
	run    *ExperimentFolder
	open   map[int64]taskStart // of the run, by initiated event id
	Event  *historypb.HistoryEvent
	dirty  bool
}

// taskStart is what the start of a child tells of its task.
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

// begin makes ready for the next run's history.
func (f *SeriesFolder) begin() {
	f.run = NewExperimentFolder(f.Ended)
	f.open = map[int64]taskStart{}
}

// Read folds the chain from its first run, whose histories events gives. Where the
// oldest were deleted it begins with the newest, and says so.
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
	if cluster.Closing(e.GetEventType()) {
		f.Series.Close = at
	}
	f.run.Apply(e)
	return f.run.Foreign
}

// startOf reads the child's input. The prompt itself is not kept.
func startOf(a *historypb.StartChildWorkflowExecutionInitiatedEventAttributes) taskStart {
	var t taskStart
	err := json.Unmarshal(history.PayloadJSON(cluster.First(a.GetInput().GetPayloads())), &t)
	if err != nil || t.Epoch < 1 { // none of ours: an index of 0 says nothing then
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

// Ended takes a task that the run's folder says has ended with the event under way.
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

// clip is the beginning of an answer, in memory of its own.
func clip(answer string) string {
	if len(answer) <= maxAnswer {
		return answer
	}
	return strings.Clone(strings.ToValidUTF8(answer[:maxAnswer], "")) + "…"
}

// Value is the series as it is now. Columns only ever grow, so that what is given shares
// them.
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

// Whole is the series when all of it was read.
func (f *SeriesFolder) Whole() *Series {
	f.mu.Lock()
	f.Series.Reading = false
	f.mu.Unlock()
	return f.Value()
}

// Changed tells whether there is anything since value was called last.
func (f *SeriesFolder) Changed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dirty
}
