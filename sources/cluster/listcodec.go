package cluster

import (
	"context"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// DecodeLists returns an interceptor that decodes pages of runs with less work, and otherwise does what next
// does. Equal search attributes of a page share one payload, which the caller must not change.
func DecodeLists(next grpc.UnaryClientInterceptor) grpc.UnaryClientInterceptor {
	codec := grpc.ForceCodecV2(listCodec{encoding.GetCodecV2("proto")})
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if method == workflowservice.WorkflowService_ListWorkflowExecutions_FullMethodName {
			opts = append(slices.Clip(opts), codec)
		}
		return next(ctx, method, req, reply, cc, invoke, opts...)
	}
}

// listCodec decodes each distinct search attribute of a page once. They are most of the work of decoding a
// page, and most runs have the same values.
type listCodec struct{ encoding.CodecV2 }

func (c listCodec) Unmarshal(data mem.BufferSlice, v any) error {
	answer, ok := v.(*workflowservice.ListWorkflowExecutionsResponse)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	page := attributePage{}
	runs, rest, err := cutField(buf.ReadOnlyData(), executionsField)
	if err != nil {
		return err
	}
	if err := proto.Unmarshal(rest, answer); err != nil {
		return err
	}
	for _, run := range runs {
		info, err := page.info(run)
		if err != nil {
			return err
		}
		answer.Executions = append(answer.Executions, info)
	}
	return nil
}

// Numbers of fields, see temporal/api/{workflowservice,workflow,common}/v1. Reading them from the descriptors
// would decode those at the start of every program.
const (
	executionsField protowire.Number = 1  // of ListWorkflowExecutionsResponse
	attributesField protowire.Number = 11 // of WorkflowExecutionInfo
	indexedField    protowire.Number = 1  // of SearchAttributes
)

// attributePage holds the search attributes of a page by their encoding.
type attributePage map[string]indexedAttribute

type indexedAttribute struct {
	name  string
	value *commonpb.Payload
}

func (p attributePage) info(data []byte) (*workflowpb.WorkflowExecutionInfo, error) {
	sets, rest, err := cutField(data, attributesField)
	if err != nil {
		return nil, err
	}
	info := &workflowpb.WorkflowExecutionInfo{}
	if err := proto.Unmarshal(rest, info); err != nil || len(sets) == 0 {
		return info, err
	}
	fields := map[string]*commonpb.Payload{}
	for _, set := range sets {
		entries, _, err := cutField(set, indexedField)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			a, ok := p[string(entry)]
			if !ok {
				if a, err = decodeAttribute(entry); err != nil {
					return nil, err
				}
				p[string(entry)] = a
			}
			fields[a.name] = a.value
		}
	}
	info.SearchAttributes = &commonpb.SearchAttributes{IndexedFields: fields}
	return info, nil
}

// decodeAttribute decodes an entry of the map of search attributes.
func decodeAttribute(entry []byte) (indexedAttribute, error) {
	one := &commonpb.SearchAttributes{}
	data := protowire.AppendTag(nil, indexedField, protowire.BytesType)
	err := proto.Unmarshal(protowire.AppendBytes(data, entry), one)
	for name, value := range one.GetIndexedFields() {
		return indexedAttribute{name, value}, err
	}
	return indexedAttribute{}, err
}

// cutField returns the values of a field of a message, which alias it, and the message without the field.
func cutField(message []byte, field protowire.Number) (values [][]byte, rest []byte, err error) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeField(message)
		if n < 0 {
			return nil, nil, protowire.ParseError(n)
		}
		if number == field && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(message)
			value, _ := protowire.ConsumeBytes(message[tag:])
			values = append(values, value)
		} else {
			rest = append(slices.Grow(rest, len(message)), message[:n]...)
		}
		message = message[n:]
	}
	return values, rest, nil
}
