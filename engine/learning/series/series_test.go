package series

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
)

func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	one = "## FORMULAS & CALCULATIONS\n[calc-00001] helpful=0 harmful=0 :: Add A\n\n## OTHERS"
	two = "## FORMULAS & CALCULATIONS\n[calc-00001] helpful=2 harmful=1 :: Add A\n" +
		"[calc-00002] helpful=0 harmful=0 :: Divide B\n\n## OTHERS"
)

// runFiles is a run folder as ace/ace.py and logger.py of ace-agent/ace at 11fc5f0 write it: four steps, a
// snapshot and an evaluation every two.
func runFiles() map[string]string {
	return map[string]string{
		"run_config.json": `{"task_name": "t", "mode": "offline", "config": {"num_epochs": 1, "save_steps": 2}}`,
		"intermediate_playbooks/epoch_1_step_2_playbook.txt": one,
		"intermediate_playbooks/epoch_1_step_4_playbook.txt": two,
		"intermediate_playbooks/epoch_1_final_playbook.txt":  two,
		"intermediate_playbooks/notes.txt":                   "x",
		"final_playbook.txt":                                 two,
		"best_playbook.txt":                                  one,
		"initial_test_results.json": `{"test_results": {"accuracy": 0.5, "correct": 1, "total": 2, "no_answer": 0},
 "error_log": {"accuracy": 0.5, "errors": [{"index": 1, "prediction": "3", "ground_truth": "4"}]}}`,
		"final_test_results.json": `{"test_results": {"accuracy": 1.0, "correct": 2, "total": 2, "no_answer": 0},
 "error_log": {"accuracy": 1.0, "errors": []}}`,
		"train_results.json": `{"best_accuracy": 0.75, "results": [
 {"epoch": 1, "step": 2, "train_result": {"pre_train_accuracy": 0.5, "post_train_accuracy": 1.0},
  "val_result": {"accuracy": 0.75, "correct": 3, "total": 4, "no_answer": 1}},
 {"epoch": 1, "step": 3, "train_result": {"pre_train_accuracy": 0.5, "post_train_accuracy": 1.0}, "val_result": {}}]}`,
		"val_results.json": `[{"epoch": 1, "step": 2, "val_results": {}, "error_log": {"errors": [
 {"index": 3, "prediction": 7, "ground_truth": "8"}]}}]`,
		"final_results.json": "{}",
		"curator_operations_diff.jsonl": `{"timestamp": "2026-01-02T03:04:05.000006", "operation_type": "ADD", ` +
			`"reason": "missing",` +
			` "section": "formulas_and_calculations", "content": "Add A", "content_length": 5, "call_id": "train_e_1_s_1"}
{"timestamp": "2026-01-02T03:05:05", "operation_type": "UPDATE", "reason": "", ` +
			`"bullet_id": "calc-00001", "content": "x",` +
			` "call_id": "train_e_1_s_3"}
{"timestamp": "2026-01-02T03:06:05", "operation_type": "ADD", "reason": "", "section": "a", "content": "never seen",` +
			` "call_id": "train_e_1_s_4"}
not JSON
`,
		"bullet_usage_log.jsonl": `{"epoch": 1, "step": 2, ` +
			`"bullet_ids_used": ["calc-00001", "calc-00001"], "is_correct": true}
{"epoch": 1, "step": 2, "bullet_ids_used": ["calc-00001"], "is_correct": true, "reflection_summary": "good"}
{"epoch": 1, "step": 3, "bullet_ids_used": ["calc-00001", 7], "is_correct": false}
{}
`,
	}
}

func TestRunFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ace_run_20260102_030405_t_offline")
	write(t, dir, runFiles())
	r, err := Read([]string{dir}, OrderAuto)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range r.Steps {
		got = append(got, fmt.Sprint(s.TaskID, " ", s.Names, " ", scoreTexts(s.Scores), " ", s.Cited, " ",
			s.Verdicts))
	}
	want := []string{
		"epoch_1_step_2 [best] [validation accuracy 0.750 (3 of 4 correct) training before learning accuracy 0.500 " +
			"training after learning accuracy 1.000 test accuracy 1.000 (2 of 2 correct)] [{calc-00001 1 1}] [true]",
		"epoch_1_step_4 [] [] [{7 1 0} {calc-00001 1 0}] [false]",
		"epoch_1_final [final] [] [] []",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	wrong := playbook.WrongAnswer{Item: 3, Answer: "7", Expected: "8"}
	if w := r.Steps[0].Scores[0].Wrong; len(w) != 1 || w[0] != wrong {
		t.Error(w)
	}
	if s := r.Origin.Scores; len(s) != 1 || s[0].Correct != 1 || len(s[0].Wrong) != 1 {
		t.Error(s)
	}
	if !strings.HasPrefix(string(r.Origin.Config), `{"task_name":"t","mode"`) {
		t.Errorf("%s", r.Origin.Config)
	}
	var losses []string
	for _, l := range r.Losses {
		losses = append(losses, fmt.Sprintf("%s %d", l.Field, l.Count))
	}
	if got := strings.Join(losses, ", "); got != "intermediate_playbooks/notes.txt 1, train_results.json 1, "+
		"curator_operations_diff.jsonl 1, bullet_usage_log.jsonl 1, bullet_usage_log.jsonl 1, final_results.json 1" {
		t.Error(got)
	}
	testAppend(t, r)
}

