package engine_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"acescope/sources/detail"
	"acescope/sources/experiments"
	"acescope/sources/histories"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/builtin"
	"acescope/engine/learning/playbook"
	"acescope/engine/tasks/blueprint"
	"acescope/engine/tasks/run"
	"acescope/engine/workflows"
)

// examples are the blueprints of the documentation.
const examples = "../docs/examples/agents"

// conversions is the data set of the Python example.
func conversions(t *testing.T, e *engine.Engine) (ref ace.Ref, tasks int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(examples, "ace-solver-python", "tasks.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if ref, err = e.Artifacts.PutBytes(t.Context(), data, "application/jsonl"); err != nil {
		t.Fatal(err)
	}
	return ref, strings.Count(string(data), "\n")
}

// runConversions runs an experiment over the conversions to its end and returns the state of each task.
func runConversions(t *testing.T, e *engine.Engine, in ace.ExperimentInput) (*ace.ExperimentProgress,
	[]*histories.Detail) {
	t.Helper()
	in.DatasetID, in.Adapter, in.Epochs, in.Parallel, in.Model = "conversions", ace.Offline, 1, 1, "none"
	in.Dataset, in.Tasks = conversions(t, e)
	runID, err := e.StartExperiment(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	state, err := experiments.Follow(t.Context(), e.Client, e.Namespace(),
		ace.ExperimentWorkflowID(in.ExperimentID), runID, nil,
		func(ace.ExperimentInput, experiments.Finished) {})
	if err != nil || state.Status() != ace.Completed {
		t.Fatalf("%v: %+v", err, state)
	}
	var all []*histories.Detail
	for i := range in.Tasks {
		d, err := detail.Read(t.Context(), e.Client, ace.WorkflowID(workflows.TaskID(in.ExperimentID, 1, i)),
			"")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return &state.Progress, all
}

// servedBy checks that a blueprint run executed a step and knows its task.
func servedBy(t *testing.T, runs run.Service, d *histories.Detail, step ace.Phase, blueprint string) {
	t.Helper()
	for _, st := range d.Phase.Steps {
		if st.Phase != step {
			continue
		}
		if st.Served == nil || st.Served.Provider != ace.BlueprintProvider(blueprint) || st.Parsed == nil ||
			st.Parsed.Parse != ace.ParseClean {
			t.Errorf("%s of %s: %+v, read as %+v", step, d.WorkflowID, st.Served, st.Parsed)
			return
		}
		s, err := runs.State(t.Context(), st.Served.RunID)
		if err != nil || s.Status != run.Completed || s.Input.Name() != blueprint ||
			!strings.Contains(s.Input.By, d.WorkflowID) || s.Result.Runner != st.Served.Runner {
			t.Errorf("the run of the %s of %s: %+v, %v", step, d.WorkflowID, s, err)
		}
		return
	}
	t.Errorf("%s has no %s", d.WorkflowID, step)
}

// tutor replaces the Python example where only the shell is tested: it answers 0 and returns the
// correct answers as insights.
type tutor struct{ model.Provider }

func (tutor) Name() string { return "taught" }

func (tutor) Generate(context.Context, ace.GeneratorInput, *playbook.Playbook) (ace.GeneratorResult, error) {
	return ace.GeneratorResult{Plan: "none", Answer: "0"}, nil
}

func (tutor) Skills(context.Context, ace.SkillsInput, *playbook.Playbook,
	model.Toolbox) (ace.SkillSessionResult, error) {
	return ace.SkillSessionResult{}, nil
}

func (tutor) Reflect(_ context.Context, in ace.ReflectorInput, book *playbook.Playbook) (ace.ReflectorResult,
	error) {
	r := ace.ReflectorResult{Insights: "It is wrong.\nLesson: \"" + in.Prompt + "\" \\ " + *in.Label,
		Correct: new(bool)}
	for _, b := range book.Bullets {
		r.BulletTags = append(r.BulletTags, ace.BulletTag{ID: b.ID, Tag: "neutral"})
	}
	return r, nil
}

// The curator in shell serves the curator of a real experiment.
func TestCuratorInShell(t *testing.T) {
	t.Parallel()
	lib := library{blueprint.Library{Dirs: []string{examples}}}
	e := openWith(t, engine.Options{DataDir: t.TempDir(), Blueprints: lib}, tutor{builtin.New()})
	p, tasks := runConversions(t, e, ace.ExperimentInput{ExperimentID: "shell", Provider: "taught",
		Steps: map[string]string{"curator": "blueprint:ace-curator-shell"}})
	if p.Bullets != len(tasks) || p.Rejected != 0 {
		t.Errorf("%d bullets of %d tasks, %d operations rejected", p.Bullets, len(tasks), p.Rejected)
	}
	for i, d := range tasks {
		servedBy(t, e.Runs(lib), d, ace.PhaseCurator, "ace-curator-shell")
		if n := len(d.Delta.Operations); n != i+1 { // a tag for each bullet, and a new one
			t.Errorf("task %d: %d operations: %+v", i, n, d.Delta.Operations)
		}
	}
	book, err := e.Books.Get(t.Context(), p.After)
	if err != nil || book.Bullets[0].Content != `"Convert 3 furlongs to metres." \ 603.504` ||
		book.Bullets[0].Neutral != len(tasks)-1 {
		t.Errorf("%+v, %v", book, err)
	}
}

// Both adapters of docs/guides/workers.md together learn what the tasks have in common.
func TestAdapters(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("python3", "-c", "print(1)").Output(); err != nil || string(out) != "1\n" {
		t.Skip("python3 is not installed")
	}
	lib := library{blueprint.Library{Dirs: []string{examples}}}
	e := openWith(t, engine.Options{DataDir: t.TempDir(), Blueprints: lib}, builtin.New())
	eval, n := conversions(t, e)
	p, tasks := runConversions(t, e, ace.ExperimentInput{ExperimentID: "both", Provider: "builtin",
		EvaluationPlan: ace.EvaluationPlan{Eval: &eval, EvalTasks: n},
		Steps: map[string]string{"generator": "blueprint:ace-solver-python",
			"skills":    "blueprint:ace-solver-python",
			"reflector": "blueprint:ace-solver-python", "curator": "blueprint:ace-curator-shell"}})
	if len(p.Eval) != 2 || p.Eval[0].Correct != 0 || p.Eval[1].Correct != n || p.Epochs[0].Correct != 3 ||
		p.Bullets != 3 || p.Rejected != 0 {
		t.Errorf("%+v", p)
	}
	for _, d := range tasks {
		for _, step := range []ace.Phase{ace.PhaseGenerator, ace.PhaseSkills, ace.PhaseReflector} {
			servedBy(t, e.Runs(lib), d, step, "ace-solver-python")
		}
		servedBy(t, e.Runs(lib), d, ace.PhaseCurator, "ace-curator-shell")
		if len(d.Skills.Skills) != 1 || d.Skills.Skills[0].Name != "multiply" || d.Skills.Skills[0].OK != 1 {
			t.Errorf("%s: %+v", d.WorkflowID, d.Skills.Skills)
		}
	}
}

// The error output of a failed program is the failure of the task, which is not retried.
func TestStepFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, file := range map[string]string{
		"agent.json":       `{"name": "broken", "description": "fails", "type": "deterministic"}`,
		"agent.command.sh": "echo first >&2\necho 'the disk is full' >&2\nexit 3\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, "broken"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "broken", name), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lib := library{blueprint.Library{Dirs: []string{dir}}}
	e := openWith(t, engine.Options{DataDir: t.TempDir(), Blueprints: lib}, builtin.New())
	in := task("broken", "hello", "1")
	in.Provider = "blueprint:broken"
	if _, err := e.StartTask(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	var result ace.TaskResult
	err := e.Client.GetWorkflow(t.Context(), ace.WorkflowID("broken"), "").Get(t.Context(), &result)
	if err == nil || !strings.Contains(err.Error(), "blueprint:broken: ") ||
		!strings.Contains(err.Error(), "the disk is full (run step_") {
		t.Error(err)
	}
	d, err := detail.Read(t.Context(), e.Client, ace.WorkflowID("broken"), "")
	if err != nil || d.Phase.Failure == nil || d.Phase.Failure.Type != string(model.ProgramFailed) ||
		len(d.Activities) != 1 || d.Activities[0].Attempt > 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestCheckStep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "writer"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "writer", "agent.json"),
		[]byte(`{"name": "writer", "description": "an agent"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	lib := library{blueprint.Library{Dirs: []string{examples, dir}}}
	for _, c := range []struct {
		blueprint string
		step      ace.Phase
		text      string
	}{
		{"ace-curator-shell", ace.PhaseCurator, ""}, {"ace-solver-python", ace.PhaseReflector, ""},
		{"ace-curator-shell", ace.PhaseSkills, `$.step: value must be 'curator'`},
		{"site-crawler", ace.PhaseGenerator, "cannot serve steps"},
		{"writer", ace.PhaseGenerator, "it is an agent"}, {"none", ace.PhaseGenerator, `blueprint "none" not found`},
	} {
		err := engine.CheckStep(lib, c.blueprint, c.step)
		if (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s as %s: %v", c.blueprint, c.step, err)
		}
	}
}

// The inputs in docs/guides/workers.md equal the files next to the programs and fit their schemas, and the
// results there can be parsed.
func TestAdaptersPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/guides/workers.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for i, part := range strings.Split(string(page), "```") {
		if text, ok := strings.CutPrefix(part, "json\n"); ok && i%2 == 1 {
			blocks = append(blocks, text)
		}
	}
	lib := library{blueprint.Library{Dirs: []string{examples}}}
	steps := map[ace.Phase]string{ace.PhaseGenerator: "ace-solver-python",
		ace.PhaseSkills: "ace-solver-python", ace.PhaseReflector: "ace-solver-python",
		ace.PhaseCurator: "ace-curator-shell"}
	if len(blocks) != 2*len(steps) {
		t.Fatalf("%d blocks of JSON", len(blocks))
	}
	for i, step := range ace.Steps()[:len(steps)] {
		file, err := os.ReadFile(filepath.Join(examples, steps[step], string(step)+".json"))
		if err != nil || string(file) != blocks[2*i] {
			t.Errorf("%s: the page shows\n%s\nthe file contains\n%s, %v", step, blocks[2*i], file, err)
		}
		_, check, err := lib.Load(steps[step])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := check(json.RawMessage(blocks[2*i])); err != nil {
			t.Errorf("%s: %v", step, err)
		}
		if f := ace.StepCompleted(step, []byte(blocks[2*i+1])); f.Kind != ace.FactStepCompleted {
			t.Errorf("%s: %+v", step, f.Failure)
		}
	}
}
