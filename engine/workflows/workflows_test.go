package workflows_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/flow"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/engine/workflows"
)

// types records the names of registered workflows.
type types struct {
	worker.WorkflowRegistry
	names []string
}

func (t *types) RegisterWorkflowWithOptions(_ any, o workflow.RegisterOptions) {
	t.names = append(t.names, o.Name)
}

// TestRegister checks that verify, which covers what Register registers, covers every workflow of the
// contract and every workflow that a worker of acescope executes: no other code registers one.
func TestRegister(t *testing.T) {
	var got types
	workflows.Register(&got)
	want := []string{ace.TaskWorkflow, ace.ExperimentWorkflow, session.Workflow, run.Workflow,
		runner.Workflow, flow.Workflow,
		runner.DispatcherWorkflow}
	if !slices.Equal(got.names, want) {
		t.Errorf("registered %q, want %q", got.names, want)
	}
	allowed := []string{"engine/workflows/", "engine/temporal/replay/", "engine/temporal/operation/example/"}
	err := fs.WalkDir(os.DirFS("../.."), ".", func(path string, d fs.DirEntry, err error) error {
		isAllowed := func(dir string) bool { return strings.HasPrefix(path, dir) }
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != ".":
			return fs.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") ||
			slices.ContainsFunc(allowed, isAllowed):
			return nil
		}
		code, err := os.ReadFile(filepath.Join("../..", path))
		for _, call := range []string{".RegisterWorkflow(", ".RegisterWorkflowWithOptions(",
			".RegisterDynamicWorkflow("} {
			if strings.Contains(string(code), call) {
				t.Errorf("%s calls %s: register workflows in engine/workflows", path, call[1:])
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
