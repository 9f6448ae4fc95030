package server

import (
	"slices"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	sqliteschema "go.temporal.io/server/schema/sqlite"

	"acescope/engine/ace"
	"acescope/engine/temporal/searchattr"
)

// A directory of an older version gets the missing search attributes and keeps its contents,
// and the started server accepts the attributes.
func TestAttributesOfOldDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := stamp(dir, "0.5.0"); err != nil {
		t.Fatal(err)
	}
	old := []string{ace.AttrExperiment, ace.AttrDataset, ace.AttrModel, ace.AttrAdapter, ace.AttrExit,
		ace.AttrTask, ace.AttrPhase}
	makeOld(t, dir, old)
	n := join(t, Options{Dir: dir})
	c := dial(t, n)
	ctx := testContext(t)
	if gap, err := searchattr.ReadGap(ctx, c.WorkflowService(), ace.DefaultNamespace); err != nil ||
		len(gap.All()) > 0 {
		t.Fatalf("missing %v: %v", gap, err)
	}
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "found", TaskQueue: queue,
		TypedSearchAttributes: temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword(ace.AttrBlueprint).ValueSet("site-crawler"),
			temporal.NewSearchAttributeKeyKeyword(ace.AttrTask).ValueSet("ses_1"))}, echo)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the run in a list", func() bool {
		got, err := c.ListWorkflow(ctx,
			&workflowservice.ListWorkflowExecutionsRequest{Query: `BlueprintName = "site-crawler" AND TaskId = "ses_1"`})
		return err == nil && len(got.Executions) == 1 && got.Executions[0].Execution.RunId == run.GetRunID()
	})
	if got := ace.SearchAttributes(); !slices.Equal(got[:len(old)], old) {
		t.Errorf("old attributes do not come first: %v", got)
	}
}

// makeOld creates a database as an older version did.
func makeOld(t *testing.T, dir string, attributes []string) {
	t.Helper()
	cfg := sqlConfig(dir)
	if err := createTables(cfg); err != nil {
		t.Fatal(err)
	}
	types := map[string]enumspb.IndexedValueType{}
	for _, name := range attributes {
		types[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	namespace, err := sqliteschema.NewNamespaceConfig(clusterName, ace.DefaultNamespace, false, types)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqliteschema.CreateNamespaces(cfg, namespace); err != nil {
		t.Fatal(err)
	}
}
