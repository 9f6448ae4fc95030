package sources

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/temporal/codec"
	"acescope/engine/temporal/codec/codectest"
	"acescope/sources/cluster"
	"acescope/sources/system"
)

// A failing codec server is reported once, however often it is called. A refresh tries again, and the health
// shows the result.
func TestWatchCodec(t *testing.T) {
	web := codectest.New(codectest.Cipher{Key: "k"}, "")
	defer web.Close()
	c, err := codec.New(codec.Config{Endpoint: web.URL})
	if err != nil {
		t.Fatal(err)
	}
	s := NewFeeds()
	s.Link.Codec = c
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.watchCodec(ctx) }()
	defer func() { stop(); <-done }()

	web.Fail(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "closed for today", 503) })
	read := func() int {
		list, err := codectest.Cipher{Key: "k"}.Encode(
			[]*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("json/plain")},
				Data: []byte("1")}})
		if err != nil {
			t.Fatal(err)
		}
		return c.Events(ctx, []*historypb.HistoryEvent{{Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{Input: &commonpb.Payloads{Payloads: list}}}}})
	}
	for range 1000 {
		if read() != 1 {
			t.Fatal("decoded by a server that fails")
		}
	}
	health := func() cluster.Health {
		for _, h := range s.Link.Status().Health {
			if h.Name == system.CodecHealth {
				return h
			}
		}
		return cluster.Health{State: cluster.OK}
	}
	waitCodec(t, func() bool { return health().State != cluster.OK })
	if h := health(); !strings.Contains(h.Text, "503 Service Unavailable: closed for today") {
		t.Errorf("%+v", h)
	}
	if p := s.Link.Status().Problems; len(p) != 1 || !strings.HasPrefix(p[0].Text, "codec server "+web.URL) {
		t.Errorf("%+v", p)
	}
	web.Fail(nil)
	waitCodec(t, func() bool {
		s.Refresh()
		return read() == 0 && health().State == cluster.OK
	})
	if p := s.Link.Status().Problems; len(p) != 1 {
		t.Errorf("%+v", p)
	}
}

func waitCodec(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never came")
		}
	}
}
