package sources

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/ace"
	"acescope/engine/learning/stats"
	"acescope/sources/experiments"
)

var testStart = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// experimentHistory builds the history of an experiment.
type experimentHistory struct {
	t      *testing.T
	id     int64
	at     time.Time
	events []*historypb.HistoryEvent
}

func (h *experimentHistory) add(kind enumspb.EventType, set func(*historypb.HistoryEvent)) int64 {
	h.id++
	h.at = h.at.Add(time.Second)
	e := &historypb.HistoryEvent{EventId: h.id, EventType: kind, EventTime: timestamppb.New(h.at)}
	set(e)
	h.events = append(h.events, e)
	return h.id
}

func (h *experimentHistory) payload(v any) *commonpb.Payloads {
	p, err := converter.GetDefaultDataConverter().ToPayloads(v)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

func (h *experimentHistory) started(in ace.ExperimentInput) {
	h.add(enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: h.payload(in)}}
	})
}

// task starts a child and ends it with the result, or with a failure if that is nil.
func (h *experimentHistory) task(in ace.TaskInput, r *ace.TaskResult) {
	id := h.add(enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_StartChildWorkflowExecutionInitiatedEventAttributes{StartChildWorkflowExecutionInitiatedEventAttributes: &historypb.StartChildWorkflowExecutionInitiatedEventAttributes{
			WorkflowId: ace.WorkflowID(in.TaskID), Input: h.payload(in)}}
	})
	h.add(enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_ChildWorkflowExecutionStartedEventAttributes{ChildWorkflowExecutionStartedEventAttributes: &historypb.ChildWorkflowExecutionStartedEventAttributes{
			InitiatedEventId: id, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: ace.WorkflowID(
				in.TaskID), RunId: "r"}}}
	})
	if r == nil {
		h.add(enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT, func(e *historypb.HistoryEvent) {
			e.Attributes = &historypb.HistoryEvent_ChildWorkflowExecutionTimedOutEventAttributes{ChildWorkflowExecutionTimedOutEventAttributes: &historypb.ChildWorkflowExecutionTimedOutEventAttributes{InitiatedEventId: id}}
		})
		return
	}
	h.add(enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_ChildWorkflowExecutionCompletedEventAttributes{ChildWorkflowExecutionCompletedEventAttributes: &historypb.ChildWorkflowExecutionCompletedEventAttributes{
			InitiatedEventId: id, Result: h.payload(r)}}
	})
}

func (h *experimentHistory) continued(runID string) {
	h.add(enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{WorkflowExecutionContinuedAsNewEventAttributes: &historypb.WorkflowExecutionContinuedAsNewEventAttributes{NewExecutionRunId: runID}}
	})
}

func answered(id string, right bool) *ace.TaskResult {
	return &ace.TaskResult{TaskID: id, ExitStatus: ace.ExitOf(ace.Completed, ace.VerdictOf(true, &right)),
		Answer: "1", Correct: &right, Bullets: 3,
		Summary: ace.Summary{Added: 2, Rejected: 1, Usage: ace.Usage{InputTokens: 10, OutputTokens: 5,
			CostUSD: 0.5}}}
}

// twoRuns is an experiment of four tasks that continued as new after two.
func twoRuns(t *testing.T) map[string][]*historypb.HistoryEvent {
	in := ace.ExperimentInput{ExperimentID: "x", DatasetID: "d", Tasks: 4, Epochs: 1,
		Dataset: ace.Ref{SHA256: "s"}}
	a := &experimentHistory{t: t, at: testStart}
	a.started(in)
	a.task(ace.TaskInput{TaskID: "x-e1-0002", Prompt: "two", Epoch: 1, Index: 1}, answered("x-e1-0002", true))
	a.task(ace.TaskInput{TaskID: "x-e1-0001", Prompt: "one", Epoch: 1, Index: 0}, nil)
	a.continued("second")
	f := experiments.NewFolder(nil)
	for _, e := range a.events {
		f.Apply(e)
	}
	in.Progress = &f.State.Progress
	b := &experimentHistory{t: t, at: a.at}
	b.started(in)
	b.task(ace.TaskInput{TaskID: "x-e1-0003", Prompt: "three", Epoch: 1, Index: 2},
		answered("x-e1-0003", false))
	b.task(ace.TaskInput{TaskID: "x-e1-0004", Prompt: "one", Epoch: 1, Index: 3}, answered("x-e1-0004", true))
	b.add(enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_WorkflowExecutionCompletedEventAttributes{WorkflowExecutionCompletedEventAttributes: &historypb.WorkflowExecutionCompletedEventAttributes{}}
	})
	return map[string][]*historypb.HistoryEvent{"first": a.events, "second": b.events}
}

