package codec

import (
	"context"
	"maps"

	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/proxy"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"acescope/engine/history"
)

// Read decodes the payloads within a message in place, all in as few requests as possible.
// What cannot be decoded stays, with the reason in its metadata; left counts it.
func (s *Server) Read(ctx context.Context, msg proto.Message) (left int) {
	return s.read(ctx, msg, false)
}

// Events is Read for the events of a history.
func (s *Server) Events(ctx context.Context, events []*historypb.HistoryEvent) (left int) {
	return s.Read(ctx, &historypb.History{Events: events})
}

func (s *Server) read(ctx context.Context, msg proto.Message, patient bool) (left int) {
	var list []one
	seen := map[digest]bool{}
	walk(ctx, msg, func(p *commonpb.Payload) *commonpb.Payload {
		if Encoded(p) {
			if d := digestOf(p); !seen[d] {
				seen[d] = true
				list = append(list, one{d, p})
			}
		}
		return p
	})
	if len(list) == 0 {
		return 0
	}
	out := s.decode(ctx, list, patient)
	walk(ctx, msg, func(p *commonpb.Payload) *commonpb.Payload {
		if !Encoded(p) {
			return p
		}
		if o := out[digestOf(p)]; o.p != nil {
			return o.p
		} else if left++; o.reason != "" {
			return because(p, o.reason)
		}
		return p
	})
	openFailures(msg)
	return left
}

// because is a payload with the reason why it is not decoded.
func because(p *commonpb.Payload, reason string) *commonpb.Payload {
	meta := maps.Clone(p.GetMetadata())
	if meta == nil {
		meta = map[string][]byte{}
	}
	meta[history.MetaCodec] = []byte(reason)
	return &commonpb.Payload{Metadata: meta, Data: p.GetData(), ExternalPayloads: p.GetExternalPayloads()}
}

// unmark is a payload without that reason.
func unmark(p *commonpb.Payload) *commonpb.Payload {
	if _, marked := p.GetMetadata()[history.MetaCodec]; !marked {
		return p
	}
	meta := maps.Clone(p.GetMetadata())
	delete(meta, history.MetaCodec)
	return &commonpb.Payload{Metadata: meta, Data: p.GetData(), ExternalPayloads: p.GetExternalPayloads()}
}

// walk replaces every payload within a message, but for search attributes, which no codec
// touches.
func walk(ctx context.Context, msg proto.Message, fn func(*commonpb.Payload) *commonpb.Payload) {
	o := proxy.VisitPayloadsOptions{SkipSearchAttributes: true,
		Visitor: func(_ *proxy.VisitPayloadsContext, list []*commonpb.Payload) ([]*commonpb.Payload, error) {
			out := make([]*commonpb.Payload, len(list))
			for i, p := range list {
				if out[i] = p; p != nil {
					out[i] = fn(p)
				}
			}
			return out, nil
		}}
	o.WellKnownAnyVisitor = func(v *proxy.VisitPayloadsContext, a *anypb.Any) error {
		inner, err := a.UnmarshalNew()
		if err != nil {
			return nil // of a type that this program does not know
		}
		if err := proxy.VisitPayloads(v.Context, inner, o); err != nil {
			return err
		}
		return a.MarshalFrom(inner)
	}
	// The visitor gives no error, and marshalling what was unmarshalled does not fail.
	_ = proxy.VisitPayloads(ctx, msg, o)
}

// openFailures puts the messages and traces of failures in their places where a failure
// converter had hidden them in a payload that can be read now.
func openFailures(msg proto.Message) {
	_ = proxy.VisitFailures(context.Background(), msg, proxy.VisitFailuresOptions{
		Visitor: func(_ *proxy.VisitFailuresContext, f *failurepb.Failure) error {
			if hidden := f.GetEncodedAttributes(); hidden != nil && !Encoded(hidden) {
				converter.DecodeCommonFailureAttributes(converter.GetDefaultDataConverter(), f)
				f.EncodedAttributes = nil
			}
			return nil
		},
		WellKnownAnyVisitor: func(*proxy.VisitFailuresContext, *anypb.Any) error { return nil },
	})
}
