package server

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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

	t.Run("queries", func(t *testing.T) { severalQueries(t, n, c) })

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
		if _, err := other.CountWorkflow(testContext(t),
			&workflowservice.CountWorkflowExecutionsRequest{}); err != nil {
			t.Error(err)
		}
	})

	// The SDK's own build id costs a checksum of the whole program at every start.
	t.Run("build id", func(t *testing.T) {
		work(t, c)
		start(t, c, "built")
		finish(t, c, "built")
		events := c.GetWorkflowHistory(testContext(t), "built", "", false,
			enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
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

// severalQueries queries a run by several clients while its worker has a workflow task. The server keeps the
// queries until the task is completed, here until they time out, and rejects none.
func severalQueries(t *testing.T, n *Node, c client.Client) {
	run, err := c.ExecuteWorkflow(testContext(t), client.StartWorkflowOptions{ID: "queried",
		TaskQueue: "manual"}, echo)
	if err != nil {
		t.Fatal(err)
	}
	take := func() []byte {
		task, err := c.WorkflowService().PollWorkflowTaskQueue(testContext(t),
			&workflowservice.PollWorkflowTaskQueueRequest{
				Namespace: ace.DefaultNamespace, TaskQueue: &taskqueuepb.TaskQueue{Name: "manual"}})
		if err != nil {
			t.Fatal(err)
		}
		return task.TaskToken
	}
	_, err = c.WorkflowService().RespondWorkflowTaskCompleted(testContext(t),
		&workflowservice.RespondWorkflowTaskCompletedRequest{Namespace: ace.DefaultNamespace,
			TaskToken: take()})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SignalWorkflow(testContext(t), run.GetID(), "", "say", "x"); err != nil {
		t.Fatal(err)
	}
	take()
	var rejected atomic.Int32
	opts := n.ClientOptions()
	opts.ConnectionOptions.DialOptions = append(opts.ConnectionOptions.DialOptions,
		grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
				invoke grpc.UnaryInvoker,
				o ...grpc.CallOption) error {
				err := invoke(ctx, method, req, reply, cc, o...)
				if status.Code(err) == codes.ResourceExhausted {
					rejected.Add(1)
				}
				return err
			}))
	counted, err := client.DialContext(testContext(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer counted.Close()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if _, err := counted.QueryWorkflow(ctx, run.GetID(), "", client.QueryTypeStackTrace); err == nil {
				t.Error("the query was answered")
			}
		})
	}
	wg.Wait()
	if n := rejected.Load(); n > 0 {
		t.Errorf("%d queries were rejected", n)
	}
}
