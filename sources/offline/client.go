package offline

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"acescope/sources/cluster"
)

const (
	maxPage     = 1000 // runs or events of a page
	pollTimeout = 20 * time.Second
)

var errPageToken = serviceerror.NewInvalidArgument("invalid next page token")

// Client returns Temporal's own client on the set: every call is answered here before it
// would be sent. The caller closes it.
func (f *Files) Client() (client.Client, error) {
	answer := grpc.WithChainUnaryInterceptor(f.intercept)
	return client.NewLazyClient(client.Options{
		HostPort:          "passthrough:///files",
		Logger:            log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{answer}},
	})
}

// intercept answers in place of a server.
func (f *Files) intercept(ctx context.Context, method string, q, reply any, _ *grpc.ClientConn,
	_ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
	err := f.answer(ctx, method, q, reply)
	if err != nil && ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return serviceerror.ToStatus(err).Err()
}

func (f *Files) answer(ctx context.Context, method string, q, reply any) error {
	switch q := q.(type) {
	case *workflowservice.ListWorkflowExecutionsRequest:
		return f.listRuns(ctx, q, reply.(*workflowservice.ListWorkflowExecutionsResponse))
	case *workflowservice.CountWorkflowExecutionsRequest:
		return f.countRuns(ctx, q, reply.(*workflowservice.CountWorkflowExecutionsResponse))
	case *workflowservice.DescribeWorkflowExecutionRequest:
		r, err := f.findExecution(ctx, q.GetExecution())
		if err == nil {
			out := reply.(*workflowservice.DescribeWorkflowExecutionResponse)
			out.WorkflowExecutionInfo, out.PendingActivities, out.PendingWorkflowTask = r.info, r.pending,
				r.task
		}
		return err
	case *workflowservice.GetWorkflowExecutionHistoryRequest:
		return f.history(ctx, q, reply.(*workflowservice.GetWorkflowExecutionHistoryResponse))
	case *workflowservice.GetWorkflowExecutionHistoryReverseRequest:
		return f.reverse(ctx, q, reply.(*workflowservice.GetWorkflowExecutionHistoryReverseResponse))
	case *workflowservice.QueryWorkflowRequest:
		return serviceerror.NewFailedPrecondition("no worker: the run was read from a file")
	case *workflowservice.GetSearchAttributesRequest:
		reply.(*workflowservice.GetSearchAttributesResponse).Keys = f.attributes()
		return nil
	case *grpc_health_v1.HealthCheckRequest:
		reply.(*grpc_health_v1.HealthCheckResponse).Status = grpc_health_v1.HealthCheckResponse_SERVING
		return nil
	case *workflowservice.GetSystemInfoRequest, *workflowservice.GetClusterInfoRequest,
		*workflowservice.DescribeNamespaceRequest:
		return nil
	}
	return serviceerror.NewFailedPreconditionf(
		"%s: no server: the runs were read from files and cannot be changed",
		method[strings.LastIndexByte(method, '/')+1:])
}

// matching returns the runs that match a query, in the order of the list.
func (f *Files) matching(ctx context.Context, text string) ([]*run, runQuery, error) {
	list, err := f.list(ctx)
	if err != nil {
		return nil, runQuery{}, err
	}
	q, err := parse(text, f.attributes())
	if err != nil {
		return nil, q, err
	}
	var hits []*run
	for _, r := range list {
		if q.condition == nil || q.condition(r) == isTrue {
			hits = append(hits, r)
		}
	}
	return hits, q, nil
}

// listRuns returns a page. Its token is the ID of its last run, so runs that are added
// meanwhile do not shift the pages.
func (f *Files) listRuns(ctx context.Context, q *workflowservice.ListWorkflowExecutionsRequest,
	out *workflowservice.ListWorkflowExecutionsResponse) error {
	hits, parsed, err := f.matching(ctx, q.GetQuery())
	if err != nil {
		return err
	}
	if parsed.groupBy != "" {
		return serviceerror.NewInvalidArgument("invalid query: operation is not supported: 'GROUP BY' clause")
	}
	if len(q.GetNextPageToken()) > 0 {
		f.mu.Lock()
		last := f.runs[string(q.GetNextPageToken())]
		f.mu.Unlock()
		if last == nil {
			return errPageToken
		}
		hits = slices.DeleteFunc(hits, func(r *run) bool { return compareRuns(r, last) <= 0 })
	}
	size := pageSize(q.GetPageSize())
	for _, r := range hits[:min(size, len(hits))] {
		out.Executions = append(out.Executions, r.info)
	}
	if len(hits) > size {
		out.NextPageToken = []byte(hits[size-1].runID())
	}
	return nil
}

