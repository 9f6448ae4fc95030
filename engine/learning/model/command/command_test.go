package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
	"acescope/engine/store/artifact"
	"acescope/engine/tasks/run"
)

// runs is a fake implementation of Runs.
type runs struct {
	started []run.Request
	stopped []string
	states  map[string]run.State
	err     error
	result  func(run.Request) run.Result
	wait    chan struct{} // closed when the run ends; nil: immediately
}

func (f *runs) Start(_ context.Context, r run.Request) (run.Input, error) {
	f.started = append(f.started, r)
	return run.Input{RunID: r.RunID}, f.err
}

func (f *runs) State(_ context.Context, id string) (run.State, error) {
	s, ok := f.states[id]
	if !ok {
		return s, fmt.Errorf("%w: %s", run.ErrNotFound, id)
	}
	return s, nil
}

func (f *runs) Await(ctx context.Context, id string) (run.Result, error) {
	if f.wait != nil {
		select {
		case <-f.wait:
		case <-ctx.Done():
			return run.Result{}, ctx.Err()
		}
	}
	var q run.Request
	if n := len(f.started); n > 0 {
		q = f.started[n-1]
	}
	if s := f.states[id]; s.Result != nil {
		return *s.Result, nil
	}
	r := f.result(q)
	r.RunID, r.Runner = id, "local"
	return r, nil
}

func (f *runs) Stop(_ context.Context, id string, _ run.StopRequest) (run.State, error) {
	f.stopped = append(f.stopped, id)
	if f.wait != nil {
		close(f.wait)
	}
	return run.State{}, nil
}

// says returns a completed run with JSON output.
func says(text string) func(run.Request) run.Result {
	return func(run.Request) run.Result {
		return run.Result{Status: run.Completed, Output: json.RawMessage(text), OutputIs: "json"}
	}
}

func fails(reason run.Reason, why string) func(run.Request) run.Result {
	return func(run.Request) run.Result { return run.Result{Status: run.Failed, Reason: reason, Error: why} }
}

var task = ace.TaskContext{TaskID: "q-7", WorkflowID: "ace/q-7", RunID: "r1", PlaybookHash: "h",
	Provider: "blueprint:mine"}

func attemptContext(ctx context.Context, attempt int32) context.Context {
	return model.WithCaller(ctx, &model.Caller{WorkflowID: "ace/q-7", RunID: "r1", ActivityID: "5",
		Attempt: attempt})
}

func newProvider(t *testing.T, f *runs) (model.Provider, *artifact.Store) {
	t.Helper()
	store, err := artifact.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return New(f, store, run.Blueprint{Name: "mine", Description: "mine"}), store
}

func generate(ctx context.Context, p model.Provider) (ace.GeneratorResult, error) {
	return p.Generate(ctx, ace.GeneratorInput{Task: task, Prompt: "What?"}, nil)
}

func TestParameters(t *testing.T) {
	f := &runs{result: says(`{"insights": "i"}`)}
	p, _ := newProvider(t, f)
	label := "42"
	book := &playbook.Playbook{Bullets: []playbook.Bullet{{ID: "b-00001", Section: "S", Content: "c",
		Helpful: 2}}}
	r, err := p.Reflect(attemptContext(t.Context(), 1), ace.ReflectorInput{Task: task, Prompt: "What?",
		PromptRef: &ace.Ref{}, Plan: "p", Answer: "41", Label: &label}, book)
	if err != nil || *r.Served != (ace.Served{Provider: "blueprint:mine", RunID: f.started[0].RunID,
		Runner: "local"}) || r.Correct == nil || *r.Correct {
		t.Fatalf("%+v, %v", r, err)
	}
	want := `{"answer":"41","label":"42","plan":"p","playbook":{"hash":"h","count":1,"bullets":[{"id":"b-00001","section":"S","content":"c","helpful":2,"harmful":0,"neutral":0}]},` +
		`"prompt":"What?","step":"reflector","task":{"task_id":"q-7","workflow_id":"ace/q-7","run_id":"r1","playbook_hash":"h","provider":"blueprint:mine","model":"","skills_config":{}}}`
	q := f.started[0]
	if string(q.Parameters) != want || q.AgentName != "mine" || q.Mode != run.Sync ||
		!run.ValidName(q.RunID) || q.By != "the reflector of ace/q-7" {
		t.Errorf("%+v\n%s", q, q.Parameters)
	}
}

