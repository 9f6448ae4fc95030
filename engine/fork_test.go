package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"acescope/sources/histories"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/temporal/fork"
)

// forked starts a fork and waits for its end.
func forked(t *testing.T, e *engine.Engine, workflowID string, at fork.Point, c fork.Changes) (engine.Forked,
	ace.TaskResult) {
	t.Helper()
	o, err := fork.Read(workflowID, "", eventsOf(t, e.Client, workflowID).Events)
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.Plan(at, c)
	if err != nil {
		t.Fatal(err)
	}
	f, err := e.StartFork(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var r ace.TaskResult
	if err := e.Client.GetWorkflow(t.Context(), f.WorkflowID, f.RunID).Get(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	return f, r
}

// activitiesOf lists the activities that a run executed, with their inputs.
func activitiesOf(h *historypb.History) (names []string, inputs []string) {
	for _, e := range h.Events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			names = append(names, a.GetActivityType().GetName())
			inputs = append(inputs, string(a.GetInput().GetPayloads()[0].GetData()))
		}
	}
	return names, inputs
}

func ptr[T any](v T) *T { return &v }

// TestFork forks a run at each phase, each time with a change.
func TestFork(t *testing.T) {
	t.Parallel()
	s := newScripted()
	dir := t.TempDir()
	e := open(t, dir, s)
	in := task("parent", "hello", "42")
	if _, err := result(t, e, in); err != nil {
		t.Fatal(err)
	}
	parent := ace.WorkflowID("parent")
	before := eventsOf(t, e.Client, parent)
	head, _, err := e.Books.Head("e2e")
	if err != nil {
		t.Fatal(err)
	}
	other, err := e.Books.Put(t.Context(), &playbook.Playbook{})
	if err != nil {
		t.Fatal(err)
	}
	changes := map[ace.Phase]fork.Changes{
		ace.PhaseGenerator: {Prompt: ptr("another prompt")},
		ace.PhaseSkills:    {Model: ptr("other-model")},
		ace.PhaseReflector: {Set: []fork.Setting{{Key: "label", Value: "43"}}},
		ace.PhaseCurator:   {Playbook: &other},
		ace.PhasePersist:   {Branch: ptr("elsewhere")},
	}
	for i, phase := range ace.Steps() {
		t.Run(string(phase), func(t *testing.T) {
			f, r := forked(t, e, parent, fork.Point{Phase: phase}, changes[phase])
			if want := fmt.Sprintf("parent~f%d", i+1); f.TaskID != want || f.WorkflowID != "ace/"+want ||
				r.TaskID != want {
				t.Errorf("the fork is %+v, its task %s; want %s", f, r.TaskID, want)
			}
			h := eventsOf(t, e.Client, f.WorkflowID)
			names, inputs := activitiesOf(h)
			var want []string
			for _, step := range ace.Steps()[i:] {
				want = append(want, step.Activity())
			}
			if !slices.Equal(names, want) {
				t.Errorf("executed %v, want %v", names, want)
			}
			switch all := strings.Join(inputs, " "); phase {
			case ace.PhaseGenerator:
				if !strings.Contains(all, "another prompt") {
					t.Error("the prompt was not changed")
				}
			case ace.PhaseSkills:
				if !strings.Contains(all, `"model":"other-model"`) ||
					!strings.Contains(all, `"plan":"say it"`) {
					t.Errorf("the session was given %s", all)
				}
			case ace.PhaseReflector:
				if r.ExitStatus != ace.ExitWrong || !strings.Contains(all, `"answer":"42"`) {
					t.Errorf("%s with the answer of another label; inputs %s", r.ExitStatus, all)
				}
			case ace.PhaseCurator:
				if !strings.Contains(all, other) || !strings.Contains(all, `"insights":"compared"`) {
					t.Errorf("the curator was given %s", all)
				}
			case ace.PhasePersist:
				if f.Branch != "elsewhere" || !strings.Contains(all, "the answer is 42, says parent") {
					t.Errorf("merged into %q: %s", f.Branch, all)
				}
			}
			if phase != ace.PhasePersist && f.Branch != "fork/"+f.TaskID {
				t.Errorf("merged into %q", f.Branch)
			}
			if phase == ace.PhaseReflector {
				recordAs(t, e.Client, f.WorkflowID, "fork")
			}
			if wantUsage := phase == ace.PhaseGenerator; (r.Summary.Usage.InputTokens > 0) != wantUsage {
				t.Errorf("usage %+v: only executed steps count", r.Summary.Usage)
			}
			checkFold(t, e, f.TaskID)
		})
	}
	t.Run("original", func(t *testing.T) {
		if after := eventsOf(t, e.Client, parent); !proto.Equal(before, after) {
			t.Error("the original's history has changed")
		}
		if now, _, err := e.Books.Head("e2e"); err != nil || now != head {
			t.Errorf("the original's line of playbooks went from %s to %s, %v", head, now, err)
		}
	})
	t.Run("lineage", func(t *testing.T) { lineage(t, e, parent) })
	t.Run("large", func(t *testing.T) { largeFork(t, e) })
	t.Run("open", func(t *testing.T) { openFork(t, e, s) })
	t.Run("reset", func(t *testing.T) { reset(t, e, parent) })
	t.Run("gone", func(t *testing.T) { goneFork(t, e, dir) })
}

