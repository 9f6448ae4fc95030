package sources

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	runspkg "acescope/sources/runs"
	"acescope/sources/triage"
)

var base = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func ended(i int, exit ace.Status) runspkg.Run {
	id := fmt.Sprintf("q-%04d", i)
	return runspkg.Run{WorkflowID: "ace/" + id, RunID: "run-" + id, TaskID: id, Type: ace.TaskWorkflow,
		Status: exit, Dataset: "finance",
		Start: base.Add(-time.Duration(i)*time.Minute - time.Second),
		Close: base.Add(-time.Duration(i) * time.Minute)}
}

// exampleFacts returns n closed runs, newest first: every third failed for one of two reasons, every fifth
// answered wrong.
func exampleFacts(n int) *triage.Facts {
	f := &triage.Facts{Options: triage.Options{Window: triage.DefaultWindow},
		Ends: map[string]triage.Ending{}, Reasons: map[string]triage.Reason{},
		Steps: map[string][]triage.Timed{}}
	for i := range n {
		exit, verdict := ace.Completed, ace.Correct
		switch {
		case i%3 == 0:
			exit, verdict = ace.Failed, ace.Ungraded
		case i%5 == 0:
			verdict = ace.Wrong
		}
		r := ended(i, exit)
		r.Verdict = verdict
		r.Summary = &ace.Summary{Cause: "no recipe", Skills: 3, SkillsOK: 3,
			Usage:   ace.Usage{InputTokens: int64(100 + i), CostUSD: float64(i) / 100},
			PhaseMS: ace.PhaseMS{Generator: float64(i + 1), Persist: 2}}
		if exit == ace.Failed {
			what := fmt.Sprintf("model: %d overloaded", 500+i)
			if i%2 == 0 {
				what = fmt.Sprintf("open /data/%d: no such file", i)
			}
			f.Ends[r.RunID] = triage.Ending{Failure: ace.Failure{Kind: ace.Failed, Type: "E", Message: what},
				Activity: ace.ActivityReflector, Pattern: triage.Normalize(what)}
		}
		f.Closed = append(f.Closed, r)
	}
	return f
}

func TestAnalyse(t *testing.T) {
	f := exampleFacts(60)
	f.Retrying = []triage.Retrying{{Run: runspkg.Run{RunID: "a"}, Attempt: 3, Since: base},
		{Run: runspkg.Run{RunID: "b"}, Attempt: 9, Since: base},
		{Run: runspkg.Run{RunID: "c"}, Attempt: 9, Since: base.Add(-time.Hour)}}
	got := f.Analyze(base)
	if got.Ended != 60 || got.Grouped != 28 || len(got.Groups) != 3 || !got.To.Equal(base) ||
		!got.From.Equal(base.Add(-59*time.Minute)) {
		t.Fatalf("%d ended, %d troubled, %d groups, %s to %s", got.Ended, got.Grouped, len(got.Groups),
			got.From, got.To)
	}
	g := got.Groups[0]
	if g.Count != 10 || g.Status != ace.Failed || g.Phase != ace.PhaseReflector ||
		g.Last.Run.TaskID != "q-0000" || g.First.Run.TaskID != "q-0054" ||
		g.Pattern != "open <path>: no such file" || g.Share < 0.166 || g.Share > 0.167 ||
		g.Last.Message != "open /data/0: no such file" {
		t.Errorf("%+v", g)
	}
	sum := 0.0
	for _, n := range g.Trend {
		sum += n
	}
	if len(g.Trend) != triage.TrendBuckets || sum != 10 || g.Trend[triage.TrendBuckets-1] == 0 {
		t.Errorf("trend %v", g.Trend)
	}
	if w := got.Groups[2]; w.Verdict != ace.Wrong || w.Status != ace.Completed || w.Count != 8 ||
		w.Pattern != "no recipe" {
		t.Errorf("%+v", w)
	}
	order := ""
	for _, r := range got.Retrying {
		order += r.Run.RunID
	}
	if order != "cba" {
		t.Errorf("retrying in the order %s", order)
	}
	if len(got.MostExpensive) != triage.MaxTop || got.MostExpensive[0].TaskID != "q-0059" ||
		got.Largest[19].TaskID != "q-0040" {
		t.Errorf("most expensive %s, the twentieth largest %s", got.MostExpensive[0].TaskID,
			got.Largest[19].TaskID)
	}
	if p := got.Phases; len(p) != 2 || p[0].Phase != "generator" || p[0].P50 != 30 || p[0].P95 != 57 ||
		p[0].Max != 60 || p[0].Worst.TaskID != "q-0059" || p[1].P95 != 2 {
		t.Errorf("%+v", p)
	}
}

// Step times that are not in memos come from a sample, and unknown ones are counted.
func TestPhasesSayWhatTheyAreOver(t *testing.T) {
	f := exampleFacts(10)
	for i := range f.Closed {
		f.Closed[i].Status = ace.Completed
		f.Closed[i].Summary = nil
	}
	f.Steps["run-q-0003"] = []triage.Timed{{"pack", 7}, {"generator", 5}}
	got := f.Analyze(base)
	if got.PhaseRuns != 1 || got.PhaseSampled != 1 || got.PhaseUnknown != 9 || len(got.Phases) != 2 ||
		got.Phases[1].Phase != "pack" {
		t.Errorf("%d runs, %d sampled, %d unknown: %+v", got.PhaseRuns, got.PhaseSampled, got.PhaseUnknown,
			got.Phases)
	}
}