// A program that declares the parameter gets the text of its prompt there, and nowhere else. Others take
// none.
func TestInstructions(t *testing.T) {
	f := &runs{result: says(`{"plan": "p"}`)}
	p := New(f, nil, run.Blueprint{Name: "mine",
		Schema: json.RawMessage(`{"properties": {"instructions": {}}}`)})
	at := task
	at.PhasePrompt = &ace.PhasePrompt{Name: "brief", Version: 2, Text: "Be brief."}
	if err := model.CheckPrompt(p); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Generate(attemptContext(t.Context(), 1), ace.GeneratorInput{Task: at, Prompt: "What?"},
		nil); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Instructions string          `json:"instructions"`
		Task         ace.TaskContext `json:"task"`
	}
	if err := json.Unmarshal(f.started[0].Parameters, &got); err != nil || got.Instructions != "Be brief." ||
		got.Task.PhasePrompt.Name != "brief" || got.Task.PhasePrompt.Text != "" {
		t.Errorf("%s, %v", f.started[0].Parameters, err)
	}
	for _, schema := range []string{"", "{}", `{"properties": {"prompt": {}}}`} {
		err := model.CheckPrompt(New(f, nil, run.Blueprint{Name: "mine", Schema: json.RawMessage(schema)}))
		if err == nil || !strings.Contains(err.Error(), "blueprint:mine takes no phase prompt") {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// A large prompt or playbook is passed as a file.
func TestLargeParameters(t *testing.T) {
	f := &runs{result: says(`{"plan": "p"}`)}
	p, store := newProvider(t, f)
	prompt := strings.Repeat("x", ace.InlineBytes+1)
	book := &playbook.Playbook{}
	for i := range 40 {
		book.Bullets = append(book.Bullets, playbook.Bullet{ID: fmt.Sprintf("b-%05d", i),
			Content: strings.Repeat("y", 2000)})
	}
	if _, err := p.Generate(attemptContext(t.Context(), 1), ace.GeneratorInput{Task: task, Prompt: prompt},
		book); err != nil {
		t.Fatal(err)
	}
	var in struct {
		Prompt    *string `json:"prompt"`
		PromptRef File    `json:"prompt_ref"`
		Playbook  Book    `json:"playbook"`
	}
	if err := json.Unmarshal(f.started[0].Parameters, &in); err != nil {
		t.Fatal(err)
	}
	if in.Prompt != nil || in.PromptRef.Size != int64(len(prompt)) ||
		!strings.HasPrefix(in.PromptRef.Path, "/") || in.Playbook.Bullets != nil || in.Playbook.Count != 40 {
		t.Errorf("%s", f.started[0].Parameters)
	}
	data, err := store.Get(t.Context(), in.Playbook.Ref.Ref, 1<<20)
	var bullets []playbook.Bullet
	if err != nil || json.Unmarshal(data, &bullets) != nil || !slices.Equal(bullets, book.Bullets) {
		t.Errorf("%d bullets in the file, %v", len(bullets), err)
	}
	_, err = p.Skills(attemptContext(t.Context(), 1),
		ace.SkillsInput{Task: task, Plan: strings.Repeat("z", run.MaxParams)}, nil, nil)
	if model.KindOf(err) != model.BadRequest || !strings.Contains(err.Error(), "at most") {
		t.Error(err)
	}
}

// A retry finds the run of the previous attempt, and starts another only if no runner executed
// it.
func TestRetries(t *testing.T) {
	f := &runs{result: says(`{"plan": "p"}`), states: map[string]run.State{}}
	p, _ := newProvider(t, f)
	if _, err := generate(attemptContext(t.Context(), 1), p); err != nil {
		t.Fatal(err)
	}
	first := f.started[0].RunID
	f.states[first] = run.State{Status: run.Running}
	if r, err := generate(attemptContext(t.Context(), 2), p); err != nil || r.Served.RunID != first ||
		len(f.started) != 1 {
		t.Errorf("it runs: %+v, %v", r, err)
	}
	f.states[first] = run.State{Result: &run.Result{RunID: first, Status: run.Failed, Reason: run.ExitCode,
		Error: "exit code 3"}}
	if _, err := generate(attemptContext(t.Context(), 2), p); model.KindOf(err) != model.ProgramFailed ||
		len(f.started) != 1 {
		t.Errorf("it failed: %v", err)
	}
	f.states[first] = run.State{Result: &run.Result{RunID: first, Status: run.Failed, Reason: run.RunnerLost}}
	r, err := generate(attemptContext(t.Context(), 2), p)
	if err != nil || r.Served.RunID == first || len(f.started) != 2 {
		t.Fatalf("its runner died: %+v, %v", r, err)
	}
	f.states[r.Served.RunID] = run.State{Status: run.Running}
	if again, err := generate(attemptContext(t.Context(), 3), p); err != nil ||
		again.Served.RunID != r.Served.RunID || len(f.started) != 2 {
		t.Errorf("the second runs: %+v, %v", again, err)
	}
	f.states = map[string]run.State{}
	if r, err := generate(attemptContext(t.Context(), 3), p); err != nil || r.Served.RunID != first {
		t.Errorf("none was started: %+v, %v", r, err)
	}
	other := model.WithCaller(t.Context(), &model.Caller{WorkflowID: "ace/q-7", RunID: "r1", ActivityID: "11",
		Attempt: 1})
	if r, err := generate(other, p); err != nil || r.Served.RunID == first {
		t.Errorf("another activity has the same run: %+v, %v", r, err)
	}
}

func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		f     runs
		kind  model.ErrorKind
		again bool
		says  string
	}{
		"exit code": {runs{result: fails(run.ExitCode, "it ended with exit code 3: boom")},
			model.ProgramFailed, false, "blueprint:mine: it ended with exit code 3: boom (run step_"},
		"time-out": {runs{result: fails(run.Timeout, "")}, model.ProgramFailed, false, "timeout"},
		"stopped": {runs{result: func(run.Request) run.Result {
			return run.Result{Status: run.Stopped, Error: "by hand"}
		}}, model.ProgramFailed, false, "stopped: by hand"},
		"no runner": {runs{result: fails(run.NoRunner, "none has the tag gpu")}, model.NoRunner, true,
			"none has the tag gpu"},
		"runner lost": {runs{result: fails(run.RunnerLost, "gone")}, model.NoRunner, true, "gone"},
		"no JSON": {runs{result: func(run.Request) run.Result {
			return run.Result{Status: run.Completed, Stdout: "hello", OutputIs: "text"}
		}}, model.BadAnswer, false, `begins with "hello"`},
		"refused": {runs{err: fmt.Errorf("%w: $.step is wrong", run.ErrBadRequest)}, model.BadRequest,
			false, "$.step is wrong"},
		"no blueprint": {runs{err: fmt.Errorf("%w: mine", run.ErrNoBlueprint)}, model.NoBlueprint, true,
			"blueprint not found"},
		"no server": {runs{err: errors.New("refused")}, model.Network, true, "cannot start"},
		"far too large": {runs{result: func(run.Request) run.Result {
			return run.Result{Status: run.Completed, OutputIs: "json",
				OutputRef: &ace.Ref{Size: MaxWritten + 1}}
		}}, model.BadAnswer, false, "at most 1048576 are allowed"},
	} {
		p, _ := newProvider(t, &c.f)
		_, err := generate(attemptContext(t.Context(), 1), p)
		if model.KindOf(err) != c.kind || errors.Is(err, model.ErrPermanent) == c.again ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A canceled phase stops its run and waits for its end. If the process ends, the run continues.
func TestCanceled(t *testing.T) {
	for _, c := range []struct {
		cause error
		stops int
	}{{temporal.NewCanceledError(), 1}, {errors.New("the worker stops"), 0}} {
		f := &runs{result: says(`{}`), wait: make(chan struct{})}
		p, _ := newProvider(t, f)
		ctx, cancel := context.WithCancelCause(attemptContext(t.Context(), 1))
		cancel(c.cause)
		if _, err := generate(ctx, p); !errors.Is(err, context.Canceled) || len(f.stopped) != c.stops {
			t.Errorf("%v: %v, %d stopped", c.cause, err, len(f.stopped))
		}
	}
}

func TestWrittenElsewhere(t *testing.T) {
	f := &runs{}
	p, store := newProvider(t, f)
	ref, err := store.PutBytes(t.Context(), []byte("log line\n{\"plan\": \"long\"}\n"), "text/plain")
	if err != nil {
		t.Fatal(err)
	}
	f.result = func(run.Request) run.Result {
		return run.Result{Status: run.Completed, OutputIs: "text", Stdout: "log…", StdoutRef: &ref}
	}
	if r, err := generate(attemptContext(t.Context(), 1), p); err != nil || r.Plan != "long" ||
		r.Parsed.Parse != ace.ParseExtracted {
		t.Errorf("%+v, %v", r, err)
	}
}

// box is a toolbox that only records.
type box struct{ said []string }

func (b *box) Call(context.Context, string, any, func(context.Context) (any, error)) (any, error) {
	return nil, nil
}

func (b *box) Begun(_ context.Context, id, name string, _ json.RawMessage) {
	b.said = append(b.said, id+" "+name)
}

func (b *box) Ended(_ context.Context, id string, end model.CallEnd) {
	b.said = append(b.said, fmt.Sprintf("%s %t %t %s %s", id, end.Accepted, end.OK, end.Took, end.Error))
}

func TestInvocations(t *testing.T) {
	f := &runs{result: says(
		`{"answer": "3", "invocations": [{"id": "a", "name": "add", "duration_ms": 1.5}, {"id": "a", "name": "rm", "accepted": false, "error": "no"}, {"name": "late", "duration_ms": 1e300}]}`)}
	p, _ := newProvider(t, f)
	in := ace.SkillsInput{Task: task}
	in.Task.SkillsConfig.AllowedTools = []string{"add"}
	b := &box{}
	r, err := p.Skills(attemptContext(t.Context(), 1), in, nil, b)
	want := []string{"1 add", "1 true true 1.5ms ", "2 rm", "2 false false 0s no", "3 late", "3 true true " +
		(365 * 24 * time.Hour).String() + " "}
	if err != nil || r.Answer != "3" || !slices.Equal(b.said, want) ||
		!strings.Contains(r.Parsed.Note, "the tool late, which is not allowed") {
		t.Errorf("%q, %+v, %v", b.said, r.Parsed, err)
	}
}

func TestSample(t *testing.T) {
	for step, has := range map[ace.Phase]string{ace.PhaseGenerator: "prompt", ace.PhaseSkills: "plan",
		ace.PhaseReflector: "label", ace.PhaseCurator: "insights"} {
		var in map[string]any
		if err := json.Unmarshal(Sample(step), &in); err != nil || in["step"] != string(step) ||
			in[has] == nil || in["playbook"] == nil || in["task"] == nil {
			t.Errorf("%s: %v, %v", step, in, err)
		}
	}
}