// lineage forks a fork and reads the tree from the list alone.
func lineage(t *testing.T, e *engine.Engine, parent string) {
	f, _ := forked(t, e, ace.ForkID(parent, 3), fork.Point{Phase: ace.PhaseCurator},
		fork.Changes{Model: ptr("third")})
	if f.TaskID != "parent~f6" {
		t.Errorf("the fork of a fork is %s", f.TaskID)
	}
	names, _ := activitiesOf(eventsOf(t, e.Client, f.WorkflowID))
	if !slices.Equal(names, []string{ace.ActivityCurator, ace.ActivityPersist}) {
		t.Errorf("executed %v", names)
	}
	checkFold(t, e, f.TaskID)
	everyPoint(t, e, parent)
	everyPoint(t, e, f.WorkflowID)
	eventually(t, func() error {
		tree, err := histories.ReadLineage(t.Context(), e.Client, e.Namespace(), f.WorkflowID, nil)
		if err != nil {
			return err
		}
		if len(tree.Nodes) != 7 || tree.Nodes[0].Run.WorkflowID != parent {
			return fmt.Errorf("%d nodes: %+v", len(tree.Nodes), tree.Nodes)
		}
		for i, n := range tree.Nodes {
			if n.Run.WorkflowID != f.WorkflowID {
				continue
			}
			if n.Depth != 2 || tree.Nodes[i-1].Run.WorkflowID != ace.ForkID(parent, 3) ||
				n.Run.Fork.Phase != ace.PhaseCurator ||
				n.Run.Fork.Changed["model"] != (ace.ForkChange{From: "script", To: "third"}) {
				return fmt.Errorf("the fork of the fork is %+v behind %s", n, tree.Nodes[i-1].Run.WorkflowID)
			}
			return nil
		}
		return errors.New("the fork of the fork is not in the tree")
	})
}

// everyPoint plans a fork at each event of a run: it yields a valid plan or a clear error.
func everyPoint(t *testing.T, e *engine.Engine, workflowID string) {
	o, err := fork.Read(workflowID, "", eventsOf(t, e.Client, workflowID).Events)
	if err != nil {
		t.Fatal(err)
	}
	planned := 0
	for n := int64(0); n <= o.Last()+1; n++ {
		p, err := o.Plan(fork.Point{Event: n}, fork.Changes{})
		if errors.Is(err, fork.ErrPoint) {
			continue
		}
		if err != nil {
			t.Fatalf("%s, event %d: %v", workflowID, n, err)
		}
		if err := e.CheckFork(t.Context(), p); err != nil {
			t.Errorf("%s, event %d: %v", workflowID, n, err)
		}
		planned++
	}
	if planned == 0 {
		t.Errorf("%s can be forked nowhere", workflowID)
	}
}

