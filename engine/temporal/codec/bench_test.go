package codec_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/temporal/codec"
	"acescope/engine/temporal/codec/codectest"
)

// BenchmarkHistory decodes a history of 10,000 events with a payload each, page by page,
// through a local codec server and then from the cache.
func BenchmarkHistory(b *testing.B) {
	web := codectest.New(codectest.Cipher{Key: "k"}, "")
	defer web.Close()
	h := signals(encrypted(b, "k", 10_000))
	read := func(b *testing.B, s *codec.Server) {
		for at := 0; at < len(h.Events); at += 256 {
			page := proto.Clone(&historypb.History{Events: h.Events[at:min(at+256,
				len(h.Events))]}).(*historypb.History)
			if left := s.Read(b.Context(), page); left > 0 {
				b.Fatal(left)
			}
		}
	}
	client := func(b *testing.B) *codec.Server {
		s, err := codec.New(codec.Config{Endpoint: web.URL})
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			read(b, client(b))
		}
		n, _ := web.Requests()
		b.ReportMetric(float64(n)/float64(b.N), "requests")
	})
	b.Run("again", func(b *testing.B) {
		s := client(b)
		read(b, s)
		for b.Loop() {
			read(b, s)
		}
	})
}
