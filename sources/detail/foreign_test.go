package detail

import (
	"slices"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/replay/replaytest"
	"acescope/sources/histories"
	"acescope/sources/historytest"
)

func read(t *testing.T, events []*historypb.HistoryEvent) *histories.Detail {
	t.Helper()
	d, err := ReadEvents(events)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func stepStatuses(d *histories.Detail) string {
	var all []string
	for _, st := range d.Phase.Steps {
		all = append(all, st.Status)
	}
	return strings.Join(all, ", ")
}

// TestDocument001Run shows a run in the shapes of design document 001 as its server has it: completed.
func TestDocument001Run(t *testing.T) {
	d := read(t, historytest.Document001().Events)
	if d.Phase.Status != ace.Completed || d.Phase.Failure != nil ||
		stepStatuses(d) != "done, done, not reached, done, done" {
		t.Errorf("%s, failure %+v, steps %s", d.Phase.Status, d.Phase.Failure, stepStatuses(d))
	}
	if d.Calls.Len() != 3 || d.Skills.Total != 3 || d.Calls.At(2).ID != "#3" {
		t.Errorf("%d calls, %d counted", d.Calls.Len(), d.Skills.Total)
	}
	if len(d.Delta.Operations) != 1 || d.Plan != "multiply" || string(d.RawResult) != `"42"` {
		t.Errorf("delta %+v, plan %q, result %s", d.Delta, d.Plan, d.RawResult)
	}
	want := []string{
		"run_skills_session: invocations: 3 of 3 have no unique ID and are numbered by position",
		"run_curator: follow_up_actions: text instead of a list",
		`persist_results: result: the text "saved 1 delta" is not the hash of a playbook`,
	}
	if got := d.Unread(); !slices.Equal(got, want) || d.UnreadAnswer() != "" {
		t.Errorf("notes %q, answer %q", got, d.UnreadAnswer())
	}
}

// TestExternalStorage says that results outside the history are not known, instead of showing an empty
// answer.
func TestExternalStorage(t *testing.T) {
	b := historytest.New(ace.TaskWorkflow, ace.TaskInput{TaskID: "t"})
	b.Activity(0, time.Second, ace.ActivityGenerator, nil, historytest.Stored("s3", 81920))
	b.Activity(0, time.Second, ace.ActivityReflector, nil, map[string]any{"correct": true})
	d := read(t, b.Close(0, historytest.Stored("s3", 300)).Events)
	const why = `stored outside the history by the storage driver "s3"`
	if got := d.UnreadAnswer(); d.Phase.Answer != "" || got != "not readable: run_generator: result: "+why {
		t.Errorf("answer %q, %q", d.Phase.Answer, got)
	}
	if len(d.Encoded) != 2 || d.Encoded[0].Size != 81920 || d.Encoded[0].Why() != why || d.RawResult != nil {
		t.Errorf("payloads %+v, result %s", d.Encoded, d.RawResult)
	}
}

// TestForeignWorkflow shows input, result and failure of a workflow of another type, and no phases.
func TestForeignWorkflow(t *testing.T) {
	build := func() *historytest.Builder {
		b := historytest.New("OrderWorkflow", map[string]any{"order": 17})
		b.Activity(0, time.Second, "charge_card", nil, map[string]any{"paid": true})
		return b
	}
	d := read(t, build().Close(0, map[string]any{"shipped": true}).Events)
	if d.Phase.Status != ace.Completed || d.Phase.Phase != "" || len(d.Phase.Steps) != 0 || d.Err != "" {
		t.Errorf("%+v, %s", d.Phase, d.Err)
	}
	if string(d.RawInput) != `{"order":17}` || string(d.RawResult) != `{"shipped":true}` ||
		len(d.Activities) != 1 {
		t.Errorf("input %s, result %s, %d activities", d.RawInput, d.RawResult, len(d.Activities))
	}
	failure := historytest.Failure("no stock")
	failure.GetApplicationFailureInfo().Details = historytest.JSON(map[string]any{"item": 3})
	d = read(t, build().End(0, &historypb.WorkflowExecutionFailedEventAttributes{Failure: failure}).Events)
	if d.Phase.Status != ace.Failed || d.Phase.Failure.Message != "no stock" ||
		d.Causes[0].Details != `{"item":3}` {
		t.Errorf("%+v, causes %+v", d.Phase, d.Causes)
	}
}

// TestHeartbeatDetails shows the details of the last heartbeat, of a pending activity and of a timeout.
func TestHeartbeatDetails(t *testing.T) {
	details := historytest.JSON(map[string]any{"row": 7})
	p := histories.PendingOf(&workflowpb.PendingActivityInfo{HeartbeatDetails: details})
	if p.Heartbeat != `{"row":7}` {
		t.Errorf("pending %q", p.Heartbeat)
	}
	failure := &failurepb.Failure{FailureInfo: &failurepb.Failure_TimeoutFailureInfo{
		TimeoutFailureInfo: &failurepb.TimeoutFailureInfo{TimeoutType: enumspb.TIMEOUT_TYPE_HEARTBEAT,
			LastHeartbeatDetails: details}}}
	p = histories.PendingOf(&workflowpb.PendingActivityInfo{LastFailure: failure})
	if len(p.Causes) != 1 || p.Causes[0].Details != `{"row":7}` {
		t.Errorf("causes %+v", p.Causes)
	}
}

// TestTailOfEveryType reports what each type of run does, and phases of ACE only for ACE runs.
func TestTailOfEveryType(t *testing.T) {
	order := historytest.New("OrderWorkflow", map[string]any{"order": 17}).Close(0,
		map[string]any{"shipped": true})
	survived := historytest.New("OrderWorkflow", map[string]any{"order": 17})
	charge := survived.Schedule(0, "charge_card", nil)
	survived.Fail(0, charge, survived.Begin(0, charge, 3, ""), "no such card")
	survived.Close(0, map[string]any{"unpaid": true})
	for name, c := range map[string]struct {
		events []*historypb.HistoryEvent
		want   []string
	}{
		"survived": {survived.Events, []string{"step charge_card failed: no such card", "status completed"}},
		"foreign":  {order.Events, []string{`status completed, result {"shipped":true}`}},
		"session":  {replaytest.Recorded(t, "session-talk"), []string{"phase idle", "status turn 1 "}},
		"run":      {replaytest.Recorded(t, "run-completed"), []string{"completed", "status completed"}},
		"document": {historytest.Document001().Events, []string{"unread cannot read persist_results: ",
			"phase done", "status completed"}},
		"right": {replaytest.Recorded(t, "right"),
			[]string{"phase skills", "phase done", "status completed"}},
	} {
		tail := NewTail("w", "r")
		var lines []string
		for _, e := range c.events {
			for _, change := range tail.Apply(e) {
				lines = append(lines, string(change.Type)+" "+change.Text())
			}
		}
		text := strings.Join(lines, "\n")
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
		if name != "document" && name != "right" && strings.Contains(text, "generator") {
			t.Errorf("%s: a phase of ACE in\n%s", name, text)
		}
	}
}

// TestFindRef finds the artifacts in the histories of every type of run.
func TestFindRef(t *testing.T) {
	hash := strings.Repeat("0f", 32)
	ref := map[string]any{"deep": []any{[]any{map[string]any{"a": map[string]any{"b": map[string]any{"sha256": hash, "size": 9}}}}}}
	for what, at := range map[string]*commonpb.Payloads{
		"reference": historytest.JSON(ref),
		"text":      historytest.JSON("see artifact " + hash),
	} {
		b := historytest.New("OrderWorkflow", at)
		got, ok := histories.FindRef(b.Events[0], hash)
		if !ok || got.SHA256 != hash || what == "reference" && got.Size != 9 {
			t.Errorf("%s: %+v, %v", what, got, ok)
		}
		if _, ok := histories.FindRef(b.Events[1], hash); ok {
			t.Errorf("%s: found in another event", what)
		}
	}
	for _, name := range []string{"session-talk", "experiment", "observed"} {
		if got := hashesIn(t, replaytest.Recorded(t, name)); got == 0 {
			t.Errorf("%s has no artifact", name)
		}
	}
}

// hashesIn counts the events with a "sha256" member that FindRef finds.
func hashesIn(t *testing.T, events []*historypb.HistoryEvent) (found int) {
	t.Helper()
	for _, e := range events {
		text := e.String()
		for i := strings.Index(text, `sha256\":\"`); i >= 0; i = strings.Index(text, `sha256\":\"`) {
			text = text[i+len(`sha256\":\"`):]
			ref, ok := histories.FindRef(e, text[:64])
			if !ok || ref.SHA256 != text[:64] {
				t.Fatalf("event %d: %q not found", e.GetEventId(), text[:64])
			}
			found++
		}
	}
	return found
}
