package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/historytest"
)

func timestamp(t time.Time) *timestamppb.Timestamp { return timestamppb.New(t) }

func headerOf(data string) *commonpb.Header {
	p := &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(data)}
	return &commonpb.Header{Fields: map[string]*commonpb.Payload{"_tracer-data": p}}
}

// server lists runs whose histories it serves.
type server struct {
	*historytest.Client
	mu     sync.Mutex
	listed []*workflowpb.WorkflowExecutionInfo
	err    error
	many   int64
}

func newServer() *server { return &server{Client: historytest.NewClient()} }

// close adds a closed run of a task.
func (s *server) close(workflowID, runID string, closed time.Time) {
	b := historytest.New(ace.TaskWorkflow, ace.TaskInput{TaskID: workflowID, Model: "m"})
	b.Of(workflowID, runID, "", runID)
	b.Activity(time.Second, time.Second, ace.ActivityGenerator, nil,
		ace.GeneratorResult{Answer: "1",
			StepReport: ace.StepReport{Usage: &ace.Usage{InputTokens: 10, OutputTokens: 5, CostUSD: .5}}})
	b.Task(0)
	b.Close(time.Second, nil)
	s.Put(runID, b.Events...)
	row := rowOf(b.Events)
	row.Close = closed
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = append(s.listed, infoOf(row))
}

func (s *server) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *server) ListWorkflow(_ context.Context, q *workflowservice.ListWorkflowExecutionsRequest) (
	*workflowservice.ListWorkflowExecutionsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	_, after, _ := strings.Cut(q.GetQuery(), `CloseTime >= "`)
	after, _, _ = strings.Cut(after, `"`)
	from, err := time.Parse(time.RFC3339Nano, after)
	if err != nil { // the query for open runs
		return &workflowservice.ListWorkflowExecutionsResponse{}, nil
	}
	until := from.Add(1000 * time.Hour)
	if _, before, ok := strings.Cut(q.GetQuery(), `CloseTime < "`); ok {
		before, _, _ = strings.Cut(before, `"`)
		if until, err = time.Parse(time.RFC3339Nano, before); err != nil {
			return nil, err
		}
	}
	outside := func(i *workflowpb.WorkflowExecutionInfo) bool {
		at := i.GetCloseTime().AsTime()
		return at.Before(from) || !at.Before(until)
	}
	return &workflowservice.ListWorkflowExecutionsResponse{
		Executions: slices.DeleteFunc(slices.Clone(s.listed), outside)}, nil
}

func (s *server) CountWorkflow(ctx context.Context, q *workflowservice.CountWorkflowExecutionsRequest) (
	*workflowservice.CountWorkflowExecutionsResponse, error) {
	if !strings.Contains(q.GetQuery(), "CloseTime") {
		return &workflowservice.CountWorkflowExecutionsResponse{Count: 3}, nil
	}
	list, err := s.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: q.GetQuery()})
	n := int64(len(list.GetExecutions()))
	if s.many > 0 { // as if each of them were many
		n *= s.many
	}
	return &workflowservice.CountWorkflowExecutionsResponse{Count: n}, err
}

func (s *server) WorkflowService() workflowservice.WorkflowServiceClient {
	return queueService{s.Client.WorkflowService()}
}

type queueService struct {
	workflowservice.WorkflowServiceClient
}

func (queueService) DescribeTaskQueue(
	context.Context, *workflowservice.DescribeTaskQueueRequest, ...grpc.CallOption,
) (*workflowservice.DescribeTaskQueueResponse, error) {
	return &workflowservice.DescribeTaskQueueResponse{}, nil
}

