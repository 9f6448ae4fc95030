// Package codec decodes and encodes payloads through a codec server: once, where they enter
// and leave the process. Everything else (fold, replay, comparison, screens) sees plain
// payloads, and no screen waits for a codec server.
//
// A reader leaves a payload that cannot be decoded unchanged, with the reason in its metadata
// (history.MetaCodec). A worker waits instead, and nothing is sent unencoded.
//
// Bounds: a request carries at most MaxBatch payloads of MaxBatchBytes in total and is limited
// by the timeout. A server that fails is paused for a time that grows to MaxBackoff. Decoded
// payloads are cached up to CacheBytes, least recently used first out. The secrets of a
// [Config] appear in no error, status or name.
//
// The package may import engine/ace, engine/internal/lru, engine/temporal/history and Temporal's API
// and SDK.
package codec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"acescope/engine/internal/lru"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

const (
	// Timeout is the default limit of a request to a codec server.
	Timeout = 5 * time.Second
	// MaxBackoff is the longest pause after a failure of the server.
	MaxBackoff = 30 * time.Second

	firstBackoff   = time.Second
	payloadBackoff = 30 * time.Second // until a payload that could not be decoded is retried
	maxFailed      = 20_000           // remembered payloads that could not be decoded
)

// Config has the address of a codec server and the credentials for it, as the temporal
// command takes them.
type Config struct {
	Endpoint  string            // http or https; {namespace} is replaced by the namespace
	Auth      string            // the Authorization header; secret
	Headers   map[string]string // further headers; secret
	Namespace string            // sent as X-Namespace
	Timeout   time.Duration     // of one request; 0 means [Timeout]
}

// CheckEndpoint returns an error if an endpoint is invalid. The error does not contain the password.
func CheckEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return errors.New("invalid URL: write http://host:port or https://host/path")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%q is not a codec server address: write http://host:port or https://host/path",
			u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("an endpoint has no query and no fragment: /encode and /decode are appended to it")
	}
	return nil
}

// Shown returns the endpoint without its password.
func (c Config) Shown() string {
	if c.Endpoint == "" {
		return ""
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return "(invalid URL)"
	}
	u.User = nil
	return strings.NewReplacer("%7B", "{", "%7D", "}").Replace(u.String())
}

func (c Config) sign(h http.Header) {
	h.Set("X-Namespace", c.Namespace)
	for name, value := range c.Headers {
		h.Set(name, value)
	}
	if c.Auth != "" {
		h.Set("Authorization", c.Auth)
	}
}

// secrets lists the texts to remove from a server's messages.
func (c Config) secrets() []string {
	all := slices.AppendSeq([]string{c.Auth}, maps.Values(c.Headers))
	for _, s := range all {
		if _, token, ok := strings.Cut(s, " "); ok { // "Bearer token"
			all = append(all, token)
		}
	}
	if u, err := url.Parse(c.Endpoint); err == nil {
		password, _ := u.User.Password()
		all = append(all, password)
	}
	return all
}

// Server is a client of a codec server. It is safe for concurrent use.
type Server struct {
	config   Config
	endpoint string
	name     string
	timeout  time.Duration
	http     http.Client
	decoded  *lru.Cache[digest, *commonpb.Payload]
	now      func() time.Time
	changed  chan struct{}

	mu     sync.Mutex
	status Status
	pause  time.Duration      // the last backoff, 0 while the server answers
	failed map[digest]failure // at most maxFailed
	sample *commonpb.Payload  // an encoded payload to probe the server with
}

// Status describes the state of a codec server.
type Status struct {
	OK     bool
	Reason string    // one line; also set while only some payloads fail
	Since  time.Time // last change of OK or Reason, zero before the first request
	Next   time.Time // next request to a paused server, zero if not paused
	Failed int64     // payloads that stayed encoded, counted at every read
}

// failure is the reason why a payload cannot be decoded, and the time of the next attempt.
type failure struct {
	reason string
	until  time.Time
}

// New returns a client of a codec server. It sends nothing yet.
func New(c Config) (*Server, error) {
	endpoint := strings.ReplaceAll(c.Endpoint, "{namespace}", url.PathEscape(c.Namespace))
	endpoint = strings.TrimRight(endpoint, "/")
	if err := CheckEndpoint(endpoint); err != nil {
		return nil, fmt.Errorf("codec endpoint: %w", err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = parallelRequests
	return &Server{
		config: c, endpoint: endpoint, name: Config{Endpoint: endpoint}.Shown(),
		timeout: cmp.Or(c.Timeout, Timeout),
		http:    http.Client{Transport: strictTransport{transport}},
		decoded: lru.New[digest](CacheBytes, sizeOf),
		now:     time.Now,
		changed: make(chan struct{}, 1),
		failed:  map[digest]failure{},
		status:  Status{OK: true},
	}, nil
}

// Name returns the endpoint without its password.
func (s *Server) Name() string { return s.name }

// Status returns the state of the server.
func (s *Server) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Changes receives a value after a change of OK or Reason. Further changes are merged into it.
func (s *Server) Changes() <-chan struct{} { return s.changed }

// Check asks the server to decode a plain payload, which every codec returns unchanged. The
// error is one line.
func (s *Server) Check(ctx context.Context) error {
	p := &commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)},
		Data:     []byte(`"acescope"`),
	}
	if _, err := s.call(ctx, "decode", []*commonpb.Payload{p}); err != nil {
		return fmt.Errorf("%s: %s", s.name, s.explain(err))
	}
	return nil
}

// Probe asks a failed server again if its pause is over. It returns true if the server works again: the
// caller should then read again what it read through the server.
func (s *Server) Probe(ctx context.Context) bool {
	s.mu.Lock()
	sample := s.sample
	due := !s.status.Next.IsZero() && !s.now().Before(s.status.Next)
	s.mu.Unlock()
	if sample == nil || !due {
		return false
	}
	_, err := s.call(ctx, "decode", []*commonpb.Payload{sample})
	if err != nil && !rejectsPayloads(err) {
		s.setDown(ctx, err)
		return false
	}
	s.Retry()
	s.setStatus(true, "")
	return true
}

// Retry forgets failures, so that the next read asks the server again.
func (s *Server) Retry() {
	s.setUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = map[digest]failure{}
	if s.status.OK {
		s.status.Reason = ""
	}
}

// setDown records that the server failed, and pauses it.
func (s *Server) setDown(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return // the caller gave up, which says nothing about the server
	}
	s.mu.Lock()
	s.pause = min(max(2*s.pause, firstBackoff), MaxBackoff)
	s.status.Next = s.now().Add(s.pause)
	s.mu.Unlock()
	s.setStatus(false, s.explain(err))
}

func (s *Server) setUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pause = 0
	s.status.Next = time.Time{}
}

// setStatus updates OK and Reason and notifies Changes if they changed.
func (s *Server) setStatus(ok bool, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.status.Since.IsZero()
	if !first && s.status.OK == ok && s.status.Reason == reason {
		return
	}
	s.status.OK = ok
	s.status.Reason = reason
	s.status.Since = s.now()
	if first && ok && reason == "" {
		return
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}