// The health check judges an imported run by the verdicts and evaluations in its files.
func TestImportedHealth(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	var usage strings.Builder
	for step := 1; step <= 60; step++ { // only the first 15 answers are correct
		fmt.Fprintf(&usage, `{"timestamp": "2026-01-02T03:%02d:00", "epoch": 1, "step": %d, "bullet_ids_used": [],`+
			` "is_correct": %t}`+"\n", step-1, step, step <= 15)
	}
	write(t, dir, map[string]string{
		"intermediate_playbooks/epoch_1_step_20_playbook.txt": "## A\n[a-00001] helpful=15 harmful=0 :: One\n",
		"intermediate_playbooks/epoch_1_step_60_playbook.txt": "## A\n[a-00001] helpful=55 harmful=0 :: One\n",
		"train_results.json": `{"results": [{"epoch": 1, "step": 20,
			"val_result": {"accuracy": 0.05, "correct": 2, "total": 40}}]}`,
		"bullet_usage_log.jsonl": usage.String(),
	})
	r, err := Read([]string{dir}, OrderAuto)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	store, err := playbook.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Append(ctx, &r.Series); err != nil {
		t.Fatal(err)
	}
	known, err := store.ImportedEvidence(r.Branch)
	if err != nil || len(known.Outcomes) != 60 || len(known.Evaluations) != 1 {
		t.Fatalf("%+v, %v", known, err)
	}
	all := known.Outcomes
	for _, c := range []struct {
		version, tasks int
		want           string
	}{{1, 20, "held-out-gap"}, {2, 60, "zero-accuracy flat-accuracy"}} {
		h := playbook.NewHistory(r.Branch)
		if err := store.Read(ctx, h, c.version); err != nil {
			t.Fatal(err)
		}
		known.Outcomes = all[:c.tasks]
		if last := known.Outcomes[c.tasks-1].At; !last.Equal(r.Steps[c.version-1].At) {
			t.Errorf("the task before version %d is of %v", c.version, last)
		}
		var kinds []string
		for _, f := range playbook.Check(r.Steps[c.version-1].Book, h, known).Findings {
			kinds = append(kinds, string(f.Kind))
		}
		if got := strings.Join(kinds, " "); got != c.want {
			t.Errorf("version %d: %s, want %s", c.version, got, c.want)
		}
	}
}

// testAppend imports the series of TestRunFolder.
func testAppend(t *testing.T, r *Result) {
	ctx := context.Background()
	s, err := playbook.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	whole := r.Steps
	r.Steps = whole[:1]
	for _, want := range []struct {
		steps, added int
		isNew        bool
	}{{1, 1, true}, {3, 2, false}, {3, 0, false}} {
		r.Steps = whole[:want.steps]
		added, isNew, err := s.Append(ctx, &r.Series)
		if err != nil || added != want.added || isNew != want.isNew {
			t.Fatal(added, isNew, err)
		}
	}
	page, err := s.Page(r.Branch, 1, 9)
	if err != nil {
		t.Fatal(err)
	}
	first := page[0].Operations
	if len(first) != 1 || first[0].BulletID != "calc-00001" || first[0].Reason != "train_e_1_s_1: missing" {
		t.Error(first)
	}
	outcomes := map[ace.Outcome]int{}
	for _, op := range page[1].Operations {
		outcomes[op.Outcome]++
	}
	if outcomes[ace.OutcomeAccepted] != 2 || outcomes[ace.OutcomeIgnored] != 1 ||
		outcomes[ace.OutcomeRejected] != 1 {
		t.Error(outcomes)
	}
	if n, err := s.Named(r.Branch, "best"); n != 1 || err != nil {
		t.Error(n, err)
	}
	h := playbook.NewHistory(r.Branch)
	if err := s.Read(ctx, h, -1); err != nil {
		t.Fatal(err)
	}
	if l, ok := h.Bullet("calc-00001"); !ok || l.Added.TaskID != "epoch_1_step_2" || l.Bullet.Helpful != 2 ||
		l.Tags != 1 {
		t.Error(l, ok)
	}
	r.Steps = append(whole[:2:2], whole[0])
	if _, _, err := s.Append(ctx, &r.Series); !errors.Is(err, playbook.ErrDiffers) {
		t.Error(err)
	}
}

