package engine_test

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/runs"
	"acescope/sources/system"
)

// oldVersion is that of the server that [asOldServer] imitates.
const oldVersion = "1.24.2"

// newerCalls are those of the frontend's methods that such a server lacks.
var newerCalls = regexp.MustCompile(`Deployment|Nexus|ExecuteMultiOperation|ShutdownWorker|Heartbeat$|WorkerConfig|` +
	`DescribeWorker$|ListWorkers|CountWorkers|Pause|ActivityExecution|UpdateActivityOptions|ResetActivity|WorkflowRule`)

// asOldServer answers as an old server does: without newer methods, capabilities and groups of counts.
func asOldServer(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker,
	opts ...grpc.CallOption) error {
	name := path.Base(method)
	if newerCalls.MatchString(name) && name != "RecordActivityTaskHeartbeat" {
		return status.Error(codes.Unimplemented, "unknown method "+name)
	}
	if q, ok := req.(*workflowservice.CountWorkflowExecutionsRequest); ok && strings.Contains(q.Query, "GROUP BY") {
		return status.Error(codes.InvalidArgument, "operation is not supported: 'group by' clause")
	}
	if err := call(ctx, method, req, reply, cc, opts...); err != nil {
		return err
	}
	switch r := reply.(type) {
	case *workflowservice.GetSystemInfoResponse:
		r.ServerVersion = oldVersion
		r.Capabilities = &workflowservice.GetSystemInfoResponse_Capabilities{SignalAndQueryHeader: true,
			InternalErrorDifferentiation: true, ActivityFailureIncludeHeartbeat: true,
			EncodedFailureAttributes: true, UpsertMemo: true, EagerWorkflowStart: true, SdkMetadata: true}
	case *workflowservice.GetClusterInfoResponse:
		r.ServerVersion = oldVersion
	}
	return nil
}

// TestOldServer checks that runs complete on an old server, and that they can be listed, counted and checked.
func TestOldServer(t *testing.T) {
	newCluster(t)
	e := openEngine(t, engine.Options{DataDir: t.TempDir(), Worker: true, Remote: &engine.Remote{},
		Intercept: asOldServer})
	if _, err := result(t, e, ace.TaskInput{TaskID: "old", Prompt: "What is 1 and 1?", Provider: "builtin",
		Model: "rules", Adapter: ace.Offline}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		counts, err := runs.CountRuns(t.Context(), e.Client, "")
		if err == nil && (counts.Total != 1 || counts.Status[ace.Completed] != 1) {
			err = fmt.Errorf("%+v", counts)
		}
		return err
	})
	listed := 0
	err := runs.List(t.Context(), e.Client, "", 10, func(r runs.Run) error {
		listed++
		if r.TaskID != "old" || r.Status != ace.Completed || r.Close.Before(time.Now().Add(-time.Hour)) {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	if err != nil || listed != 1 {
		t.Errorf("%d runs listed, %v", listed, err)
	}
	s := system.Read(t.Context(), cluster.Deps{Client: e.Client, Namespace: e.Namespace()},
		cluster.Connection{State: cluster.ConnReady})
	if s.Server.Version != oldVersion || s.Err != "" || s.CountErr != "" || s.AttrErr != "" || s.TotalRuns != 1 {
		t.Errorf("%+v", s)
	}
}
