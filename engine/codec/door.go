package codec

import (
	"context"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// How long a worker waits for a task's payloads, and how often it tries meanwhile. It is
// less than a workflow task may take, so that the server gives the task out again.
const (
	workerPatience = 8 * time.Second
	workerEvery    = 500 * time.Millisecond
)

type asStored struct{}

// AsStored is a context in which calls give payloads as the cluster has them.
func AsStored(ctx context.Context) context.Context { return context.WithValue(ctx, asStored{}, true) }

// Intercept decodes what a cluster answers to somebody who looks, and encodes what he
// sends. Give it to the connection before interceptors that measure.
func (s *Server) Intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if err := s.send(ctx, method, req, reply, cc, invoke, opts); err != nil {
		return err
	}
	if msg, ok := reply.(proto.Message); ok && ctx.Value(asStored{}) == nil {
		unpack(msg)
		s.Read(ctx, msg)
	}
	return nil
}

// InterceptWorker is Intercept for a worker. Where a task's payloads cannot be decoded it
// waits a while; then it leaves a workflow task to be given out again, since to decide on
// what cannot be read would break the run, and lets an activity fail, which is retried.
func (s *Server) InterceptWorker(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if err := s.send(ctx, method, req, reply, cc, invoke, opts); err != nil {
		return err
	}
	msg, ok := reply.(proto.Message)
	if !ok {
		return nil
	}
	unpack(msg)
	left := s.read(ctx, msg, false)
	for end := time.Now().Add(workerPatience); left > 0 && time.Now().Before(end) && ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-time.After(workerEvery):
			walk(ctx, msg, unmark)
			left = s.read(ctx, msg, true)
		}
	}
	switch reply.(type) {
	case *workflowservice.PollWorkflowTaskQueueResponse, *workflowservice.GetWorkflowExecutionHistoryResponse:
		if left > 0 {
			return status.Errorf(codes.Unavailable, "codec server %s: %d payloads of a workflow task cannot be decoded: %s", s.name, left, s.Status().Reason)
		}
	}
	return nil
}

// send makes a call with its payloads encoded.
func (s *Server) send(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts []grpc.CallOption) error {
	if msg, ok := req.(proto.Message); ok {
		encoded, err := s.write(ctx, msg)
		if err != nil {
			return status.Error(codes.FailedPrecondition, err.Error())
		}
		req = encoded
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

// unpack makes events of the pages of a history that a server sends as it keeps them.
func unpack(msg proto.Message) {
	r, ok := msg.(*workflowservice.GetWorkflowExecutionHistoryResponse)
	if !ok || len(r.GetRawHistory()) == 0 {
		return
	}
	all := r.GetHistory().GetEvents()
	for _, blob := range r.GetRawHistory() {
		var part historypb.History
		if proto.Unmarshal(blob.GetData(), &part) != nil {
			return // whoever reads it says what is wrong
		}
		all = append(all, part.GetEvents()...)
	}
	r.History, r.RawHistory = &historypb.History{Events: all}, nil
}
