package run

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"acescope/engine/runner"
)

// TestDocument holds that docs/tasks.md has a word on every row of document 004, and names only
// tests that there are.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/tasks.md")
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 18; n++ {
		if !strings.Contains(string(text), fmt.Sprintf("\n| S4.%d | ", n)) {
			t.Errorf("there is no row S4.%d", n)
		}
	}
	there := tests(t)
	named := regexp.MustCompile("`(Test[A-Za-z0-9]+|[a-z]+\\.txt)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 50 {
		t.Errorf("it names %d tests", len(named))
	}
	for _, m := range named {
		if !there[m[1]] {
			t.Errorf("there is no test %s", m[1])
		}
	}
	for row := range strings.Lines(string(text)) {
		if strings.HasPrefix(row, "| S4.") && !strings.Contains(row, "`Test") {
			t.Errorf("no test is named: %s", row)
		}
	}
}

// tests are the names of all test functions and scripts of the repository.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	names := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(name, ".") && strings.Trim(name, ".") != "":
			return fs.SkipDir
		case filepath.Base(filepath.Dir(path)) == "script":
			names[name] = true
		case strings.HasSuffix(name, "_test.go"):
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range function.FindAllStringSubmatch(string(data), -1) {
				names[m[1]] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// The document's run had no parent, no mode, no runner and no error.
func TestRunIsWhole(t *testing.T) {
	in := program()
	in.ParentSessionID, in.ParentRunID, in.Mode, in.CreatedAt = "ses_2", "r0", AsyncCallback, at
	in.Blueprint.Idempotent, in.Blueprint.OnRunnerLoss = false, ""
	failed := &Result{Status: Failed, Reason: ExitCode, Error: "it ended with exit code 2", Runner: "lnch_7"}
	s := fold(Started(in), task, claim(7, 1), task, Given(), task)
	if s.Claim == nil || s.Claim.RunnerID != "lnch_7" || s.TimeoutAt.IsZero() {
		t.Fatalf("while it goes on: %s", text(t, s))
	}
	s.Apply(Fact{Kind: FactEnded, Claim: 7, Result: failed})
	s.Apply(task)
	said := text(t, s)
	for _, want := range []string{`"run_id":"r1"`, `"session_id":"ses_1"`, `"type":"execute_task"`, `"status":"failed"`, `"task_name":"backup"`,
		`"parent_session_id":"ses_2"`, `"parent_run_id":"r0"`, `"mode":"async_callback"`, `"created_at":`, `"executor_type":"` + runner.Deterministic + `"`,
		`"runner_id":"lnch_7"`, `"reason":"exit_code"`, `"error":"it ended with exit code 2"`} {
		if !strings.Contains(said, want) {
			t.Errorf("%s is missing in %s", want, said)
		}
	}
}
