package codec

import (
	"context"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/proto"
)

// write is a copy of a message with its payloads encoded, or an error: nothing is to be
// sent then.
func (s *Server) write(ctx context.Context, msg proto.Message) (proto.Message, error) {
	var list []one
	seen := map[digest]bool{}
	walk(ctx, msg, func(p *commonpb.Payload) *commonpb.Payload {
		if d := digestOf(p); !seen[d] {
			seen[d] = true
			list = append(list, one{d, p})
		}
		return p
	})
	if len(list) == 0 {
		return msg, nil
	}
	out := make(map[digest]*commonpb.Payload, len(list))
	for len(list) > 0 {
		n := batchLen(list)
		payloads := make([]*commonpb.Payload, n)
		for i, o := range list[:n] {
			payloads[i] = o.p
		}
		got, err := s.call(ctx, "encode", payloads)
		if err != nil {
			if !blames(err) {
				s.down(ctx, err)
			}
			return nil, fmt.Errorf("codec server %s cannot encode, so nothing was sent: %s", s.name, s.plain(err))
		}
		for i, o := range list[:n] {
			out[o.d] = got[i]
		}
		list = list[n:]
	}
	copied := proto.Clone(msg)
	walk(ctx, copied, func(p *commonpb.Payload) *commonpb.Payload { return out[digestOf(p)] })
	return copied, nil
}
