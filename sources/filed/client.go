package filed

import (
	"context"
	"io"
	"log/slog"
	"strings"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// Client is Temporal's own client on the set: each of its calls is answered here, before
// it would be sent. Close it when it is done with.
func (f *Files) Client() (client.Client, error) {
	quiet := log.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	return client.NewLazyClient(client.Options{HostPort: "passthrough:///files", Logger: quiet,
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(f.intercept)}}})
}

// intercept answers in place of a server.
func (f *Files) intercept(ctx context.Context, method string, q, reply any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
	err := f.answer(ctx, method, q, reply)
	if err != nil && ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return serviceerror.ToStatus(err).Err()
}

// answer fills in the reply of a call that reads.
func (f *Files) answer(ctx context.Context, method string, q, reply any) error {
	switch q := q.(type) {
	case *workflowservice.ListWorkflowExecutionsRequest:
		return f.listRuns(ctx, q, reply.(*workflowservice.ListWorkflowExecutionsResponse))
	case *workflowservice.CountWorkflowExecutionsRequest:
		return f.countRuns(ctx, q, reply.(*workflowservice.CountWorkflowExecutionsResponse))
	case *workflowservice.DescribeWorkflowExecutionRequest:
		return f.describe(ctx, q, reply.(*workflowservice.DescribeWorkflowExecutionResponse))
	case *workflowservice.GetWorkflowExecutionHistoryRequest:
		return f.history(ctx, q, reply.(*workflowservice.GetWorkflowExecutionHistoryResponse))
	case *workflowservice.GetWorkflowExecutionHistoryReverseRequest:
		return f.reverse(ctx, q, reply.(*workflowservice.GetWorkflowExecutionHistoryReverseResponse))
	case *workflowservice.QueryWorkflowRequest:
		return serviceerror.NewFailedPrecondition("no worker: the run was read from a file")
	case *operatorservice.ListSearchAttributesRequest:
		reply.(*operatorservice.ListSearchAttributesResponse).CustomAttributes = f.attributes()
		return nil
	case *grpc_health_v1.HealthCheckRequest:
		reply.(*grpc_health_v1.HealthCheckResponse).Status = grpc_health_v1.HealthCheckResponse_SERVING
		return nil
	case *workflowservice.GetSystemInfoRequest, *workflowservice.GetClusterInfoRequest:
		return nil
	}
	return serviceerror.NewFailedPreconditionf("%s: there is no server: the runs were read from files, which are not changed",
		method[strings.LastIndexByte(method, '/')+1:])
}