func folded(t *testing.T) *experiments.Series {
	runs := twoRuns(t)
	f := experiments.NewSeriesFolder("ace-experiment/x", "first")
	err := f.Read(t.Context(), "first", func(runID string, take func(*historypb.HistoryEvent) error) error {
		for _, e := range runs[runID] {
			if err := take(e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f.Value()
}

func TestSeriesGoesThroughTheChain(t *testing.T) {
	s := folded(t)
	var got []string
	for _, task := range s.Tasks {
		got = append(got, task.TaskID)
	}
	if want := []string{"x-e1-0002", "x-e1-0001", "x-e1-0003", "x-e1-0004"}; !slices.Equal(got, want) {
		t.Fatalf("tasks %v, want %v", got, want)
	}
	if s.RunID != "second" || s.Progress.Runs != 2 || s.Status != ace.Completed || s.Name() != "x" {
		t.Errorf("run %s, %d runs, %s, %s", s.RunID, s.Progress.Runs, s.Status, s.Name())
	}
	if s.Start != testStart.Add(time.Second) || s.Close.IsZero() {
		t.Errorf("from %v to %v", s.Start, s.Close)
	}
	if got := s.Tasks[1]; got.Status != ace.TimedOut || got.Verdict != "" || !got.Graded() ||
		got.Index != 0 || got.Epoch != 1 || got.Duration != 1000 {
		t.Errorf("the task that timed out is %+v", got)
	}
	if got := s.Tasks[0]; got.Accepted != 2 || got.Rejected != 1 || got.Cost != 0.5 || got.At != 3000 {
		t.Errorf("the first task is %+v", got)
	}
	if s.Tasks[1].Prompt != s.Tasks[3].Prompt || s.Tasks[0].Prompt == s.Tasks[1].Prompt {
		t.Error("equal prompts must have equal keys, others not")
	}
	if got, want := s.Progress.Epochs[0].Accuracy, s.Totals().Accuracy; got != want {
		t.Errorf("the fold says accuracy %v, the tasks %v", got, want)
	}
}

// A published value does not change when more events are folded.
func TestSeriesValueStays(t *testing.T) {
	f := experiments.NewSeriesFolder("ace-experiment/x", "first")
	events := twoRuns(t)["first"]
	for _, e := range events[:4] {
		if err := f.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	before := f.Value()
	for _, e := range events[4:] {
		if err := f.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	if len(before.Tasks) != 1 || len(f.Value().Tasks) != 2 {
		t.Errorf("%d tasks, then %d", len(before.Tasks), len(f.Value().Tasks))
	}
}

func TestCurves(t *testing.T) {
	s := madeSeries("a", "data", "RWRR-")
	for _, c := range []struct {
		window int
		want   []float64
	}{{0, []float64{1, 0.5, 2. / 3, 0.75, 0.75}}, {2, []float64{1, 0.5, 0.5, 1, 1}},
		{1, []float64{1, 0, 1, 1, math.NaN()}}} {
		if got := s.Accuracy(c.window); !same(got, c.want) {
			t.Errorf("accuracy over %d is %v, want %v", c.window, got, c.want)
		}
	}
	if got := s.Curves(experiments.MetricCost, 0, false)[0].Y; !same(got,
		[]float64{1, 2, 1.5, 4. / 3, 5. / 3}) {
		t.Errorf("cost per right answer is %v", got)
	}
	if got := madeSeries("b", "data", "WWR").Curves(experiments.MetricTokens, 0, true); !same(got[0].Y,
		[]float64{math.NaN(), math.NaN(), 45}) || !same(got[0].X, []float64{1, 2, 3}) {
		t.Errorf("tokens per right answer are %v", got)
	}
	ops := s.Curves(experiments.MetricOperations, 0, false)
	if len(ops) != 2 || !same(ops[0].Y, []float64{2, 4, 6, 8, 10}) ||
		!same(ops[1].Y, []float64{1, 2, 3, 4, 5}) {
		t.Errorf("operations are %v", ops)
	}
	if got := s.Curves(experiments.MetricPlaybook, 0, false)[0].Y; !same(got, []float64{1, 2, 3, 4, 5}) {
		t.Errorf("bullets are %v", got)
	}
}

func same(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool {
		return math.Abs(x-y) < 1e-9 || math.IsNaN(x) && math.IsNaN(y)
	})
}

// madeSeries returns a series of tasks with correct (R), wrong (W) or no (-) verdicts, in the order of the
// data set.
func madeSeries(name, data, verdicts string) *experiments.Series {
	s := &experiments.Series{WorkflowID: ace.ExperimentWorkflowID(name), Start: testStart,
		Status: ace.Completed,
		Input:  ace.ExperimentInput{DatasetID: data, Dataset: ace.Ref{SHA256: data}}}
	for i, r := range verdicts {
		v := map[rune]ace.Verdict{'R': ace.Correct, 'W': ace.Wrong, '-': ace.Unlabeled}[r]
		s.Tasks = append(s.Tasks, experiments.Task{
			TaskID: fmt.Sprintf("%s-e1-%04d", name, i+1), Epoch: 1, Index: int32(i), Verdict: v,
			Bullets:  int32(i + 1),
			Accepted: 2, Rejected: 1, Input: 10, Output: 5, Cost: 1, At: int64(i+1) * 1000,
			Prompt: uint64(i + 1),
		})
	}
	return s
}

func TestCompareTheSameData(t *testing.T) {
	c := experiments.Compare(madeSeries("a", "data", "RWWR-R"), madeSeries("b", "data", "RRWWR"))
	if !c.SameData || c.AlignedBy != experiments.AlignedByIndex || len(c.Pairs) != 5 || c.OnlyA != 1 ||
		c.OnlyB != 0 {
		t.Fatalf("%+v", c)
	}
	if a, b, of := c.Aligned(); a != 2 || b != 2 || of != 4 {
		t.Errorf("%d and %d of %d aligned tasks are correct", a, b, of)
	}
	for i, want := range []experiments.Flip{experiments.FlipBothCorrect, experiments.FlipFixed,
		experiments.FlipBothWrong, experiments.FlipBroken, experiments.FlipUngraded} {
		if c.Pairs[i].Flip != want || c.Counts[want] != 1 {
			t.Errorf("task %d is %s, want %s", i, c.Pairs[i].Flip, want)
		}
	}
}

// Different data sets are aligned by prompts; equal prompts in their order.
func TestCompareOtherData(t *testing.T) {
	a, b := madeSeries("a", "data", "RWWR"), madeSeries("b", "other", "WRRR")
	for i := range 4 {
		a.Tasks[i].Prompt, b.Tasks[i].Prompt = []uint64{7, 7, 8, 0}[i], []uint64{8, 7, 7, 9}[i]
	}
	c := experiments.Compare(a, b)
	if c.SameData || c.AlignedBy != experiments.AlignedByPrompt || c.OnlyA != 1 || c.OnlyB != 1 {
		t.Fatalf("%+v", c)
	}
	for i, want := range []experiments.Pair{
		{experiments.FlipBothCorrect, 1, &a.Tasks[0], &b.Tasks[1]},
		{experiments.FlipFixed, 1, &a.Tasks[1], &b.Tasks[2]},
		{experiments.FlipBothWrong, 1, &a.Tasks[2], &b.Tasks[0]},
	} {
		if c.Pairs[i] != want {
			t.Errorf("pair %d is %+v, want %+v", i, c.Pairs[i], want)
		}
	}
}

// One against three epochs: the accuracy over all tasks is neither first nor a difference, because the later
// epochs repeat learned tasks.
func TestCompareUnlike(t *testing.T) {
	a, b := madeSeries("a", "data", "RWWR"), madeSeries("b", "data", "RWWRRRWRRRRR")
	a.Input.Epochs, b.Input.Epochs = 1, 3
	for i := range b.Tasks {
		b.Tasks[i].Epoch, b.Tasks[i].Index = int32(i/4+1), int32(i%4)
	}
	c := experiments.Compare(a, b)
	if len(c.Unlike) != 1 || c.Unlike[0] != "epochs 1 and 3" || c.Likeness() == "" {
		t.Errorf("%q", c.Unlike)
	}
	list := c.Metrics(testStart)
	if m := list[0]; m.Name != "accuracy, aligned" || m.A != 0.5 || m.B != 0.5 || m.Unlike ||
		!(m.RangeA[0] < 0.5 && m.RangeB[1] > 0.5) {
		t.Errorf("%+v", m)
	}
	if got := c.Headline(); got != "tasks of epoch 1: 0 fixed, 0 broken of 4: not distinguishable (p 1)" {
		t.Errorf("headline %q", got)
	}
	if m := list[1]; m.Name != "accuracy, all tasks" || !m.Unlike {
		t.Errorf("%+v", m)
	}
	if c := experiments.Compare(a, a); len(c.Unlike) != 0 || c.Likeness() != "" ||
		c.Metrics(testStart)[0].Name != "accuracy" {
		t.Errorf("%q", c.Unlike)
	}
}

// The same items of several epochs count once: the last epoch that both have is tested.
func TestPairedTasksOfOneEpoch(t *testing.T) {
	a, b := madeSeries("a", "data", "WWWWWWWWWWWWWW"), madeSeries("b", "data", "RRRRRRRWRRRRRR")
	for _, s := range []*experiments.Series{a, b} {
		for i := range s.Tasks {
			s.Tasks[i].Epoch, s.Tasks[i].Index = int32(i/7+1), int32(i%7)
		}
	}
	c := experiments.Compare(a, b)
	if got := c.Headline(); got != "tasks of epoch 2: 6 fixed, 0 broken of 7: B is more accurate (p 0.031)" ||
		len(c.Paired) != 1 {
		t.Errorf("headline %q of %+v", got, c.Paired)
	}
	if got := experiments.Compare(b,
		a).Headline(); got != "tasks of epoch 2: 0 fixed, 6 broken of 7: A is more accurate (p 0.031)" {
		t.Errorf("headline of the opposite %q", got)
	}
}

// Without common items nothing is compared.
func TestNothingComparable(t *testing.T) {
	a, b := madeSeries("a", "data", "RRRR"), madeSeries("b", "other", "WWWW")
	for i := range b.Tasks {
		b.Tasks[i].Prompt += 100
	}
	c := experiments.Compare(a, b)
	if got := c.Headline(); got != "nothing is comparable: no task has a verdict in both, and there is no evaluation of both on the same data set" {
		t.Errorf("headline %q", got)
	}
	for _, m := range c.Metrics(testStart) {
		if m.Unit == "rate" && !m.Unlike && !math.IsNaN(m.A-m.B) {
			t.Errorf("%+v has a difference", m)
		}
	}
}

// Settings that differ are named; the tasks remain comparable.
func TestCompareSettings(t *testing.T) {
	a, b := madeSeries("a", "data", "R"), madeSeries("b", "data", "R")
	if c := experiments.Compare(a, b); len(c.Settings) != 0 || c.Differing() != "" {
		t.Errorf("%q", c.Settings)
	}
	a.Input.Model, b.Input.Model = "small", "large"
	a.Input.Provider, b.Input.Provider = "openai", "anthropic"
	b.Input.Steps = map[string]string{"curator": "openai", "reflector": "builtin"}
	b.Input.SkillsConfig.AllowedTools = []string{"look_up", "inspect"}
	b.Input.Parallel, b.Progress.Before = 4, "0123456789abcdef"
	want := "settings: model small and large, provider openai and anthropic, provider of the reflector openai and builtin, " +
		"first playbook empty and 0123456789ab, tools all and inspect+look_up, parallel 1 and 4"
	c := experiments.Compare(a, b)
	if c.Differing() != want || len(c.Unlike) != 0 {
		t.Errorf("%q, unlike %q", c.Differing(), c.Unlike)
	}
	a.Input.Review, a.Input.MaxTokens, b.Input.MaxTokens = &ace.Review{}, 3000, 500
	want += ", only A: operations wait for review (reject after 24h), only A: at most 3,000 tokens, " +
		"only B: at most 500 tokens"
	if got := experiments.Compare(a, b).Differing(); got != want {
		t.Errorf("%q", got)
	}
	a.Note = "only tasks"
	if got := experiments.Compare(a, b).Differing(); got != "settings: model small and large" {
		t.Errorf("%q", got)
	}
}

// repeatsOf returns a group of completed repeats.
func repeatsOf(name string, verdicts ...string) *experiments.Group {
	g := &experiments.Group{Name: name, Planned: len(verdicts)}
	for i, v := range verdicts {
		s := madeSeries(ace.RepeatID(name, i+1), "data", v)
		s.Status = ace.Completed
		g.Repeats = append(g.Repeats, s)
	}
	return g
}

func TestBands(t *testing.T) {
	g := repeatsOf("g", "RRWW", "RRRW", "RWWW")
	open := madeSeries("running", "data", "WWWW")
	open.Status = ace.Running
	g.Repeats = append(g.Repeats, open)
	b := g.Bands()[0]
	if b.Name != "accuracy" || !same(b.Values, []float64{0.5, 0.75, 0.25}) || b.Mean != 0.5 ||
		b.Lowest != 0.25 || b.Highest != 0.75 ||
		b.Low == nil || *b.Low != 0 || *b.High != 1 { // 0.5 plus and minus 0.62, limited to a share
		t.Errorf("%+v", b)
	}
	if b := repeatsOf("h", "RW", "WR").Bands()[0]; b.Low != nil || b.Mean != 0.5 {
		t.Errorf("repeats that do not vary: %+v", b)
	}
	if list := (&experiments.Group{Repeats: []*experiments.Series{open}}).Bands(); len(list) != 0 {
		t.Errorf("nothing is closed: %+v", list)
	}
}

func TestCompareGroups(t *testing.T) {
	low := repeatsOf("low", "RWWWWWWW", "WWWWWWWW", "WRWWWWWW")
	for _, c := range []struct {
		a, b     *experiments.Group
		headline string
	}{
		{low, repeatsOf("high", "RRRRRRRW", "RRRRRRRR", "RRRRRRRR"),
			"accuracy: mean 8.3% over 3 repeats and 95.8% over 3 repeats: B is more accurate (difference +71.1 to +103.9 pp)"},
		{repeatsOf("high", "RRRRRRRW", "RRRRRRRR", "RRRRRRRR"), low,
			"accuracy: mean 95.8% over 3 repeats and 8.3% over 3 repeats: A is more accurate (difference -103.9 to -71.1 pp)"},
		{low, repeatsOf("one", "RRRRRRRR"),
			"accuracy: mean 8.3% over 3 repeats and 100.0% over 1 repeat: too few repeats for a test"},
		{repeatsOf("p", "RW", "WR"), repeatsOf("q", "RR", "RR"),
			"accuracy: mean 50.0% over 2 repeats and 100.0% over 2 repeats: the repeats do not vary; compare p-r1 and q-r1 item by item"},
		{low, repeatsOf("longer", "RRRRRRRRR"),
			"nothing is comparable: the groups have no accuracy on the same tasks"},
	} {
		if got := experiments.CompareGroups(c.a, c.b).Headline(); got != c.headline {
			t.Errorf("%s and %s: %q, want %q", c.a.Name, c.b.Name, got, c.headline)
		}
	}
}

func TestBandChart(t *testing.T) {
	c := experiments.BandChart(repeatsOf("g", "RRWW", "WRR").Repeats, experiments.MetricAccuracy, 1)
	if len(c.Curves) != 3 || !same(c.Curves[0].Y, []float64{0.5, 1, 0.5}) ||
		!same(c.Curves[1].Y, []float64{0, 1, 0}) ||
		!same(c.Curves[2].Y, []float64{1, 1, 1}) {
		t.Errorf("%+v", c.Curves)
	}
}

// A shuffled data set has the same tasks: aligned by prompt, and not unlike.
func TestCompareShuffled(t *testing.T) {
	a, b := madeSeries("a", "data", "RRWW"), madeSeries("b", "shuffled", "RRWW")
	b.Input.Shuffle = &ace.Shuffle{Seed: 3, Dataset: a.Input.Dataset}
	slices.Reverse(b.Tasks)
	for i := range b.Tasks {
		b.Tasks[i].Index = int32(i)
	}
	c := experiments.Compare(a, b)
	if !c.SameData || c.AlignedBy != experiments.AlignedByPrompt || len(c.Pairs) != 4 || len(c.Unlike) != 0 ||
		c.Counts[experiments.FlipBothCorrect] != 2 ||
		c.Differing() != "settings: task order unshuffled and shuffled with seed 3" {
		t.Errorf("%+v", c)
	}
}

func TestLearned(t *testing.T) {
	p := &ace.ExperimentProgress{Eval: []ace.EvalResult{{Tasks: 9, Unlabeled: 1, Correct: 1,
		Wrong: []int{0, 1, 2, 3, 4, 5, 6}}}}
	if l := experiments.Learned(p); l != nil {
		t.Errorf("one evaluation: %+v", l)
	}
	p.Eval = append(p.Eval, ace.EvalResult{Epoch: 1}, ace.EvalResult{Epoch: 2, Tasks: 9, Unlabeled: 1,
		Correct: 7, Wrong: []int{6}})
	if l := experiments.Learned(p); l == nil ||
		l.Change() != "6 fixed, 0 broken of 8: more accurate (p 0.031)" ||
		l.Where() != "last evaluations, after epochs 0 and 2" {
		t.Errorf("%+v", l)
	}
	p.Eval[2].Wrong = nil // cut
	if l := experiments.Learned(p); l == nil || !l.Partial || l.P != nil || l.Fixed != 0 ||
		!l.Distinguishable ||
		l.Change() != "1 and 7 of 8 correct: more accurate (difference +26.1 to +89.5 pp)" {
		t.Errorf("%+v: %s", l, l.Change())
	}
}

func TestPText(t *testing.T) {
	for p, want := range map[float64]string{1: "p 1", 0.6875: "p 0.69", 0.0312: "p 0.031",
		0.00012: "p 0.00012", 1e-9: "p < 0.0001"} {
		if got := experiments.PText(p); got != want {
			t.Errorf("%v: %q, want %q", p, got, want)
		}
	}
}

func TestAccuracyIntervals(t *testing.T) {
	s := madeSeries("a", "data", "RW-R")
	for window, want := range map[int]stats.Interval{0: stats.Wilson(2, 3), 2: stats.Wilson(1, 1)} {
		if got := s.AccuracyIntervals(window)[3]; got != want {
			t.Errorf("over %d: %v, want %v", window, got, want)
		}
	}
	if correct, graded := s.Recent(3); correct != 1 || graded != 2 {
		t.Errorf("%d correct of %d", correct, graded)
	}
	if i := madeSeries("b", "data", "RRRR").CostInterval(); i != (stats.Interval{Low: 1, High: 1}) {
		t.Errorf("equal costs: %v", i)
	}
}

func TestCompareEvaluations(t *testing.T) {
	a, b := madeSeries("a", "data", "R"), madeSeries("b", "data", "R")
	if experiments.Compare(a, b).Eval != nil {
		t.Error("without an evaluation there is nothing to compare")
	}
	a.Input.Eval, b.Input.Eval = &ace.Ref{SHA256: "e"}, &ace.Ref{SHA256: "e"}
	a.Progress.Eval = []ace.EvalResult{{Tasks: 5}, {Tasks: 5, Correct: 2, Wrong: []int{0, 2, 4}}}
	b.Progress.Eval = []ace.EvalResult{{Tasks: 5, Correct: 3, Wrong: []int{1, 2}}}
	e := experiments.Compare(a, b).Eval
	if e == nil || !slices.Equal(e.Fixed, []int{0, 4}) || !slices.Equal(e.Broken, []int{1}) ||
		e.BothWrong != 1 || e.Partial {
		t.Errorf("%+v", e)
	}
	b.Input.Eval = &ace.Ref{SHA256: "another"}
	if experiments.Compare(a, b).Eval != nil {
		t.Error("other sets cannot be compared")
	}
}

func TestSeriesIsBounded(t *testing.T) {
	f := experiments.NewSeriesFolder("ace-experiment/x", "r")
	f.Series.Tasks = make([]experiments.Task, experiments.MaxSeriesTasks)
	f.Ended(ace.ExperimentInput{}, experiments.Finished{})
	if len(f.Series.Tasks) != experiments.MaxSeriesTasks || f.Series.Dropped != 1 {
		t.Errorf("%d tasks, %d dropped", len(f.Series.Tasks), f.Series.Dropped)
	}
}

// A test compares only experiments with final results: otherwise it says which result is not final.
func TestNoVerdict(t *testing.T) {
	made := func(name string) *experiments.Series {
		s := madeSeries(name, "data", "RRRRRRRR")
		s.Input.Eval = &ace.Ref{SHA256: "e"}
		s.Progress.TotalTasks, s.Progress.TotalEpochs = 8, 1
		s.Progress.Epochs = []ace.EpochResult{{Epoch: 1, Tasks: 8}}
		s.Progress.Eval = []ace.EvalResult{{Tasks: 9, Wrong: []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
			{Epoch: 1, Tasks: 9, Correct: 9}}
		return s
	}
	a := made("a")
	for want, change := range map[string]func(*experiments.Series){
		"B is running (3 of 8 tasks)":     func(s *experiments.Series) { s.Status = ace.Running },
		"B failed (3 of 8 tasks)":         func(s *experiments.Series) { s.Status = ace.Failed },
		"B timed out (3 of 8 tasks)":      func(s *experiments.Series) { s.Status = ace.TimedOut },
		"B was canceled (3 of 8 tasks)":   func(s *experiments.Series) { s.Status = ace.Canceled },
		"B was terminated (3 of 8 tasks)": func(s *experiments.Series) { s.Status = ace.Terminated },
		"B was stopped by its budget (3 of 8 tasks)": func(s *experiments.Series) {
			s.Progress.Stopped = "budget: $1 of $1 spent"
		},
	} {
		b := made("b")
		b.Tasks, b.Progress.Epochs[0].Tasks, b.Progress.Eval = b.Tasks[:3], 3, b.Progress.Eval[:1]
		change(b)
		c := experiments.Compare(a, b)
		if !slices.Equal(c.NoVerdict, []string{want}) || c.Headline() != "no verdict: "+want ||
			len(c.Paired) != 0 || c.Eval != nil || len(c.Pairs) != 3 {
			t.Errorf("%q, want %q; %+v, %+v", c.Headline(), want, c.Paired, c.Eval)
		}
		for _, m := range c.Metrics(testStart) {
			if m.Unit == "rate" && !m.Unlike {
				t.Errorf("%s: %s has a difference", want, m.Name)
			}
		}
		one := func(s *experiments.Series) *experiments.Group {
			return &experiments.Group{Planned: 2, Repeats: []*experiments.Series{made("r"), s}}
		}
		g := experiments.CompareGroups(one(b), one(a))
		if g.Headline() != "no verdict: A has finished 1 of 2 repeats" || len(g.Differences) != 0 {
			t.Errorf("%s: headline %q of groups, %+v", want, g.Headline(), g.Differences)
		}
	}
	b := made("b")
	b.Progress.Stopped = "no better accuracy in 2 evaluations"
	if c := experiments.Compare(a, b); len(c.NoVerdict) != 0 || len(c.Paired) != 2 || c.Eval == nil {
		t.Errorf("early stopping is a final result: %+v", c)
	}
	b.Input.Grader = ace.GraderTags
	if c := experiments.Compare(a, b); c.Headline() != "no verdict: the graders differ (exact and tags)" {
		t.Errorf("%q", c.Headline())
	}
	b.Input.Grader = "exact" // the default
	if c := experiments.Compare(a, b); len(c.NoVerdict) != 0 {
		t.Errorf("%q", c.NoVerdict)
	}
}

// Evaluations are compared by the items that failed in neither.
func TestFailedItems(t *testing.T) {
	a := ace.EvalResult{Tasks: 9, Correct: 1, Wrong: []int{2, 3, 4, 5, 6, 7},
		FailedItems: ace.FailedItems{Failed: 2, List: []int{0, 1}}}
	b := ace.EvalResult{Tasks: 9, Correct: 7, Wrong: []int{0}, FailedItems: ace.FailedItems{Failed: 1,
		List: []int{7}}}
	l := experiments.Between(a, b)
	if l == nil || l.Pairs != 6 || l.CorrectA != 1 || l.CorrectB != 6 || l.Failed != 3 ||
		l.Change() != "5 fixed, 0 broken of 6 (3 failed): not distinguishable (p 0.062)" {
		t.Errorf("%s: %+v", l.Change(), l)
	}
	if l := experiments.Between(a, a); l == nil || l.Pairs != 7 || l.Failed != 2 {
		t.Errorf("%+v", l)
	}
	b.List = nil // cut
	if l := experiments.Between(a, b); l != nil {
		t.Errorf("it is not known which items failed: %+v", l)
	}
	b.List, b.Unlabeled = []int{7}, 1
	if l := experiments.Between(b, a); l != nil {
		t.Errorf("it is not known whether the failed items have labels: %+v", l)
	}
}
