package codec

import (
	"context"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// A worker waits for a task's payloads for less than a workflow task may take, so that the
// server then reschedules the task.
const (
	workerTimeout       = 8 * time.Second
	workerRetryInterval = 500 * time.Millisecond
)

type asStored struct{}

// AsStored returns a context whose calls return payloads as the cluster stores them.
func AsStored(ctx context.Context) context.Context { return context.WithValue(ctx, asStored{}, true) }

// Intercept is a gRPC client interceptor that decodes replies and encodes requests. Install it
// before interceptors that measure.
func (s *Server) Intercept(
	ctx context.Context, method string, req, reply any,
	cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	if err := s.send(ctx, method, req, reply, cc, invoke, opts); err != nil {
		return err
	}
	if msg, ok := reply.(proto.Message); ok && ctx.Value(asStored{}) == nil {
		unpackHistory(msg)
		s.Read(ctx, msg)
	}
	return nil
}

// InterceptWorker is [Server.Intercept] for workers. If payloads of a task cannot be decoded,
// it waits for a while. Then it fails a workflow task, so that the server reschedules it
// rather than the workflow deciding on unreadable input, and lets an activity fail, which is
// retried.
func (s *Server) InterceptWorker(
	ctx context.Context, method string, req, reply any,
	cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	if err := s.send(ctx, method, req, reply, cc, invoke, opts); err != nil {
		return err
	}
	msg, ok := reply.(proto.Message)
	if !ok {
		return nil
	}
	unpackHistory(msg)
	left := s.read(ctx, msg, false)
	for end := time.Now().Add(workerTimeout); left > 0 && time.Now().Before(end) && ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-time.After(workerRetryInterval):
			replace(ctx, msg, func(p *commonpb.Payload) *commonpb.Payload {
				if history.CodecReason(p) == "" {
					return p
				}
				return withReason(p, "")
			})
			left = s.read(ctx, msg, true)
		}
	}
	switch reply.(type) {
	case *workflowservice.PollWorkflowTaskQueueResponse, *workflowservice.GetWorkflowExecutionHistoryResponse:
		if left > 0 {
			return status.Errorf(codes.Unavailable,
				"codec server %s: %s of a workflow task cannot be decoded: %s",
				s.name, ace.Count(left, "payload"), s.Status().Reason)
		}
	}
	return nil
}

func (s *Server) send(
	ctx context.Context, method string, req, reply any,
	cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts []grpc.CallOption,
) error {
	if msg, ok := req.(proto.Message); ok {
		encoded, err := s.write(ctx, msg)
		if err != nil {
			return status.Error(codes.FailedPrecondition, err.Error())
		}
		req = encoded
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

// unpackHistory decodes the raw history of a response: a server may send the bytes that it stores.
func unpackHistory(msg proto.Message) {
	r, ok := msg.(*workflowservice.GetWorkflowExecutionHistoryResponse)
	if !ok || len(r.GetRawHistory()) == 0 {
		return
	}
	all := r.GetHistory().GetEvents()
	for _, blob := range r.GetRawHistory() {
		var part historypb.History
		if proto.Unmarshal(blob.GetData(), &part) != nil {
			return // the reader of the raw history reports the error
		}
		all = append(all, part.GetEvents()...)
	}
	r.History = &historypb.History{Events: all}
	r.RawHistory = nil
}