// largeFork reuses a result that is too large for an input.
func largeFork(t *testing.T, e *engine.Engine) {
	if _, err := result(t, e, task("big", "large", "42")); err != nil {
		t.Fatal(err)
	}
	f, r := forked(t, e, ace.WorkflowID("big"), fork.Point{Phase: ace.PhaseReflector}, fork.Changes{})
	recordAs(t, e.Client, f.WorkflowID, "fork-large")
	h := eventsOf(t, e.Client, f.WorkflowID)
	names, _ := activitiesOf(h)
	if !slices.Equal(names, []string{ace.ActivityLoadStep, ace.ActivityReflector, ace.ActivityCurator,
		ace.ActivityPersist}) || r.Answer != "42" {
		t.Errorf("executed %v, answer %s", names, r.Answer)
	}
	input := h.Events[0].GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads()[0].GetData()
	if len(input) > ace.InlineBytes {
		t.Errorf("an input of %d bytes", len(input))
	}
	checkFold(t, e, f.TaskID)
	again, _ := forked(t, e, f.WorkflowID, fork.Point{Phase: ace.PhaseCurator}, fork.Changes{})
	checkFold(t, e, again.TaskID)
}

// openFork forks a run in the middle of its skills session.
func openFork(t *testing.T, e *engine.Engine, s *scripted) {
	id := ace.WorkflowID("waiting")
	if _, err := e.StartTask(t.Context(), task("waiting", "slow", "42")); err != nil {
		t.Fatal(err)
	}
	<-s.reached
	o, err := fork.Read(id, "", eventsOf(t, e.Client, id).Events)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Plan(fork.Point{Phase: ace.PhaseReflector}, fork.Changes{}); !errors.Is(err,
		fork.ErrPoint) {
		t.Errorf("the reflector can be begun with while the session runs: %v", err)
	}
	f, r := forked(t, e, id, fork.Point{Phase: ace.PhaseSkills}, fork.Changes{Prompt: ptr("quick")})
	if r.ExitStatus != ace.ExitSuccess {
		t.Errorf("%+v", r)
	}
	checkFold(t, e, f.TaskID)
	s.release <- struct{}{}
	if err := e.Client.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

// reset resets a run to its curator, and terminates and signals open runs.
func reset(t *testing.T, e *engine.Engine, parent string) {
	h := eventsOf(t, e.Client, parent)
	at, err := fork.ResetAt(h.Events, fork.Point{Phase: ace.PhaseCurator})
	if err != nil {
		t.Fatal(err)
	}
	runID := h.Events[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId()
	newID, err := e.Reset(t.Context(), parent, runID, at.Event, runID, "a test")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Client.GetWorkflow(t.Context(), parent, newID).Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	now := eventsOf(t, e.Client, parent)
	names, _ := activitiesOf(now)
	if len(names) != 5 || now.Events[at.Event-1].GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED {
		t.Errorf("after the reset: %v; event %d is %s", names, at.Event,
			now.Events[at.Event-1].GetEventType())
	}
	for i := range at.Kept {
		if !proto.Equal(h.Events[i], now.Events[i]) &&
			h.Events[i].GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED {
			t.Errorf("event %d was not kept", i+1)
		}
	}
}

// goneFork checks that a fork with missing artifacts is rejected with their names.
func goneFork(t *testing.T, e *engine.Engine, dir string) {
	ref, err := e.Artifacts.PutBytes(context.Background(), []byte("a prompt that will be gone"), "text/plain")
	if err != nil {
		t.Fatal(err)
	}
	in := task("losing", "", "42")
	in.PromptRef, in.Prompt = &ref, ""
	if _, err := result(t, e, in); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "artifacts", ref.SHA256[:2], ref.SHA256)); err != nil {
		t.Fatal(err)
	}
	o, err := fork.Read("", "", eventsOf(t, e.Client, ace.WorkflowID("losing")).Events)
	if err != nil || o.WorkflowID != ace.WorkflowID("losing") {
		t.Fatalf("%+v, %v", o, err)
	}
	missing := strings.Repeat("ab", 32)
	p, err := o.Plan(fork.Point{Phase: ace.PhaseCurator}, fork.Changes{Playbook: &missing})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.StartFork(t.Context(), p); !errors.Is(err, engine.ErrGone) ||
		!strings.Contains(err.Error(), ref.SHA256) ||
		!strings.Contains(err.Error(), missing) {
		t.Errorf("error %v", err)
	}
	if data, err := json.Marshal(p.Input.Fork.Forked); err != nil ||
		!strings.Contains(string(data), `"of":"ace/losing"`) {
		t.Errorf("%s, %v", data, err)
	}
}