// countRuns counts runs, by the values of an attribute if the query groups by it.
func (f *Files) countRuns(ctx context.Context, q *workflowservice.CountWorkflowExecutionsRequest,
	out *workflowservice.CountWorkflowExecutionsResponse) error {
	hits, parsed, err := f.matching(ctx, q.GetQuery())
	if err != nil {
		return err
	}
	out.Count = int64(len(hits))
	if parsed.groupBy == "" {
		return nil
	}
	counts := map[string]int64{}
	for _, r := range hits {
		value, err := json.Marshal(r.values[parsed.groupBy])
		if err != nil {
			return err
		}
		counts[string(value)]++
	}
	for _, value := range slices.Sorted(maps.Keys(counts)) {
		payload := &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")},
			Data: []byte(value)}
		out.Groups = append(out.Groups, &workflowservice.CountWorkflowExecutionsResponse_AggregationGroup{
			Count: counts[value], GroupValues: []*commonpb.Payload{payload}})
	}
	return nil
}

func (f *Files) findExecution(ctx context.Context, e *commonpb.WorkflowExecution) (*run, error) {
	r, err := f.find(ctx, e.GetWorkflowId(), e.GetRunId())
	if err == nil && r == nil {
		name := e.GetWorkflowId()
		if e.GetRunId() != "" {
			name += ", run " + e.GetRunId()
		}
		err = serviceerror.NewNotFoundf("the files contain no history of %s", name)
	}
	return r, err
}

// history returns a page of events, the oldest first. A call that waits for more events of a
// run whose file is incomplete fails with the reason.
func (f *Files) history(ctx context.Context, q *workflowservice.GetWorkflowExecutionHistoryRequest,
	out *workflowservice.GetWorkflowExecutionHistoryResponse) error {
	r, err := f.findExecution(ctx, q.GetExecution())
	if err != nil {
		return err
	}
	n := len(r.events)
	follow := q.GetWaitNewEvent() && r.open()
	if q.GetHistoryEventFilterType() == enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT {
		out.History = &historypb.History{}
		if !r.open() {
			out.History.Events = r.events[n-1:]
		}
		return poll(ctx, follow)
	}
	from, err := position(q.GetNextPageToken(), 0, n)
	if err != nil {
		return err
	}
	if from == n && follow {
		if r.broken != "" {
			return serviceerror.NewFailedPrecondition(r.broken)
		}
		if err := poll(ctx, true); err != nil {
			return err
		}
	}
	to := min(from+pageSize(q.GetMaximumPageSize()), n)
	out.History = &historypb.History{Events: slices.Clone(r.events[from:to])}
	if to < n || follow {
		out.NextPageToken = pageToken(to)
	}
	return nil
}

// reverse returns a page of events, the newest first.
func (f *Files) reverse(ctx context.Context, q *workflowservice.GetWorkflowExecutionHistoryReverseRequest,
	out *workflowservice.GetWorkflowExecutionHistoryReverseResponse) error {
	r, err := f.findExecution(ctx, q.GetExecution())
	if err != nil {
		return err
	}
	to, err := position(q.GetNextPageToken(), len(r.events), len(r.events))
	if err != nil {
		return err
	}
	from := max(to-pageSize(q.GetMaximumPageSize()), 0)
	page := slices.Clone(r.events[from:to])
	slices.Reverse(page)
	out.History = &historypb.History{Events: page}
	if from > 0 {
		out.NextPageToken = pageToken(from)
	}
	return nil
}

// poll waits for events that never come, as long as a server does, if wait is true.
func poll(ctx context.Context, wait bool) error {
	if !wait {
		return nil
	}
	return cluster.Sleep(ctx, pollTimeout)
}

func pageSize(requested int32) int {
	if requested <= 0 || requested > maxPage {
		return maxPage
	}
	return int(requested)
}

func pageToken(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// position returns the index in a token, or first without one.
func position(token []byte, first, n int) (int, error) {
	if len(token) == 0 {
		return first, nil
	}
	if len(token) == 8 {
		if at := binary.BigEndian.Uint64(token); at <= uint64(n) {
			return int(at), nil
		}
	}
	return 0, errPageToken
}
