package codec

import (
	"context"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
)

// EncodeData encodes bytes that are not part of a message, as the data of one payload. It returns the encoded
// payload in protobuf's encoding.
func (s *Server) EncodeData(ctx context.Context, data []byte) ([]byte, error) {
	p := &commonpb.Payload{Data: data,
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingBinary)}}
	got, err := s.one(ctx, "encode", p)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(got)
}

// DecodeData is the inverse of EncodeData.
func (s *Server) DecodeData(ctx context.Context, data []byte) ([]byte, error) {
	p := &commonpb.Payload{}
	if err := proto.Unmarshal(data, p); err != nil {
		return nil, err
	}
	got, err := s.one(ctx, "decode", p)
	if encoding := string(got.GetMetadata()[converter.MetadataEncoding]); err == nil &&
		encoding != converter.MetadataEncodingBinary {
		err = fmt.Errorf("codec server %s did not decode: the encoding is still %.80q", s.name, encoding)
	}
	return got.GetData(), err
}

func (s *Server) one(ctx context.Context, method string, p *commonpb.Payload) (*commonpb.Payload, error) {
	got, err := s.call(ctx, method, []*commonpb.Payload{p})
	if err == nil && len(got) != 1 {
		err = fmt.Errorf("it returned %d payloads for one payload", len(got))
	}
	if err != nil {
		return nil, fmt.Errorf("codec server %s cannot %s: %s", s.name, method, s.explain(err))
	}
	return got[0], nil
}
