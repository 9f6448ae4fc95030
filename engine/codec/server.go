package codec

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// How long a server that failed is left alone, first and at most, and how long a payload is
// not tried again that it could not decode.
const (
	firstBackoff = time.Second
	MaxBackoff   = 30 * time.Second
	payloadRest  = 30 * time.Second
)

// maxFailed bounds the payloads of which is known that they cannot be decoded.
const maxFailed = 20_000

// Server is a codec server. Its methods may be called at the same time.
type Server struct {
	config   Config
	endpoint string
	name     string
	timeout  time.Duration
	http     http.Client
	decoded  *cache
	now      func() time.Time
	changed  chan struct{}

	mu     sync.Mutex
	status Status
	pause  time.Duration      // the last one, 0 while the server answers
	failed map[digest]failure // at most maxFailed
	sample *commonpb.Payload  // one that failed, to try the server with
}

// failure is why a payload cannot be decoded, and until when it is not tried again.
type failure struct {
	reason string
	until  time.Time
}

// New makes the client of a codec server; it sends nothing yet.
func New(c Config) (*Server, error) {
	endpoint, name, err := c.place()
	if err != nil {
		return nil, err
	}
	s := &Server{config: c, endpoint: endpoint, name: name, timeout: c.Timeout, decoded: newCache(CacheBytes), now: time.Now,
		changed: make(chan struct{}, 1), failed: map[digest]failure{}, status: Status{OK: true}}
	if s.timeout == 0 {
		s.timeout = Timeout
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = parallel
	s.http = http.Client{Transport: answers{base}}
	return s, nil
}

// Check asks the server to decode a payload that is not encoded, which every codec gives
// back. The error is one line.
func (s *Server) Check(ctx context.Context) error {
	p := &commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}, Data: []byte(`"acescope"`)}
	if _, err := s.call(ctx, "decode", []*commonpb.Payload{p}); err != nil {
		return fmt.Errorf("%s: %s", s.name, s.plain(err))
	}
	return nil
}

// Probe tries the server again where it is time to; true where a server that failed
// answers again, so that what was read through it is worth reading anew.
func (s *Server) Probe(ctx context.Context) bool {
	s.mu.Lock()
	sample, due := s.sample, !s.status.Next.IsZero() && !s.now().Before(s.status.Next)
	s.mu.Unlock()
	if sample == nil || !due {
		return false
	}
	_, err := s.call(ctx, "decode", []*commonpb.Payload{sample})
	if err != nil && !blames(err) {
		s.down(ctx, err)
		return false
	}
	s.Retry()
	s.settle(true, "")
	return true
}

// down notes that the server failed as a whole, and leaves it alone for a while.
func (s *Server) down(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return // the caller gave up: that says nothing of the server
	}
	s.mu.Lock()
	s.pause = min(max(2*s.pause, firstBackoff), MaxBackoff)
	s.status.Next = s.now().Add(s.pause)
	s.mu.Unlock()
	s.settle(false, s.plain(err))
}

// up notes that the server answered.
func (s *Server) up() {
	s.mu.Lock()
	s.pause, s.status.Next = 0, time.Time{}
	s.mu.Unlock()
}
