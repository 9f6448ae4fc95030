package telemetry

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/historyfile"
	"acescope/sources/historytest"
	"acescope/sources/runs"
)

const recordedHistories = "../../engine/workflows/testdata/"

// recordedEvents reads a recorded history.
func recordedEvents(t testing.TB, file string) []*historypb.HistoryEvent {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := historyfile.Read(f)
	if err != nil || len(list) == 0 {
		t.Fatal(err)
	}
	return list[0].Events
}

// rowOf returns the row of a list for a closed run, as far as its history tells.
func rowOf(events []*historypb.HistoryEvent) runs.Run {
	o := history.OriginOf(events)
	last := events[len(events)-1]
	r := runs.Run{WorkflowID: o.WorkflowID, RunID: o.RunID, Start: events[0].GetEventTime().AsTime(),
		Close: last.GetEventTime().AsTime(),
		Type:  events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()}
	if status, ok := history.CloseStatus(last.GetEventType()); ok {
		r.Status = history.StatusOf(status)
	}
	return r
}

func recordOf(t testing.TB, file string) *record {
	t.Helper()
	events := recordedEvents(t, file)
	return newRecord(rowOf(events), "ace-dev", events)
}

// eachRecorded calls fn for every recorded history.
func eachRecorded(t *testing.T, fn func(t *testing.T, c *record, events []*historypb.HistoryEvent)) {
	files, err := filepath.Glob(recordedHistories + "*.json")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d recorded histories, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			events := recordedEvents(t, file)
			fn(t, newRecord(rowOf(events), "ace-dev", events), events)
		})
	}
}

func usageOf(c *record) (u ace.Usage) {
	for _, call := range c.calls {
		u = u.Add(call.usage)
	}
	return u
}

// TestUsageOfTask compares the calls of a task with the fold's sum.
func TestUsageOfTask(t *testing.T) {
	counted := 0
	eachRecorded(t, func(t *testing.T, c *record, _ []*historypb.HistoryEvent) {
		if c.Type != ace.TaskWorkflow || c.state == nil {
			return
		}
		if got, want := usageOf(c), c.state.Usage; got != want {
			t.Errorf("usage %+v, the fold has %+v", got, want)
		}
		if len(c.calls) > 0 {
			counted++
		}
	})
	if counted < 5 {
		t.Errorf("only %d tasks used a model", counted)
	}
}

// TestUsageOfTurns counts each turn of a session once.
func TestUsageOfTurns(t *testing.T) {
	c := recordOf(t, recordedHistories+"session-talk.json")
	if len(c.calls) == 0 {
		t.Fatal("no turns")
	}
	for _, call := range c.calls {
		if call.agent == "" || call.conversation == "" || c.steps[call.scheduled].activity != "run_turn" {
			t.Errorf("turn %+v of step %+v", call, c.steps[call.scheduled])
		}
	}
}

// TestReusedStepsCostNothing: a fork spends nothing for the steps that it reuses.
func TestReusedStepsCostNothing(t *testing.T) {
	fork := &ace.Fork{Steps: map[ace.Phase]ace.ReusedStep{
		ace.PhaseGenerator: {Result: []byte(`{"answer":"1","usage":{"input_tokens":100}}`)},
		ace.PhaseSkills:    {Ref: &ace.Ref{SHA256: "00"}}}}
	b := historytest.New(ace.TaskWorkflow, ace.TaskInput{TaskID: "q", Fork: fork}).Of("ace/q", runA, "", runA)
	b.Activity(0, time.Second, ace.ActivityLoadStep, ace.LoadStepInput{Phase: ace.PhaseSkills},
		ace.SkillSessionResult{StepReport: ace.StepReport{Usage: &ace.Usage{InputTokens: 50}}})
	b.Task(0)
	used := &ace.Usage{InputTokens: 7}
	b.Activity(0, time.Second, ace.ActivityReflector, nil,
		ace.ReflectorResult{StepReport: ace.StepReport{Usage: used}})
	b.Task(0)
	b.Close(time.Second, nil)
	c := newRecord(rowOf(b.Events), "ace-dev", b.Events)
	if u := usageOf(c); u.InputTokens != 7 || c.own[ace.PhaseSkills] || !c.own[ace.PhaseReflector] {
		t.Errorf("%d input tokens, own steps %v", u.InputTokens, c.own)
	}
}

const (
	runA = "01a2059f-9116-7ac2-88da-de822e0152f6"
	runB = "01a2059f-9173-7b4c-bbb8-e64e88e672f5"
	runC = "01a2059f-923b-7ccd-af1b-6dac695c412d"
)

// TestResetCountsOnce: the events that a reset run inherits were counted with the run that wrote them.
func TestResetCountsOnce(t *testing.T) {
	base := historytest.Task(true).Of("ace/q", runA, "", runA)
	kept := 0
	for i, e := range base.Events {
		if e.GetActivityTaskCompletedEventAttributes() != nil {
			kept = i + 3 // the task after the generator
			break
		}
	}
	reset := historytest.Reset(base, kept, runA, runB)
	reset.Activity(time.Second, time.Second, ace.ActivitySkills, nil, ace.SkillSessionResult{
		StepReport: ace.StepReport{Usage: &ace.Usage{InputTokens: 7}}})
	reset.Task(time.Millisecond)
	reset.Close(time.Millisecond, nil)
	c := newRecord(rowOf(reset.Events), "ace-dev", reset.Events)
	if u := usageOf(c); u.InputTokens != 7 {
		t.Errorf("%d input tokens, the run itself used 7", u.InputTokens)
	}
	if c.own[ace.PhaseGenerator] || !c.own[ace.PhaseSkills] {
		t.Errorf("own steps %v", c.own)
	}
	for _, s := range c.Spans()[1:] {
		if s.Name == ace.ActivityGenerator {
			t.Error("the trace repeats a span of the original run")
		}
	}
	if links := c.Spans()[0].Links; len(links) != 1 || string(links[0].TraceId) != string(traceID(runA)) {
		t.Errorf("links %v, want one to the original", links)
	}
}

// infoOf returns what visibility lists of a run.
func infoOf(r runs.Run) *workflowpb.WorkflowExecutionInfo {
	return &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: r.WorkflowID, RunId: r.RunID},
		Type:      &commonpb.WorkflowType{Name: r.Type}, Status: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED,
		StartTime: timestamp(r.Start), CloseTime: timestamp(r.Close)}
}
