package server

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
)

func TestHost(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a dir?with%20odd#name")
	n := join(t, Options{Dir: dir})
	if n.Role() != Hosting {
		t.Fatalf("role is %v", n.Role())
	}
	e, ok := Lookup(dir)
	if !ok || e != n.Endpoint() || e.PID != os.Getpid() || e.Version != "1.2.3" || e.Port() == 0 {
		t.Errorf("endpoint.json has %+v, the node %+v", e, n.Endpoint())
	}
	c := dial(t, n)

	t.Run("namespace", func(t *testing.T) {
		got, err := c.WorkflowService().DescribeNamespace(testContext(t),
			&workflowservice.DescribeNamespaceRequest{Namespace: ace.DefaultNamespace})
		if err != nil {
			t.Fatal(err)
		}
		if days := got.Config.WorkflowExecutionRetentionTtl.AsDuration().Hours() / 24; days < 365 {
			t.Errorf("retention is %v days", days)
		}
		var names []string
		for field, name := range got.Config.CustomSearchAttributeAliases {
			if field[:len("Keyword")] != "Keyword" {
				t.Errorf("%s is a %s", name, field)
			}
			names = append(names, name)
		}
		want := ace.SearchAttributes()
		slices.Sort(names)
		slices.Sort(want)
		if !slices.Equal(names, want) {
			t.Errorf("search attributes are %v, want %v", names, want)
		}
	})

	t.Run("search", func(t *testing.T) {
		ctx := testContext(t)
		attributes := temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword(ace.AttrExperiment).ValueSet("finance-7"))
		_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: "found", TaskQueue: queue, TypedSearchAttributes: attributes}, echo)
		if err != nil {
			t.Fatal(err)
		}
		await(t, "the run in a list", func() bool {
			got, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
				Query: `ExperimentId = "finance-7"`})
			return err == nil && len(got.Executions) == 1 && got.Executions[0].Execution.WorkflowId == "found"
		})
	})

	t.Run("environment", func(t *testing.T) {
		opts, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{
			DisableFile: true, EnvLookup: environment(n.Env())})
		if err != nil {
			t.Fatal(err)
		}
		other, err := client.DialContext(testContext(t), opts)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if _, err := other.CountWorkflow(testContext(t), &workflowservice.CountWorkflowExecutionsRequest{}); err != nil {
			t.Error(err)
		}
	})

	// The SDK's own build id costs a checksum of the whole program at every start.
	t.Run("build id", func(t *testing.T) {
		work(t, c)
		start(t, c, "built")
		finish(t, c, "built")
		events := c.GetWorkflowHistory(testContext(t), "built", "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			if err != nil {
				t.Fatal(err)
			}
			if done := e.GetWorkflowTaskCompletedEventAttributes(); done != nil {
				if id := done.GetWorkerVersion().GetBuildId(); !strings.HasPrefix(id, "acescope-1.2.3") {
					t.Errorf("build id is %q", id)
				}
				return
			}
		}
		t.Error("no workflow task was completed")
	})

	t.Run("modes", func(t *testing.T) {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

type environment []EnvVar

func (e environment) Environ() []string {
	var lines []string
	for _, v := range e {
		lines = append(lines, v.Name+"="+v.Value)
	}
	return lines
}

func (e environment) LookupEnv(name string) (string, bool) {
	for _, v := range e {
		if v.Name == name {
			return v.Value, true
		}
	}
	return "", false
}
