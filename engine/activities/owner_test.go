package activities

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
)

// Experiments with one id on different servers do not share the branch of a data directory. A branch of an
// older version belongs to the server that uses it first.
func TestBranchBelongsToOneServer(t *testing.T) {
	books, err := playbook.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := books.Start(t.Context(), "old", ""); err != nil {
		t.Fatal(err)
	}
	cluster := func(id string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return id, nil }
	}
	for _, c := range []struct {
		cluster func(context.Context) (string, error)
		branch  string
		refused string
	}{
		{nil, "t", ""},
		{nil, "t", ""},
		{cluster("c1"), "t", `"t" is reserved for the server of the data directory, this server is namespace default-test-namespace of cluster c1; choose another experiment id`},
		{cluster("c1"), "old", ""},
		{cluster("c1"), "old", ""},
		{cluster("c2"), "old", `"old" is reserved for namespace default-test-namespace of cluster c1`},
		{nil, "old", `"old" is reserved for namespace`},
	} {
		a := &Activities{Books: books, Cluster: c.cluster}
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		a.register(env)
		_, err := env.ExecuteActivity(ace.ActivityHead, ace.HeadInput{Branch: c.branch})
		final, ok := errors.AsType[*temporal.ApplicationError](err)
		if c.refused == "" && err != nil || c.refused != "" &&
			(!ok || !final.NonRetryable() || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s: %v", c.branch, err)
		}
	}
}
