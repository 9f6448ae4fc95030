package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/learning/model/llm"
	"acescope/engine/learning/playbook"
	"acescope/sources/detail"
	"acescope/sources/experiments"
)

// paperModel is a model that answers each task with the answers of a script, one for each time that it is
// asked, and keeps what it was asked: the role, and what decides about the protocol.
type paperModel struct {
	answers map[string][]string // by task

	mu    sync.Mutex
	asked map[string][]string // by task
	wrong []string            // requests with other parameters than those of the experiment
}

func (m *paperModel) Complete(_ context.Context, r llm.Request, _ func(string)) (llm.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	system, message := r.SystemText(), r.Messages[0].Text
	task := r.Step.Task.TaskID
	if r.Temperature == nil || *r.Temperature != 0 || r.MaxTokens != 4096 {
		m.wrong = append(m.wrong, fmt.Sprintf("%s: temperature %v, %d tokens", task, r.Temperature,
			r.MaxTokens))
	}
	note := func(role string, parts ...string) {
		for i := 0; i < len(parts); i += 2 {
			if strings.Contains(system+message, parts[i]) {
				role += " " + parts[i+1]
			}
		}
		m.asked[task] = append(m.asked[task], role)
	}
	text := ""
	switch {
	case strings.HasPrefix(system, "You solve one task."):
		n := len(slices.DeleteFunc(slices.Clone(m.asked[task]), func(s string) bool {
			return !strings.HasPrefix(s, "generator")
		}))
		note("generator", "add the carry", "with the reflection", "carry of "+task, "with its bullet")
		text = fmt.Sprintf(`{"reasoning": "attempt %d", "bullet_ids": ["calc-00001"], "final_answer": %q}`,
			n+1,
			m.answers[task][n])
	case strings.HasPrefix(system, "You study how a task was solved"):
		note("reflector", "is RIGHT", "on a right answer", "is WRONG", "on a wrong answer", "42\n</expected",
			"with the label")
		text = `{"key_insight": "add the carry", "bullet_tags": [{"id": "calc-00001", "tag": "harmful"}]}`
	default:
		note("curator", "add the carry", "with the reflection", "80000 tokens at most", "with the budget")
		text = fmt.Sprintf(`{"reasoning": "new", "operations": [{"type": "ADD", "section": "FORMULAS & CALCULATIONS",
			"content": "mind the carry of %s"}]}`, task)
	}
	return llm.Response{Text: text, Stop: llm.StopEnd, Model: "stub"}, nil
}

// paperCalls returns the requests that ace-agent/ace makes for a task: ACE._train_single_sample in its
// ace/ace.py. right says which answers are correct, step counts the tasks from 1.
func paperCalls(right []bool, rounds, step, every int) (calls []string) {
	calls = append(calls, "generator")
	answered := 1
	if right[0] {
		calls = append(calls, "reflector on a right answer with the label")
	} else {
		for range rounds {
			calls = append(calls, "reflector on a wrong answer with the label",
				"generator with the reflection")
			answered++
			if right[answered-1] {
				break
			}
		}
	}
	after := "generator"
	if step%every == 0 {
		calls = append(calls, "curator with the reflection with the budget")
		after += " with its bullet"
	}
	return append(calls, after)
}