// TestSnapshots imports files whose changes no operation of the curator can express: an order, a decreased
// counter, a repeated ID, an empty section. Each version has exactly the bullets of its file.
func TestSnapshots(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"book_step10.txt": "## A\n[a-00001] helpful=5 harmful=0 :: One\n[a-00002] helpful=0 harmful=0 :: Two\n## B\n",
		"book_step9.txt": "## B\n[b-00009] helpful=0 harmful=0 :: Nine\n## A\n[a-00002] helpful=0 harmful=0 :: Two\n" +
			"[a-00001] helpful=7 harmful=0 :: One\n[a-00001] helpful=0 harmful=0 :: Another",
		"book_step100.txt": "## A\n[a-00003] helpful=0 harmful=0 :: Three\n[a-00001] helpful=5 harmful=0 :: One\n" +
			"[a-00001] helpful=0 harmful=0 :: Another",
		"readme": "x",
	})
	r, err := Read([]string{dir}, OrderAuto)
	if err != nil {
		t.Fatal(err)
	}
	books := t.TempDir()
	s, err := playbook.OpenStore(books)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if added, _, err := s.Append(ctx, &r.Series); added != 2 || err != nil {
		t.Fatal(added, err)
	}
	s = playbook.OpenStoreReadOnly(books) // reads all from disk
	for i, name := range []string{"book_step9.txt", "book_step10.txt", "book_step100.txt"} {
		hash, err := s.At(r.Branch, i)
		if err != nil {
			t.Fatal(err)
		}
		book, err := s.Get(ctx, hash)
		if err != nil {
			t.Fatal(err)
		}
		f, err := readSnapshot(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(f.book.Canonical()) != string(book.Canonical()) {
			t.Errorf("%s:\n%s\n%s", name, f.book.Canonical(), book.Canonical())
		}
		h := playbook.NewHistory(r.Branch)
		if err := s.Read(ctx, h, i); err != nil {
			t.Fatal(err)
		}
		helpful, content := 0, 0
		for _, b := range book.Bullets {
			helpful += b.Helpful
			content += len(b.Content)
		}
		sizes := h.Sizes()
		if now := sizes[len(sizes)-1]; now.Helpful != helpful || now.Bytes != content ||
			now.Bullets != len(book.Bullets) {
			t.Errorf("%s: %+v, want %d bullets, %d helpful, %d bytes", name, now, len(book.Bullets), helpful,
				content)
		}
	}
	if _, ok := r.Start.Find("a-00001.2"); !ok {
		t.Error(r.Start)
	}
}

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		names, want string
		by          string
	}{
		{"final.txt step150_2a0.txt initial_465e.txt step30_2a0.txt",
			"initial_465e.txt step30_2a0.txt step150_2a0.txt final.txt",
			"the numbers in the names"},
		{"epoch_2_step_5.txt epoch_1_final.txt epoch_1_step_50.txt",
			"epoch_1_step_50.txt epoch_1_final.txt epoch_2_step_5.txt",
			"the numbers in the names"},
		{"b10.txt b9.txt", "b9.txt b10.txt", "the numbers in the names"},
		{"zebra.txt ant.txt", "ant.txt zebra.txt", "the modification times"},
		{"a_step1.txt b_step1.txt", "a_step1.txt b_step1.txt", "the modification times"},
	} {
		var files []snapshotFile
		for name := range strings.FieldsSeq(c.names) {
			files = append(files, snapshotFile{path: name, name: name})
		}
		by, err := sortFiles(files, OrderAuto)
		var got []string
		for _, f := range files {
			got = append(got, f.name)
		}
		if strings.Join(got, " ") != c.want || by != c.by || err != nil {
			t.Errorf("%s: %v by %s, %v", c.names, got, by, err)
		}
	}
	files := []snapshotFile{{path: "zebra", name: "zebra"}, {path: "ant", name: "ant"}}
	if _, err := sortFiles(files, OrderName); !errors.Is(err, ErrInput) {
		t.Error(err)
	}
}

func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"run/run_config.json": "{", "eval/run_config.json": "{}",
		"none/x.bin": "x",
		"text/a.txt": "no playbook"})
	for _, name := range []string{"run", "eval", "none", "text", "text/a.txt"} {
		_, err := Read([]string{filepath.Join(dir, name)}, OrderAuto)
		if !errors.Is(err, ErrInput) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzRunFolder checks that an import reads each snapshot whatever the logs and results contain.
func FuzzRunFolder(f *testing.F) {
	files := runFiles()
	f.Add(files["curator_operations_diff.jsonl"], files["bullet_usage_log.jsonl"],
		files["train_results.json"],
		files["val_results.json"], files["run_config.json"], two)
	f.Fuzz(func(t *testing.T, operations, usage, train, val, config, last string) {
		dir := t.TempDir()
		write(t, dir, files)
		write(t, dir, map[string]string{"curator_operations_diff.jsonl": operations,
			"bullet_usage_log.jsonl": usage,
			"train_results.json":     train, "val_results.json": val, "run_config.json": config,
			"final_playbook.txt": last})
		r, err := Read([]string{dir}, OrderAuto)
		if err != nil {
			return
		}
		if got := r.Summary(); got.Merges != len(r.Steps) || len(r.Files) != len(r.Steps) {
			t.Fatal(got, len(r.Files), len(r.Steps))
		}
		for _, step := range r.Steps {
			again := &playbook.Playbook{}
			if err := json.Unmarshal(step.Book.Canonical(), again); err != nil ||
				again.Hash() != step.Book.Hash() {
				t.Fatal(err)
			}
		}
	})
}
