package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/detail"
	"acescope/sources/histories"
	"acescope/sources/runs"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protojson"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
)

// scripted is a provider whose behavior the prompt selects.
type scripted struct {
	mu      sync.Mutex
	failed  map[string]int
	reached chan string   // the slow task that is waiting in its skills session
	release chan struct{} // ends the wait
}

func newScripted() *scripted {
	return &scripted{failed: map[string]int{}, reached: make(chan string, 16), release: make(chan struct{})}
}

func (*scripted) Name() string         { return "scripted" }
func (*scripted) About() string        { return "a provider for tests" }
func (*scripted) DefaultModel() string { return "script" }

func (s *scripted) Generate(_ context.Context, in ace.GeneratorInput,
	book *playbook.Playbook) (ace.GeneratorResult, error) {
	if strings.Contains(in.Prompt, "fail-once") {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.failed[in.Task.TaskID]++; s.failed[in.Task.TaskID] == 1 {
			return ace.GeneratorResult{}, errors.New("the first attempt fails")
		}
	}
	if strings.Contains(in.Prompt, "fail-for-good") {
		return ace.GeneratorResult{}, fmt.Errorf("%w: this prompt cannot be answered", model.ErrPermanent)
	}
	plan := "say it"
	if strings.Contains(in.Prompt, "large") {
		plan = strings.Repeat("say it ", ace.InlineBytes/6)
	}
	return ace.GeneratorResult{Plan: plan, TrajectoryID: in.Task.TaskID,
		StepReport: ace.StepReport{Usage: &ace.Usage{InputTokens: 10, OutputTokens: 3, CostUSD: 0.001}}}, nil
}

func (s *scripted) Skills(ctx context.Context, in ace.SkillsInput, _ *playbook.Playbook,
	tools model.Toolbox) (ace.SkillSessionResult, error) {
	for i := range 3 {
		_, _ = tools.Call(ctx, "look_up", map[string]int{"n": i}, func(context.Context) (any, error) {
			if i == 1 {
				return nil, errors.New("nothing found")
			}
			return map[string]int{"found": i}, nil
		})
	}
	_, _ = tools.Call(ctx, "delete_all", nil, func(context.Context) (any, error) {
		return nil, errors.New("must not run")
	})
	if strings.Contains(in.Prompt, "slow") {
		s.reached <- in.Task.TaskID
		select {
		case <-s.release:
		case <-ctx.Done():
			return ace.SkillSessionResult{}, ctx.Err()
		}
	}
	return ace.SkillSessionResult{Answer: "42"}, nil
}

func (*scripted) Reflect(_ context.Context, in ace.ReflectorInput, _ *playbook.Playbook) (ace.ReflectorResult,
	error) {
	if in.Label == nil {
		return ace.ReflectorResult{Insights: "no label"}, nil
	}
	correct := model.SameAnswer(in.Answer, *in.Label)
	return ace.ReflectorResult{Insights: "compared", Correct: &correct}, nil
}

func (*scripted) Curate(_ context.Context, in ace.CuratorInput, _ *playbook.Playbook) (ace.CuratorResult,
	error) {
	return ace.CuratorResult{Rationale: "nothing to explain",
		Accepted: []ace.Operation{{Type: ace.OpAdd, Section: "OTHERS", Content: "the answer is 42, says " +
			in.Task.TaskID}},
		Rejected: []ace.Operation{{Type: ace.OpAdd, Section: "OTHERS", Content: "", Reason: "empty"}}}, nil
}

func open(t *testing.T, dir string, p ...model.Provider) *engine.Engine {
	t.Helper()
	return openWith(t, engine.Options{DataDir: dir}, p...)
}

// openEngine opens an engine of this version and closes it at the end of the test.
func openEngine(t *testing.T, o engine.Options) *engine.Engine {
	t.Helper()
	o.Version = "test"
	e, err := engine.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = e.Close(ctx)
	})
	return e
}

// openWith opens an engine with a worker and checks that it closes without an error.
func openWith(t *testing.T, o engine.Options, p ...model.Provider) *engine.Engine {
	t.Helper()
	o.Version, o.Worker, o.Takeover, o.Providers = "test", true, true, p
	e, err := engine.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e
}

func task(id, prompt string, label string) ace.TaskInput {
	return ace.TaskInput{TaskID: id, Prompt: prompt, Label: &label, Adapter: ace.Offline,
		Provider: "scripted", Model: "script",
		ExperimentID: "e2e", DatasetID: "none", Branch: "e2e",
		SkillsConfig: ace.SkillsConfig{AllowedTools: []string{"look_up"}}}
}

