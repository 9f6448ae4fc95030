package codec

import (
	"context"
	"fmt"
	"maps"

	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/proxy"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"acescope/engine/temporal/history"
)

// Read decodes the payloads of a message in place, in as few requests as possible. A payload
// that cannot be decoded stays, with the reason in its metadata. Read returns their number.
func (s *Server) Read(ctx context.Context, msg proto.Message) (left int) {
	return s.read(ctx, msg, false)
}

// Events is like [Server.Read], for the events of a history.
func (s *Server) Events(ctx context.Context, events []*historypb.HistoryEvent) (left int) {
	return s.Read(ctx, &historypb.History{Events: events})
}

func (s *Server) read(ctx context.Context, msg proto.Message, force bool) (left int) {
	list := collect(ctx, msg, history.Encoded)
	if len(list) == 0 {
		return 0
	}
	out := s.decode(ctx, list, force)
	replace(ctx, msg, func(p *commonpb.Payload) *commonpb.Payload {
		if !history.Encoded(p) {
			return p
		}
		o := out[digestOf(p)]
		if o.p != nil {
			return o.p
		}
		left++
		if o.reason != "" {
			return withReason(p, o.reason)
		}
		return p
	})
	openFailures(msg)
	return left
}

// write returns a copy of a message with its payloads encoded. After an error, the message
// must not be sent.
func (s *Server) write(ctx context.Context, msg proto.Message) (proto.Message, error) {
	list := collect(ctx, msg, func(*commonpb.Payload) bool { return true })
	if len(list) == 0 {
		return msg, nil
	}
	out := make(map[digest]*commonpb.Payload, len(list))
	for len(list) > 0 {
		n := batchLen(list)
		payloads := make([]*commonpb.Payload, n)
		for i, it := range list[:n] {
			payloads[i] = it.p
		}
		got, err := s.call(ctx, "encode", payloads)
		if err != nil {
			if !rejectsPayloads(err) {
				s.setDown(ctx, err)
			}
			return nil, fmt.Errorf("codec server %s cannot encode, so nothing was sent: %s", s.name,
				s.explain(err))
		}
		for i, it := range list[:n] {
			out[it.d] = got[i]
		}
		list = list[n:]
	}
	encoded := proto.Clone(msg)
	replace(ctx, encoded, func(p *commonpb.Payload) *commonpb.Payload { return out[digestOf(p)] })
	return encoded, nil
}

// withReason returns a copy of a payload with the reason why it is not decoded, or without a reason if it is
// "".
func withReason(p *commonpb.Payload, reason string) *commonpb.Payload {
	meta := map[string][]byte{}
	maps.Copy(meta, p.GetMetadata())
	delete(meta, history.MetaCodec)
	if reason != "" {
		meta[history.MetaCodec] = []byte(reason)
	}
	return &commonpb.Payload{Metadata: meta, Data: p.GetData(), ExternalPayloads: p.GetExternalPayloads()}
}

// collect lists the different payloads of a message for which want returns true.
func collect(ctx context.Context, msg proto.Message, want func(*commonpb.Payload) bool) (list []item) {
	seen := map[digest]bool{}
	replace(ctx, msg, func(p *commonpb.Payload) *commonpb.Payload {
		if !want(p) {
			return p
		}
		if d := digestOf(p); !seen[d] {
			seen[d] = true
			list = append(list, item{d, p})
		}
		return p
	})
	return list
}

// replace replaces every payload of a message except search attributes, which codecs skip.
func replace(ctx context.Context, msg proto.Message, fn func(*commonpb.Payload) *commonpb.Payload) {
	o := proxy.VisitPayloadsOptions{SkipSearchAttributes: true}
	o.Visitor = func(_ *proxy.VisitPayloadsContext, list []*commonpb.Payload) ([]*commonpb.Payload, error) {
		out := make([]*commonpb.Payload, len(list))
		for i, p := range list {
			if p != nil {
				out[i] = fn(p)
			}
		}
		return out, nil
	}
	o.WellKnownAnyVisitor = func(v *proxy.VisitPayloadsContext, a *anypb.Any) error {
		inner, err := a.UnmarshalNew()
		if err != nil {
			return nil // an unknown type
		}
		if err := proxy.VisitPayloads(v.Context, inner, o); err != nil {
			return err
		}
		return a.MarshalFrom(inner)
	}
	// No error is possible: the visitor returns nil, and an unmarshaled message can be marshaled.
	_ = proxy.VisitPayloads(ctx, msg, o)
}

// openFailures restores messages and stack traces that a failure converter moved into a
// payload, if that payload is now readable.
func openFailures(msg proto.Message) {
	_ = proxy.VisitFailures(context.Background(), msg, proxy.VisitFailuresOptions{
		Visitor: func(_ *proxy.VisitFailuresContext, f *failurepb.Failure) error {
			if hidden := f.GetEncodedAttributes(); hidden != nil && !history.Encoded(hidden) {
				converter.DecodeCommonFailureAttributes(converter.GetDefaultDataConverter(), f)
				f.EncodedAttributes = nil
			}
			return nil
		},
		WellKnownAnyVisitor: func(*proxy.VisitFailuresContext, *anypb.Any) error { return nil },
	})
}