// An experiment with the settings of ace-agent/ace asks the model what that program asks, in the same order.
// Its first answers count, and the votes of all reflections.
func TestPaperProtocol(t *testing.T) {
	t.Parallel()
	const every = 2
	scripts := [][]string{
		{"42", "42"},                // right at once
		{"1", "2", "42", "42"},      // right after two reflections
		{"1", "2", "3", "4", "42"},  // right only with the updated playbook, of the next curator
		{"1", "42", "7"},            // wrong afterwards
		{"1", "2", "3", "42", "42"}, // right in the last round
		{"42", "1"},                 // right at once, wrong afterwards
	}
	m := &paperModel{answers: map[string][]string{}, asked: map[string][]string{}}
	for i, script := range scripts {
		m.answers[fmt.Sprintf("paper-e1-%04d", i+1)] = script
	}
	e := open(t, t.TempDir(), llm.New(m, llm.Options{Name: "stub", Model: "stub"}))
	book := "## FORMULAS & CALCULATIONS\n[calc-00001] helpful=0 harmful=0 :: add the columns\n"
	parsed, _, err := playbook.Parse(strings.NewReader(book))
	if err != nil {
		t.Fatal(err)
	}
	hash, err := e.Books.Put(t.Context(), parsed)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := e.Artifacts.PutBytes(t.Context(),
		[]byte(strings.Repeat("{\"context\":\"add\",\"target\":\"42\"}\n", len(scripts))),
		"application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	protocol := ace.Paper.Protocol
	protocol.CurateEvery = every
	in := ace.ExperimentInput{ExperimentID: "paper", DatasetID: "sums", Dataset: ref, Tasks: len(scripts),
		Adapter: ace.Offline, Epochs: 1, Parallel: 1, Provider: "stub", Model: "stub", PlaybookHash: hash,
		Preset: ace.PresetPaper, Protocol: protocol}
	runID, err := e.StartExperiment(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	state, err := experiments.Follow(t.Context(), e.Client, e.Namespace(), ace.ExperimentWorkflowID("paper"),
		runID, nil,
		func(ace.ExperimentInput, experiments.Finished) {})
	if err != nil || state.Status() != ace.Completed {
		t.Fatal(err, state)
	}
	votes := 0
	for i, script := range scripts {
		id := fmt.Sprintf("paper-e1-%04d", i+1)
		var right []bool
		for _, answer := range script {
			right = append(right, answer == "42")
		}
		want := paperCalls(right, protocol.Rounds, i+1, every)
		if !slices.Equal(m.asked[id], want) {
			t.Errorf("%s:\n%q, not\n%q", id, m.asked[id], want)
		}
		d, err := detail.Read(t.Context(), e.Client, ace.WorkflowID(id), "")
		if err != nil {
			t.Fatal(err)
		}
		answers := []string{d.Phase.Answer}
		for _, again := range d.Phase.Passes {
			answers = append(answers, again.Answer)
		}
		if !slices.Equal(answers, script) || d.Phase.Verdict != ace.VerdictOf(true, &right[0]) {
			t.Errorf("%s: answers %q, verdict %s", id, answers, d.Phase.Verdict)
		}
		requests := 0
		for _, st := range d.Phase.Steps {
			for _, log := range st.CallLogs() {
				requests += log.Requests
			}
		}
		if requests != len(want) {
			t.Errorf("%s: %d requests on record, not %d", id, requests, len(want))
		}
		votes += strings.Count(strings.Join(want, " "), "reflector")
	}
	if len(m.wrong) > 0 {
		t.Errorf("%q", m.wrong)
	}
	epoch := state.Progress.Epochs[0]
	if epoch.Correct != 2 || epoch.Wrong != 4 || epoch.Regenerated != (ace.Answers{Answers: 4, Correct: 3}) ||
		epoch.After != (ace.Answers{Answers: 6, Correct: 4}) {
		t.Errorf("%+v", epoch)
	}
	after, err := e.Books.Get(t.Context(), state.Progress.After)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := after.Find("calc-00001"); b.Harmful != votes || len(after.Bullets) != 1+len(scripts)/every {
		t.Errorf("%d votes, not %d; %d bullets", b.Harmful, votes, len(after.Bullets))
	}
}

// An online experiment that learns task by task measures each window with the playbook before it, and learns
// from answers with the newest one. Without a label, nothing is answered again.
func TestSequentialWindow(t *testing.T) {
	t.Parallel()
	m := &paperModel{answers: map[string][]string{}, asked: map[string][]string{}}
	for i := range 4 {
		m.answers[fmt.Sprintf("window-e1-%04d", i+1)] = []string{"1", "42", "42"}
	}
	e := open(t, t.TempDir(), llm.New(m, llm.Options{Name: "stub", Model: "stub"}))
	ref, err := e.Artifacts.PutBytes(t.Context(),
		[]byte(strings.Repeat("{\"context\":\"add\",\"target\":\"42\"}\n", 3)+
			"{\"context\":\"add\"}\n"), "application/jsonl")
	if err != nil {
		t.Fatal(err)
	}
	in := ace.ExperimentInput{ExperimentID: "window", DatasetID: "sums", Dataset: ref, Tasks: 4,
		Adapter: ace.Online,
		Window:  2, Sequential: true, Epochs: 1, Parallel: 1, Provider: "stub", Model: "stub",
		Protocol: ace.Protocol{Sampling: ace.Paper.Sampling, NoSkills: true}}
	runID, err := e.StartExperiment(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	state, err := experiments.Follow(t.Context(), e.Client, e.Namespace(), ace.ExperimentWorkflowID("window"),
		runID, nil,
		func(ace.ExperimentInput, experiments.Finished) {})
	if err != nil || state.Status() != ace.Completed {
		t.Fatal(err, state)
	}
	learn := []string{"generator", "reflector on a wrong answer with the label",
		"curator with the reflection"}
	again := []string{"generator", "generator", "reflector on a right answer with the label",
		"curator with the reflection"}
	unknown := []string{"generator", "generator", "reflector", "curator with the reflection"}
	for i, want := range [][]string{learn, again, learn, unknown} {
		if got := m.asked[fmt.Sprintf("window-e1-%04d", i+1)]; !slices.Equal(got, want) {
			t.Errorf("task %d: %q, not %q", i+1, got, want)
		}
	}
	if epoch := state.Progress.Epochs[0]; epoch.Wrong != 3 || epoch.Unlabeled != 1 {
		t.Errorf("%+v", epoch)
	}
	second, err := detail.Read(t.Context(), e.Client, ace.WorkflowID("window-e1-0002"), "")
	if err != nil || second.Input.PlaybookHash == second.Input.LearnFrom || len(second.Phase.Passes) != 1 {
		t.Errorf("%+v, %v", second.Input, err)
	}
}
