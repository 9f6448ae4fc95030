//go:build unix

package activities

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/sdk/testsuite"

	"acescope/engine/flow"
	"acescope/engine/internal/redact"
	"acescope/engine/store/artifact"
	"acescope/engine/temporal/operation"
)

// TestCommands runs the programs of flows.
func TestCommands(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "outside")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SECRET_KEY", "hush-hush-hush")
	store, err := artifact.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := &Activities{Artifacts: store, secrets: redact.OfProcess()}
	call := func(c flow.CommandCall) (r flow.CommandResult, err error) {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		if err := a.RegisterOperations(env); err != nil {
			t.Fatal(err)
		}
		c.Directory = dir
		parameters, _ := json.Marshal(flow.Parameters{Command: &c})
		v, err := env.ExecuteActivity(operation.Action.Activity(), operation.Request{OperationID: "op.a.-.1",
			Type: operation.Action, Step: "a", Occurrence: 1, RunKey: "k", Parameters: parameters})
		if err != nil {
			return r, err
		}
		var out operation.Result
		if err := v.Get(&out); err != nil {
			return r, err
		}
		return r, json.Unmarshal(out.Value, &r)
	}
	sh := func(script string) flow.CommandCall {
		return flow.CommandCall{Args: []string{"sh", "-c", script}, Allowed: []int{0}}
	}
	if r, err := call(sh("echo out; echo err >&2; exit 3")); err != nil || r.ExitCode != 3 ||
		r.Stdout != "out\n" || r.Stderr != "err\n" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := call(sh("env; echo hush-hush-hush")); err != nil ||
		strings.Contains(r.Stdout, "hush-hush") ||
		strings.Contains(r.Stdout, "SECRET_KEY=") ||
		!strings.Contains(r.Stdout, "ACESCOPE_OPERATION_KEY=default-test-workflow-id/k/op.a.-.1") {
		t.Errorf("%+v, %v", r, err)
	}
	large, err := call(sh("head -c 100000 /dev/zero | tr '\\0' x"))
	if err != nil || large.StdoutRef == nil || large.StdoutRef.Size != 100000 ||
		len(large.Stdout) > flow.MaxOutput+10 {
		t.Errorf("%+v, %v", large.StdoutRef, err)
	}
	decoded := sh(`echo '{"a": 1}'`)
	decoded.JSON = true
	if r, err := call(decoded); err != nil || string(r.JSON) != `{"a":1}` {
		t.Errorf("%+v, %v", r, err)
	}
	broken := sh(`echo '{'`)
	broken.JSON = true
	outside := sh("pwd")
	outside.Within = "outside"
	for want, c := range map[string]flow.CommandCall{
		"is not JSON": broken, "leaves": outside,
		"acescope-no-such-program": {Args: []string{"acescope-no-such-program"}},
	} {
		if _, err := call(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	a.Withheld = "not on a cluster"
	if _, err := call(sh("touch started")); err == nil ||
		!strings.Contains(err.Error(), "sh is not started: not on a cluster") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
		t.Error("a withheld program was started")
	}
}
