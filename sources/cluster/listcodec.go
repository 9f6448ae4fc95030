package cluster

import (
	"bytes"
	"cmp"
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
// does. Equal search attributes of a page share one payload, and payloads of memos their metadata, which the
// caller must not change.
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

// listCodec decodes equal search attributes and metadata of a page once. Payloads are most of the work of
// decoding a page, and most runs have the same values.
type listCodec struct{ encoding.CodecV2 }

func (c listCodec) Unmarshal(data mem.BufferSlice, v any) error {
	answer, ok := v.(*workflowservice.ListWorkflowExecutionsResponse)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	page := listPage{attributes: map[string]namedPayload{}, metadata: map[string]*commonpb.Payload{}}
	var rest []byte
	err := eachField(buf.ReadOnlyData(), func(number protowire.Number, value, field []byte) error {
		if number != executionsField {
			rest = append(rest, field...)
			return nil
		}
		info, err := page.info(value)
		answer.Executions = append(answer.Executions, info)
		return err
	})
	return cmp.Or(err, mergeOptions.Unmarshal(rest, answer))
}

var mergeOptions = proto.UnmarshalOptions{Merge: true}

// Numbers of fields, see temporal/api/{workflowservice,workflow,common}/v1. Reading them from the descriptors
// would decode those at the start of every program.
const (
	executionsField protowire.Number = 1  // of ListWorkflowExecutionsResponse
	memoField       protowire.Number = 10 // of WorkflowExecutionInfo
	attributesField protowire.Number = 11 // of WorkflowExecutionInfo
	fieldsField     protowire.Number = 1  // of Memo and of SearchAttributes, a map
	keyField        protowire.Number = 1  // of an entry of a map
	valueField      protowire.Number = 2  // of an entry of a map
	dataField       protowire.Number = 2  // of Payload
)

// listPage holds what the runs of a page share, by its encoding.
type listPage struct {
	attributes map[string]namedPayload
	metadata   map[string]*commonpb.Payload // payloads without data
	rest, key  []byte                       // buffers for the other fields of a run, and of a payload
}

type namedPayload struct {
	name  string
	value *commonpb.Payload
}

func (p *listPage) info(data []byte) (*workflowpb.WorkflowExecutionInfo, error) {
	info := &workflowpb.WorkflowExecutionInfo{}
	p.rest = p.rest[:0]
	err := eachField(data, func(number protowire.Number, value, field []byte) error {
		switch number {
		case memoField:
			info.Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{}}
			return eachEntry(value, func(entry []byte) error {
				a, err := p.entry(entry)
				info.Memo.Fields[a.name] = a.value
				return err
			})
		case attributesField:
			info.SearchAttributes = &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{}}
			return eachEntry(value, func(entry []byte) (err error) {
				a, ok := p.attributes[string(entry)]
				if !ok {
					a, err = p.entry(entry)
					p.attributes[string(entry)] = a
				}
				info.SearchAttributes.IndexedFields[a.name] = a.value
				return err
			})
		}
		p.rest = append(p.rest, field...)
		return nil
	})
	return info, cmp.Or(err, mergeOptions.Unmarshal(p.rest, info))
}

// eachEntry calls fn with the entries of the map of a memo or of search attributes.
func eachEntry(message []byte, fn func(entry []byte) error) error {
	return eachField(message, func(number protowire.Number, value, _ []byte) error {
		if number != fieldsField {
			return nil
		}
		return fn(value)
	})
}

// entry decodes an entry of a map of payloads.
func (p *listPage) entry(data []byte) (namedPayload, error) {
	a := namedPayload{value: &commonpb.Payload{}}
	err := eachField(data, func(number protowire.Number, value, _ []byte) (err error) {
		switch number {
		case keyField:
			a.name = string(value)
		case valueField:
			a.value, err = p.payload(value)
		}
		return err
	})
	return a, err
}

// payload decodes a payload, which gets its fields except the data from an earlier one where these are equal.
func (p *listPage) payload(data []byte) (*commonpb.Payload, error) {
	decoded := &commonpb.Payload{}
	p.key = p.key[:0]
	err := eachField(data, func(number protowire.Number, value, field []byte) error {
		if number == dataField {
			decoded.Data = bytes.Clone(value)
		} else {
			p.key = append(p.key, field...)
		}
		return nil
	})
	shared, ok := p.metadata[string(p.key)]
	if !ok {
		shared = &commonpb.Payload{}
		err = cmp.Or(err, proto.Unmarshal(p.key, shared))
		p.metadata[string(p.key)] = shared
	}
	decoded.Metadata, decoded.ExternalPayloads = shared.Metadata, shared.ExternalPayloads
	return decoded, err
}

// eachField calls fn with the fields of a message: the content of a message, string or bytes, and the
// encoding of the field.
func eachField(message []byte, fn func(number protowire.Number, value, field []byte) error) error {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return protowire.ParseError(tag)
		}
		n := protowire.ConsumeFieldValue(number, kind, message[tag:])
		if n < 0 {
			return protowire.ParseError(n)
		}
		var value []byte
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(message[tag:])
		}
		if err := fn(number, value, message[:tag+n]); err != nil {
			return err
		}
		message = message[tag+n:]
	}
	return nil
}