func result(t *testing.T, e *engine.Engine, in ace.TaskInput) (ace.TaskResult, error) {
	t.Helper()
	runID, err := e.StartTask(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	var r ace.TaskResult
	err = e.Client.GetWorkflow(t.Context(), ace.WorkflowID(in.TaskID), runID).Get(t.Context(), &r)
	return r, err
}

func recorded(t *testing.T, e *engine.Engine, in ace.TaskInput) (ace.TaskResult, error) {
	t.Helper()
	r, err := result(t, e, in)
	record(t, e.Client, in.TaskID)
	return r, err
}

func eventsOf(t *testing.T, c client.Client, workflowID string) *historypb.History {
	t.Helper()
	h := &historypb.History{}
	iter := c.GetWorkflowHistory(t.Context(), workflowID, "", false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for iter.HasNext() {
		ev, err := iter.Next()
		if err != nil {
			t.Fatal(err)
		}
		h.Events = append(h.Events, ev)
	}
	return h
}

// record keeps a history for the replay tests when ACESCOPE_RECORD names a directory.
func record(t *testing.T, c client.Client, taskID string) {
	t.Helper()
	recordAs(t, c, ace.WorkflowID(taskID), taskID)
}

func recordAs(t *testing.T, c client.Client, workflowID, name string) {
	t.Helper()
	dir := os.Getenv("ACESCOPE_RECORD")
	if dir == "" {
		return
	}
	data, err := protojson.Marshal(eventsOf(t, c, workflowID))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".json"), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// answers calls the three queries of the contract.
func answers(t *testing.T, c client.Client, workflowID string) (p ace.PhaseAnswer, s ace.SkillAnswer,
	d ace.DeltaAnswer) {
	t.Helper()
	for query, answer := range map[string]any{ace.QueryPhase: &p, ace.QuerySkills: &s, ace.QueryDelta: &d} {
		v, err := c.QueryWorkflow(t.Context(), workflowID, "", query)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		if err := v.Get(answer); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	return p, s, d
}

func equalJSON(t *testing.T, what string, a, b any) {
	t.Helper()
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	if !reflect.DeepEqual(x, y) {
		t.Errorf("%s: the query says\n%s\nthe fold says\n%s", what, x, y)
	}
}

func checkFold(t *testing.T, e *engine.Engine, taskID string) {
	t.Helper()
	id := ace.WorkflowID(taskID)
	p, s, d := answers(t, e.Client, id)
	f := histories.NewFolder(id, "")
	for _, ev := range eventsOf(t, e.Client, id).Events {
		if !cluster.ClosesRun(ev.GetEventType()) { // the workflow does not see how the server closes it
			f.Apply(ev)
		}
	}
	equalJSON(t, "phase", p, f.State.CurrentPhase())
	equalJSON(t, "skills", s, f.State.SkillUsage())
	equalJSON(t, "delta", d, f.State.PlaybookDelta())
}

func TestTasks(t *testing.T) {
	t.Parallel()
	s := newScripted()
	e := open(t, t.TempDir(), s)
	t.Run("right", func(t *testing.T) {
		r, err := recorded(t, e, task("right", "hello", "42"))
		if err != nil || r.ExitStatus != ace.ExitSuccess || r.Summary.Skills != 4 ||
			r.Summary.SkillsOK != 2 || r.Summary.Added != 1 || r.Summary.Rejected != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		book, err := e.Books.Get(t.Context(), r.PlaybookHash)
		if err != nil || len(book.Bullets) != 1 {
			t.Fatalf("playbook %+v, %v", book, err)
		}
		checkFold(t, e, "right")
	})
	t.Run("wrong", func(t *testing.T) {
		r, err := recorded(t, e, task("wrong", "hello", "43"))
		if err != nil || r.ExitStatus != ace.ExitWrong {
			t.Fatalf("%+v, %v", r, err)
		}
	})
	t.Run("retried", func(t *testing.T) {
		r, err := recorded(t, e, task("retried", "fail-once", "42"))
		if err != nil || r.ExitStatus != ace.ExitSuccess {
			t.Fatalf("%+v, %v", r, err)
		}
		checkFold(t, e, "retried")
	})
	t.Run("failed", func(t *testing.T) {
		_, err := recorded(t, e, task("failed", "fail-for-good", "42"))
		if err == nil || !strings.Contains(err.Error(), "cannot be answered") {
			t.Fatalf("error %v", err)
		}
		checkFold(t, e, "failed")
	})
	t.Run("live", func(t *testing.T) { testLive(t, e, s) })
	t.Run("cancelled", func(t *testing.T) { testCanceled(t, e, s) })
	t.Run("duplicate", func(t *testing.T) {
		if _, err := e.StartTask(t.Context(), task("right", "again", "42")); !errors.Is(err,
			engine.ErrExists) {
			t.Fatalf("error %v", err)
		}
	})
	t.Run("listed", func(t *testing.T) { testListed(t, e) })
}

// testLive inspects a run in the middle of its skills session.
func testLive(t *testing.T, e *engine.Engine, s *scripted) {
	in := task("live", "slow", "42")
	if _, err := e.StartTask(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	<-s.reached
	// The batch with the tool events is signalled while the session waits.
	var changes []histories.Change
	folder := histories.NewFolder(ace.WorkflowID("live"), "")
	enough := errors.New("enough")
	released := false
	err := cluster.Follow(t.Context(), e.Client, e.Namespace(), ace.WorkflowID("live"), "", nil,
		func(ev *historypb.HistoryEvent) error {
			changes = append(changes, folder.Apply(ev)...)
			if ev.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED && !released {
				released = true
				p, skills, _ := answers(t, e.Client, ace.WorkflowID("live"))
				if p.Phase != ace.PhaseSkills || skills.Total != 4 {
					t.Errorf("live answers: phase %s, %d calls", p.Phase, skills.Total)
				}
				s.release <- struct{}{}
			}
			return nil
		})
	if err != nil && !errors.Is(err, enough) {
		t.Fatal(err)
	}
	kinds := map[histories.ChangeType]int{}
	for _, c := range changes {
		kinds[c.Type]++
	}
	if kinds[histories.ChangeSkill] < 4 || kinds[histories.ChangePhase] != 6 ||
		kinds[histories.ChangeDelta] != 1 || kinds[histories.ChangeStatus] != 1 {
		t.Errorf("changes %v", kinds)
	}
	record(t, e.Client, "live")
	checkFold(t, e, "live")
}

func testCanceled(t *testing.T, e *engine.Engine, s *scripted) {
	runID, err := e.StartTask(t.Context(), task("cancelled", "slow", "42"))
	if err != nil {
		t.Fatal(err)
	}
	<-s.reached
	if err := e.Cancel(t.Context(), ace.WorkflowID("cancelled"), runID); err != nil {
		t.Fatal(err)
	}
	if err := e.Client.GetWorkflow(t.Context(), ace.WorkflowID("cancelled"), runID).Get(t.Context(),
		nil); err == nil {
		t.Fatal("a canceled run completed")
	}
	record(t, e.Client, "cancelled")
	checkFold(t, e, "cancelled")
	d, err := detail.Read(t.Context(), e.Client, ace.WorkflowID("cancelled"), runID)
	if err != nil || d.Phase.Status != ace.Canceled || d.From != runs.FromHistory {
		t.Fatalf("%+v, %v", d, err)
	}
}

func testListed(t *testing.T, e *engine.Engine) {
	want := map[string]string{"right": "completed correct", "wrong": "completed wrong",
		"retried": "completed correct",
		"failed":  "failed ungraded", "live": "completed correct", "cancelled": "canceled ungraded"}
	eventually(t, func() error {
		got := map[string]string{}
		err := runs.List(t.Context(), e.Client, `ExperimentId = "e2e"`, 0, func(r runs.Run) error {
			got[r.TaskID] = string(r.Status) + " " + string(r.Verdict)
			if r.TaskID == "right" && (r.Summary == nil || r.Summary.Skills != 4) {
				return fmt.Errorf("summary of right: %+v", r.Summary)
			}
			return nil
		})
		if err == nil && !reflect.DeepEqual(got, want) {
			err = fmt.Errorf("listed %v, want %v", got, want)
		}
		return err
	})
}

// patience bounds the wait for a condition.
const patience = 90 * time.Second

// eventually waits for a condition.
func eventually(t *testing.T, ok func() error) {
	t.Helper()
	if err := poll(ok); err != nil {
		t.Fatal(err)
	}
}

// poll calls ok until it returns nil, and returns its last error when patience ends. The pauses grow, and are
// longer than a call takes, because other tests share the processors and the server.
func poll(ok func() error) (err error) {
	pause := 10 * time.Millisecond
	for start := time.Now(); time.Since(start) < patience; {
		asked := time.Now()
		if err = ok(); err == nil {
			return nil
		}
		time.Sleep(max(pause, 4*time.Since(asked)))
		pause = min(pause*5/4, 100*time.Millisecond)
	}
	return err
}