// readerOf returns a reader that notes the exported runs.
func readerOf(t *testing.T, s *server, file string) (*reader, *[]string) {
	t.Helper()
	var exported []string
	p, err := loadPosition(file, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	deps := cluster.Deps{Client: s, Namespace: "ace-dev"}
	r := &reader{deps: deps, position: p, failures: newFailures(log), log: log,
		export: func(c *record) { exported = append(exported, c.WorkflowID) }}
	r.save = func() error {
		data, err := json.Marshal(r.position)
		return errors.Join(err, os.WriteFile(file, data, 0o600))
	}
	return r, &exported
}

// TestReaderContinues: another process continues where the first one stopped, and exports no run twice.
func TestReaderContinues(t *testing.T) {
	s, file := newServer(), filepath.Join(t.TempDir(), "position.json")
	now := time.Now()
	s.close("before", runA, now.Add(-time.Hour))
	s.close("b", runB, now.Add(2*time.Second))
	s.close("a", runC, now.Add(time.Second))
	first, exported := readerOf(t, s, file)
	for range 2 {
		if err := first.read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(*exported, []string{"a", "b"}) {
		t.Errorf("exported %v, want a and b in the order in which they closed", *exported)
	}
	s.close("late", "01a2059f-93f4-7af1-8cb4-1afba205db70", now) // visibility lists it after the others
	s.close("c", "01a2059f-94b8-7b0e-a873-75d7cc8a1c2a", now.Add(3*time.Second))
	second, exported := readerOf(t, s, file)
	if err := second.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(*exported, []string{"late", "c"}) {
		t.Errorf("the second process exported %v, want late and c", *exported)
	}
}

// TestReaderCatchesUp: after a long pause, runs are listed in parts.
func TestReaderCatchesUp(t *testing.T) {
	s := newServer()
	s.many = maxListed/2 + 1 // at most one run at once
	file := filepath.Join(t.TempDir(), "p.json")
	now := time.Now()
	data, err := json.Marshal(position{Closed: now.Add(-5 * time.Hour)})
	if err != nil || os.WriteFile(file, data, 0o600) != nil {
		t.Fatal(err)
	}
	want := []string{}
	for i := range 20 {
		want = append(want, fmt.Sprint("ace/", i))
		closed := now.Add(time.Duration(10*i-250) * time.Minute)
		s.close(want[i], fmt.Sprintf("01a2059f-94b8-7b0e-a873-%012d", i), closed)
	}
	r, exported := readerOf(t, s, file)
	if err := r.read(t.Context()); err != nil || !slices.Equal(*exported, want) {
		t.Errorf("exported %v, %v", *exported, err)
	}
	later := now.Add(10 * time.Hour)
	if p, err := loadPosition(file, later); err == nil || later.Sub(p.Closed) != maxCatchUp {
		t.Errorf("position %s, %v after ten hours", p.Closed, err)
	}
}

// TestReaderRepeats: a server that is away delays runs and loses none.
func TestReaderRepeats(t *testing.T) {
	s := newServer()
	s.close("a", runA, time.Now())
	r, exported := readerOf(t, s, filepath.Join(t.TempDir(), "p.json"))
	s.fail(serviceerror.NewUnavailable("away"))
	if r.read(t.Context()) == nil {
		t.Error("no error from a server that is away")
	}
	s.fail(nil)
	s.Fail(func(string) error { return serviceerror.NewUnavailable("no histories") })
	if r.read(t.Context()) == nil || len(*exported) != 0 {
		t.Errorf("exported %v without histories", *exported)
	}
	s.Fail(nil)
	if err := r.read(t.Context()); err != nil || len(*exported) != 1 {
		t.Errorf("exported %v, %v", *exported, err)
	}
}

// TestReaderCountsDeletedHistory: a run whose history was deleted is exported as it is listed.
func TestReaderCountsDeletedHistory(t *testing.T) {
	s := newServer()
	s.close("a", runA, time.Now())
	s.Fail(func(string) error { return serviceerror.NewNotFound("deleted") })
	r, exported := readerOf(t, s, filepath.Join(t.TempDir(), "p.json"))
	if err := r.read(t.Context()); err != nil || len(*exported) != 1 {
		t.Errorf("exported %v, %v", *exported, err)
	}
}

// TestPositionIsBounded: only the runs that the next reading lists again are remembered.
func TestPositionIsBounded(t *testing.T) {
	p := position{Closed: time.Now()}
	r := rowOf(historytest.Task(true).Events[:1])
	for i := range 10_000 {
		r.RunID, r.Close = time.Duration(i).String(), p.Closed.Add(time.Second)
		p.add(r)
	}
	if len(p.Runs) > 2*batchSize+int(overlap.Seconds()) {
		t.Errorf("%d runs remembered", len(p.Runs))
	}
}

// TestFailuresAreLoggedOnce: a failure that repeats itself is one line.
func TestFailuresAreLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	f := newFailures(slog.New(slog.NewTextHandler(&out, nil)))
	for range 5 {
		f.report("send spans", errors.New("connection refused"))
	}
	f.report("send spans", nil)
	f.report("send spans", nil)
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines, want one for the failure and one for its end:\n%s", n, out.String())
	}
}
