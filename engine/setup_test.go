package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/searchattr"
)

// frontend is a server that denies creating anything. The namespace "there" exists; it has the first search
// attribute of the contract with another type.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer
}

func (frontend) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (
	*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{}, nil
}

func (frontend) DescribeNamespace(_ context.Context, q *workflowservice.DescribeNamespaceRequest) (
	*workflowservice.DescribeNamespaceResponse, error) {
	if q.Namespace != "there" {
		return nil, serviceerror.ToStatus(serviceerror.NewNamespaceNotFound(q.Namespace)).Err()
	}
	return &workflowservice.DescribeNamespaceResponse{Config: &namespacepb.NamespaceConfig{
		CustomSearchAttributeAliases: map[string]string{"Int01": ace.SearchAttributes()[0]}}}, nil
}

func (frontend) GetSearchAttributes(context.Context, *workflowservice.GetSearchAttributesRequest) (
	*workflowservice.GetSearchAttributesResponse, error) {
	return &workflowservice.GetSearchAttributesResponse{Keys: map[string]enumspb.IndexedValueType{
		"Int01": enumspb.INDEXED_VALUE_TYPE_INT}}, nil
}

// TestGapWithoutClusterRights checks that the search attributes of a namespace are known to a client with
// rights for the namespace only.
func TestGapWithoutClusterRights(t *testing.T) {
	gap, err := searchattr.ReadGap(t.Context(), restricted{}, "n")
	if err != nil || !slices.Equal(gap.Mistyped, []string{ace.AttrPhase}) || !slices.Equal(gap.Missing,
		[]string{ace.AttrRunner}) {
		t.Errorf("%+v, %v", gap, err)
	}
}

// restricted is a server that denies calls beyond a namespace, which lacks one attribute and has another type
// of one.
type restricted struct {
	workflowservice.WorkflowServiceClient
}

func (restricted) DescribeNamespace(context.Context, *workflowservice.DescribeNamespaceRequest,
	...grpc.CallOption) (
	*workflowservice.DescribeNamespaceResponse, error) {
	columns := map[string]string{}
	for i, name := range ace.SearchAttributes() {
		switch name {
		case ace.AttrPhase:
			columns["KeywordList01"] = name
		case ace.AttrRunner:
		default:
			columns[fmt.Sprintf("Keyword%02d", i)] = name
		}
	}
	return &workflowservice.DescribeNamespaceResponse{Config: &namespacepb.NamespaceConfig{
		CustomSearchAttributeAliases: columns}}, nil
}

func (restricted) GetSearchAttributes(context.Context, *workflowservice.GetSearchAttributesRequest,
	...grpc.CallOption) (*workflowservice.GetSearchAttributesResponse, error) {
	return nil, serviceerror.NewPermissionDenied("no", "")
}

func (frontend) RegisterNamespace(context.Context, *workflowservice.RegisterNamespaceRequest) (
	*workflowservice.RegisterNamespaceResponse, error) {
	return nil, serviceerror.ToStatus(serviceerror.NewPermissionDenied("no", "")).Err()
}

// TestSetupDenied checks that a setup without the right to create a namespace says so, and that search
// attributes of another type are refused before anything is created.
func TestSetupDenied(t *testing.T) {
	t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, frontend{})
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	plan := func(namespace string) (*engine.Setup, error) {
		return engine.PlanSetup(t.Context(), engine.Options{Remote: &engine.Remote{Address: l.Addr().String(),
			Namespace: namespace}}, 24*time.Hour)
	}
	s, err := plan("new")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := fmt.Sprint(s.Steps[0].Name, " ", s.Steps[0].Done, " ", s.Steps[0].Text); got !=
		"namespace false new, which keeps closed runs for 1 day" || s.Steps[1].Done {
		t.Errorf("%s; %+v", got, s.Steps[1])
	}
	if err := s.Do(t.Context(), s.Steps[0]); !errors.Is(err, engine.ErrDenied) ||
		!strings.Contains(err.Error(), "may not create the namespace of new") {
		t.Errorf("denied: %v", err)
	}
	if _, err := plan("there"); err == nil || !strings.Contains(err.Error(),
		"the search attributes "+ace.SearchAttributes()[0]+" exist with another type than Keyword") {
		t.Errorf("another type: %v", err)
	}
}

// TestFailedRunLeavesNothingOpen checks that a process that served a cluster for one failed run leaves no
// open workflow there.
func TestFailedRunLeavesNothingOpen(t *testing.T) {
	server := openEngine(t, engine.Options{DataDir: t.TempDir(), Takeover: true})
	for _, v := range server.Node().Env() {
		t.Setenv(v.Name, v.Value)
	}
	checkBareNamespace(t, server)
	e := openEngine(t, engine.Options{DataDir: t.TempDir(), Worker: true, Remote: &engine.Remote{}})
	runID, err := e.StartTask(t.Context(), ace.TaskInput{TaskID: "f", Prompt: "p", Provider: "unknown",
		Adapter: ace.Offline})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Client.GetWorkflow(t.Context(), ace.WorkflowID("f"), runID).Get(t.Context(),
		nil); err == nil {
		t.Error("the task completed")
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
	eventually(t, func() error {
		open, err := server.Client.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Query: `ExecutionStatus = "Running"`})
		if err == nil && len(open.GetExecutions()) > 0 {
			err = fmt.Errorf("open: %v", open.GetExecutions())
		}
		return err
	})
}

// checkBareNamespace checks that a run in a namespace without search attributes is refused with the command that
// creates them.
func checkBareNamespace(t *testing.T, server *engine.Engine) {
	t.Helper()
	_, err := server.Client.WorkflowService().RegisterNamespace(t.Context(),
		&workflowservice.RegisterNamespaceRequest{Namespace: "bare",
			WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	e := openEngine(t, engine.Options{DataDir: t.TempDir(), Remote: &engine.Remote{Namespace: "bare"}})
	eventually(t, func() error { // the server takes a moment to know the namespace
		_, err := e.StartTask(t.Context(), ace.TaskInput{TaskID: "f", Prompt: "p", Provider: "builtin",
			Adapter: ace.Offline})
		if err == nil || !strings.Contains(err.Error(), "namespace bare lacks the search attributes ExperimentId, ") ||
			!strings.Contains(err.Error(), "run \"acescope setup --address ") {
			return fmt.Errorf("without attributes: %w", err)
		}
		return nil
	})
}