func TestTopIsThatOfSorting(t *testing.T) {
	var runs []runspkg.Run
	for i := range 500 {
		r := ended(i, ace.Completed)
		r.Summary = &ace.Summary{Usage: ace.Usage{CostUSD: float64(rand.IntN(1000))}}
		runs = append(runs, r)
	}
	got := triage.Top(runs, func(r runspkg.Run) float64 { return triage.UsageOf(r).CostUSD })
	for i := 1; i < len(got); i++ {
		if triage.UsageOf(got[i-1]).CostUSD < triage.UsageOf(got[i]).CostUSD {
			t.Fatalf("%d is out of order", i)
		}
	}
	dearer := 0
	for _, r := range runs {
		if triage.UsageOf(r).CostUSD > triage.UsageOf(got[triage.MaxTop-1]).CostUSD {
			dearer++
		}
	}
	if len(got) != triage.MaxTop || dearer >= triage.MaxTop {
		t.Errorf("%d runs, %d are dearer than the last", len(got), dearer)
	}
}

func TestGroupsAreBounded(t *testing.T) {
	f := exampleFacts(0)
	for i := range 3 * triage.MaxGroups {
		r := ended(i, ace.Failed)
		f.Closed = append(f.Closed, r)
		f.Ends[r.RunID] = triage.Ending{Failure: ace.Failure{Message: "kind " + strings.Repeat("a", i+1)}}
	}
	if got := f.Analyze(base); len(got.Groups) != triage.MaxGroups ||
		got.GroupsDropped != 2*triage.MaxGroups {
		t.Errorf("%d groups, %d dropped", len(got.Groups), got.GroupsDropped)
	}
}

func TestGroupQuery(t *testing.T) {
	g := triage.FailureGroup{Cause: triage.Cause{Status: ace.Failed}, Count: 2,
		Runs: []runspkg.Run{{RunID: "a"}, {RunID: "b"}}}
	if got := g.Query(); got != "RunId IN ('a', 'b')" || !g.Exact() {
		t.Error(got)
	}
	g.Count = 3
	if got := g.Query(); got != "RunId IN ('a', 'b')" || g.Exact() {
		t.Errorf("%s, exact %v", got, g.Exact())
	}
}

// Later scans do not change a published result.
func TestTriageDoesNotChange(t *testing.T) {
	f := exampleFacts(12)
	f.Retrying = []triage.Retrying{{Run: runspkg.Run{RunID: "a"}, Attempt: 2}}
	before := f.Analyze(base)
	count, slowest := before.Groups[0].Count, before.Slowest[0].RunID
	f.Retrying[0].Attempt = 9
	f.Closed = append([]runspkg.Run{ended(99, ace.Failed)}, f.Closed...)
	f.Analyze(base)
	if before.Retrying[0].Attempt != 2 || before.Groups[0].Count != count ||
		before.Slowest[0].RunID != slowest {
		t.Error("the triage changed")
	}
}

func TestEndingOf(t *testing.T) {
	cause := &failurepb.Failure{Message: "boom",
		FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: "Boom"}}}
	failed := &historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionFailedEventAttributes{WorkflowExecutionFailedEventAttributes: &historypb.WorkflowExecutionFailedEventAttributes{
			Failure: &failurepb.Failure{Message: "activity error", Cause: cause,
				FailureInfo: &failurepb.Failure_ActivityFailureInfo{
					ActivityFailureInfo: &failurepb.ActivityFailureInfo{ActivityType: &commonpb.ActivityType{Name: "run_curator"}}}}}}}
	if e := triage.EndingOf(failed, runspkg.Run{}, history.WorkflowTask{}); e.Activity != "run_curator" ||
		e.Failure.Type != "Boom" ||
		e.Failure.Message != "boom" {
		t.Errorf("%+v", e)
	}
	for want, kind := range map[string]enumspb.EventType{"WorkflowTimeout": enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT,
		"Terminated": enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
		"":           enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED} {
		if e := triage.EndingOf(&historypb.HistoryEvent{EventType: kind},
			runspkg.Run{}, history.WorkflowTask{}); e.Failure.Type != want || e.Failure.Message == "" {
			t.Errorf("%s: %+v", kind, e)
		}
	}
	completed := &historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED}
	e := triage.EndingOf(completed, runspkg.Run{Status: ace.Failed}, history.WorkflowTask{})
	if !strings.Contains(e.Failure.Message, "failed") {
		t.Errorf("%+v", e)
	}
}

func TestStepTimer(t *testing.T) {
	at := func(id int64, ms int, kind enumspb.EventType) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{EventId: id, EventType: kind,
			EventTime: timestamppb.New(base.Add(time.Duration(ms) * time.Millisecond))}
	}
	schedule := at(5, 0, enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
	schedule.Attributes = &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{ActivityType: &commonpb.ActivityType{Name: ace.ActivityGenerator}}}
	begin := at(6, 10, enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED)
	begin.Attributes = &historypb.HistoryEvent_ActivityTaskStartedEventAttributes{ActivityTaskStartedEventAttributes: &historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: 5}}
	end := at(7, 35, enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED)
	end.Attributes = &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: 5}}
	var s triage.StepTimer
	for _, e := range []*historypb.HistoryEvent{end, schedule, begin, end} {
		s.Add(e)
	}
	if len(s.Done) != 1 || s.Done[0] != (triage.Timed{"generator", 25}) {
		t.Errorf("%+v", s.Done)
	}
}

func BenchmarkAnalyse(b *testing.B) {
	f := exampleFacts(triage.DefaultWindow)
	for b.Loop() {
		f.Analyze(base)
	}
}
