package codec_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"acescope/engine/temporal/codec"
	"acescope/engine/temporal/codec/codectest"
	"acescope/engine/temporal/history"
)

const secret = "Bearer open-sesame"

func start(t *testing.T, c codectest.Cipher) *codectest.Server {
	t.Helper()
	s := codectest.New(c, secret)
	t.Cleanup(s.Close)
	return s
}

func dial(t *testing.T, s *codectest.Server, change ...func(*codec.Config)) *codec.Server {
	t.Helper()
	c := codec.Config{Endpoint: s.URL + "/", Auth: secret, Namespace: "ns"}
	for _, fn := range change {
		fn(&c)
	}
	got, err := codec.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// encrypted returns n payloads encrypted with a key.
func encrypted(t testing.TB, key string, n int) []*commonpb.Payload {
	t.Helper()
	list := make([]*commonpb.Payload, n)
	for i := range list {
		list[i] = &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")},
			Data: fmt.Appendf(nil, `{"n":%d}`, i)}
	}
	out, err := codectest.Cipher{Key: key}.Encode(list)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// signals returns a history with one signal for each payload.
func signals(list []*commonpb.Payload) *historypb.History {
	h := &historypb.History{}
	for i, p := range list {
		h.Events = append(h.Events, &historypb.HistoryEvent{EventId: int64(i + 1),
			Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
				WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{Input: &commonpb.Payloads{Payloads: []*commonpb.Payload{p}}}}})
	}
	return h
}

func payloadOf(h *historypb.History, i int) *commonpb.Payload {
	return h.Events[i].GetWorkflowExecutionSignaledEventAttributes().GetInput().GetPayloads()[0]
}

func plainCount(h *historypb.History) (n int) {
	for i := range h.Events {
		if !history.Encoded(payloadOf(h, i)) {
			n++
		}
	}
	return n
}

func TestReadBatches(t *testing.T) {
	web := start(t, codectest.Cipher{Key: "k"})
	s := dial(t, web, func(c *codec.Config) { c.Headers = map[string]string{"X-More": "yes"} })
	h := signals(encrypted(t, "k", 1200))
	h.Events = append(h.Events, signals(
		[]*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("json/plain")},
			Data: []byte(`"plain"`)}}).Events...)
	stored := proto.Clone(h)
	if left := s.Read(t.Context(), h); left != 0 || plainCount(h) != 1201 {
		t.Fatalf("%d left, %d plain", left, plainCount(h))
	}
	if got := string(payloadOf(h, 7).GetData()); got != `{"n":7}` {
		t.Errorf("%s", got)
	}
	n, head := web.Requests()
	if n != 3 || head.Get("X-Namespace") != "ns" || head.Get("Authorization") != secret ||
		head.Get("X-More") != "yes" {
		t.Errorf("%d requests, header %v", n, head)
	}
	again := proto.Clone(stored).(*historypb.History)
	s.Read(t.Context(), again)
	if n, _ := web.Requests(); n != 3 || plainCount(again) != 1201 {
		t.Errorf("decoded payloads were requested again: %d requests", n)
	}
	if st := s.Status(); !st.OK || st.Reason != "" || st.Failed != 0 {
		t.Errorf("%+v", st)
	}
}

// Payloads in any message are decoded except search attributes, and failures that a failure
// converter encoded are opened.
func TestReadMessages(t *testing.T) {
	s := dial(t, start(t, codectest.Cipher{Key: "k"}))
	p := encrypted(t, "k", 4)
	list := &workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{{
		Memo:             &commonpb.Memo{Fields: map[string]*commonpb.Payload{"a": p[0], "b": p[1]}},
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{"x": p[2]}}}}}
	s.Read(t.Context(), list)
	info := list.Executions[0]
	if a, b := string(info.Memo.Fields["a"].GetData()),
		string(info.Memo.Fields["b"].GetData()); a != `{"n":0}` || b != `{"n":1}` {
		t.Errorf("%s %s", a, b)
	}
	if !history.Encoded(info.SearchAttributes.IndexedFields["x"]) {
		t.Error("a search attribute was decoded")
	}
	f := &failurepb.Failure{Message: "the cause", StackTrace: "here"}
	if err := converter.EncodeCommonFailureAttributes(converter.GetDefaultDataConverter(), f); err != nil {
		t.Fatal(err)
	}
	hidden, err := codectest.Cipher{Key: "k"}.Encode([]*commonpb.Payload{f.EncodedAttributes})
	if err != nil {
		t.Fatal(err)
	}
	f.EncodedAttributes = hidden[0]
	e := &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionFailedEventAttributes{
		WorkflowExecutionFailedEventAttributes: &historypb.WorkflowExecutionFailedEventAttributes{Failure: &failurepb.Failure{Message: "outer", Cause: f}}}}
	s.Events(t.Context(), []*historypb.HistoryEvent{e})
	got := e.GetWorkflowExecutionFailedEventAttributes().GetFailure().GetCause()
	if got.GetMessage() != "the cause" || got.GetStackTrace() != "here" || got.GetEncodedAttributes() != nil {
		t.Errorf("%v", got)
	}
}

// Payloads with an unknown key keep the reason; the others are decoded in few requests.
func TestUnknownKey(t *testing.T) {
	web := start(t, codectest.Cipher{Key: "k"})
	s := dial(t, web)
	var mixed []*commonpb.Payload
	good, bad := encrypted(t, "k", 200), encrypted(t, "lost", 200)
	for i := range good {
		mixed = append(mixed, good[i], bad[i])
	}
	h := signals(mixed)
	if left := s.Read(t.Context(), h); left != 200 || plainCount(h) != 200 {
		t.Fatalf("%d left, %d plain", left, plainCount(h))
	}
	if why := history.CodecReason(payloadOf(h, 1)); why != `HTTP 400 Bad Request: unknown key id "lost"` {
		t.Errorf("%q", why)
	}
	if n, _ := web.Requests(); n > 6 {
		t.Errorf("%d requests", n)
	}
	before, _ := web.Requests()
	more := signals(encrypted(t, "lost", 50))
	if left := s.Read(t.Context(), more); left != 50 {
		t.Errorf("%d left", left)
	}
	if n, _ := web.Requests(); n != before {
		t.Errorf("an unknown key was requested again")
	}
	st := s.Status()
	if !st.OK || !strings.Contains(st.Reason, "unknown key id") {
		t.Errorf("%+v", st)
	}
	select {
	case <-s.Changes():
	default:
		t.Error("Changes has no value")
	}
	s.Read(t.Context(), signals(encrypted(t, "k", 3)))
	select {
	case <-s.Changes():
		t.Error("Changes has a second value")
	default:
	}
}

// One damaged payload does not keep the others from being decoded.
func TestDamagedPayload(t *testing.T) {
	web := start(t, codectest.Cipher{Key: "k"})
	s := dial(t, web)
	list := encrypted(t, "k", 300)
	list[123].Data[20] ^= 1
	h := signals(list)
	if left := s.Read(t.Context(), h); left != 1 || history.CodecReason(payloadOf(h, 123)) == "" {
		t.Errorf("%d left, %q", left, history.CodecReason(payloadOf(h, 123)))
	}
	if n, _ := web.Requests(); n > 25 {
		t.Errorf("%d requests", n)
	}
}

// A failing server is paused with its reason, and everything is decoded when it works again.
func TestFailingServer(t *testing.T) {
	say := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); fmt.Fprint(w, body) }
	}
	for name, c := range map[string]struct {
		fail http.HandlerFunc
		want string
	}{
		"401": {say(401, ""), "HTTP 401 Unauthorized (set --codec-auth"},
		"403": {say(403, "who is "+secret+"?\x1b[31m\u202ehidden"),
			"HTTP 403 Forbidden: who is (secret)? [31m hidden (set"},
		"404": {say(404, ""), "check the endpoint"},
		"503": {say(503, "busy\nlater"), "HTTP 503 Service Unavailable: busy later"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.invalid/", 307)
		}, "HTTP 307"},
		"garbage": {say(200, "<html>hello</html>"), "the response is not a list of payloads"},
		"count":   {say(200, `{"payloads":[]}`), "received 0 payloads from remote codec, expected 40"},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, "no answer within 50ms"},
	} {
		t.Run(name, func(t *testing.T) {
			web := start(t, codectest.Cipher{Key: "k"})
			s := dial(t, web, func(c *codec.Config) {
				if name == "hangs" {
					c.Timeout = 50 * time.Millisecond
				}
			})
			web.Fail(c.fail)
			list := encrypted(t, "k", 40)
			h := signals(list)
			if left := s.Read(t.Context(), h); left != 40 {
				t.Fatalf("%d left", left)
			}
			why := history.CodecReason(payloadOf(h, 0))
			if !strings.Contains(why, c.want) || strings.Contains(why, "sesame") ||
				strings.ContainsAny(why, "\n\x1b\u202e") {
				t.Errorf("%q", why)
			}
			if string(payloadOf(h, 0).GetData()) != string(list[0].GetData()) {
				t.Error("the payload was changed")
			}
			if st := s.Status(); st.OK || st.Reason != why || st.Next.IsZero() {
				t.Errorf("%+v", st)
			}
			asked, _ := web.Requests()
			s.Read(t.Context(), signals(encrypted(t, "k", 5)))
			if n, _ := web.Requests(); n != asked {
				t.Error("a paused server was asked")
			}
			web.Fail(nil)
			s.Retry()
			h = signals(list)
			if left := s.Read(t.Context(), h); left != 0 || !s.Status().OK {
				t.Errorf("%d left, %+v", left, s.Status())
			}
		})
	}
}

// Probe asks a failed server after its pause.
func TestProbe(t *testing.T) {
	web := start(t, codectest.Cipher{Key: "k"})
	s := dial(t, web)
	web.Fail(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
	s.Read(t.Context(), signals(encrypted(t, "k", 2)))
	if s.Probe(t.Context()) {
		t.Error("probed during the pause")
	}
	codec.Advance(s, time.Hour)
	if s.Probe(t.Context()) || s.Status().OK {
		t.Error("Probe returned true for a failing server")
	}
	web.Fail(nil)
	codec.Advance(s, 2*time.Hour)
	if !s.Probe(t.Context()) || !s.Status().OK {
		t.Errorf("%+v", s.Status())
	}
	web.Close()
	dead := dial(t, web)
	dead.Read(t.Context(), signals(encrypted(t, "k", 2)))
	if why := dead.Status().Reason; !strings.Contains(why, "connection refused") {
		t.Errorf("%q", why)
	}
}

// A canceled read does not pause the server.
func TestReadCanceled(t *testing.T) {
	s := dial(t, start(t, codectest.Cipher{Key: "k"}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if left := s.Read(ctx, signals(encrypted(t, "k", 2))); left != 2 || !s.Status().OK {
		t.Errorf("%d left, %+v", left, s.Status())
	}
}

func TestEndpoint(t *testing.T) {
	for _, bad := range []string{"host:1234", "ftp://x", "http://", "://", "http://x/?q=1",
		"http://user:hush@/x", "http://x\x7f"} {
		if _, err := codec.New(codec.Config{Endpoint: bad}); err == nil ||
			strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	s, err := codec.New(codec.Config{Endpoint: "https://me:hush@codec.example/{namespace}/",
		Namespace: "a/b"})
	if err != nil || s.Name() != "https://codec.example/a%2Fb" {
		t.Errorf("%v, %v", s.Name(), err)
	}
	if got := (codec.Config{Endpoint: "https://me:hush@codec.example/{namespace}"}).Shown(); got != "https://codec.example/{namespace}" {
		t.Error(got)
	}
}

// call makes a call through an interceptor and returns what the cluster gets, and the error.
func call(door grpc.UnaryClientInterceptor, ctx context.Context, req, reply proto.Message,
	answer proto.Message) (sent proto.Message, err error) {
	err = door(ctx, "/x/Y", req, reply, nil, func(_ context.Context, _ string, req, reply any,
		_ *grpc.ClientConn, _ ...grpc.CallOption) error {
		sent = req.(proto.Message)
		proto.Merge(reply.(proto.Message), answer)
		return nil
	})
	return sent, err
}

func TestIntercept(t *testing.T) {
	web := start(t, codectest.Cipher{Key: "k"})
	s := dial(t, web)
	in := &commonpb.Payloads{Payloads: []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte(
		"json/plain")}, Data: []byte(`"mine"`)}}}
	req := &workflowservice.StartWorkflowExecutionRequest{WorkflowId: "w", Input: in}
	sent, err := call(s.Intercept, t.Context(), req, &workflowservice.StartWorkflowExecutionResponse{},
		&workflowservice.StartWorkflowExecutionResponse{})
	if err != nil {
		t.Fatal(err)
	}
	out := sent.(*workflowservice.StartWorkflowExecutionRequest)
	if got := out.GetInput().GetPayloads()[0]; string(got.GetMetadata()["encoding"]) != codectest.Encoding ||
		out.GetWorkflowId() != "w" {
		t.Errorf("sent %v", got)
	}
	if string(req.GetInput().GetPayloads()[0].GetData()) != `"mine"` {
		t.Error("the caller's request was changed: another attempt would encode it twice")
	}
	// A page as a server that keeps it raw sends it, read decoded and as stored.
	raw, err := proto.Marshal(signals(encrypted(t, "k", 3)))
	if err != nil {
		t.Fatal(err)
	}
	page := &workflowservice.GetWorkflowExecutionHistoryResponse{RawHistory: []*commonpb.DataBlob{{Data: raw}}}
	reply := &workflowservice.GetWorkflowExecutionHistoryResponse{}
	if _, err := call(s.Intercept, t.Context(), &workflowservice.GetWorkflowExecutionHistoryRequest{}, reply,
		page); err != nil || plainCount(reply.GetHistory()) != 3 {
		t.Errorf("%v %v", err, reply)
	}
	reply = &workflowservice.GetWorkflowExecutionHistoryResponse{}
	if _, err := call(s.Intercept, codec.AsStored(t.Context()),
		&workflowservice.GetWorkflowExecutionHistoryRequest{}, reply, page); err != nil ||
		len(reply.GetRawHistory()) != 1 {
		t.Errorf("%v %v", err, reply)
	}
	// Nothing is sent plain.
	web.Fail(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) })
	sent, err = call(s.Intercept, t.Context(), req, &workflowservice.StartWorkflowExecutionResponse{},
		&workflowservice.StartWorkflowExecutionResponse{})
	if err == nil || sent != nil || !strings.Contains(err.Error(), "nothing was sent") {
		t.Errorf("sent %v, %v", sent, err)
	}
}

// A worker gets no workflow task that it cannot read, but may get an activity.
func TestInterceptWorker(t *testing.T) {
	web := start(t, codectest.Cipher{Key: "k"})
	s := dial(t, web)
	task := &workflowservice.PollWorkflowTaskQueueResponse{History: signals(encrypted(t, "k", 2))}
	reply := &workflowservice.PollWorkflowTaskQueueResponse{}
	web.Fail(func(w http.ResponseWriter, _ *http.Request) {
		web.Fail(nil) // the second attempt succeeds
		w.WriteHeader(503)
	})
	if _, err := call(s.InterceptWorker, t.Context(), &workflowservice.PollWorkflowTaskQueueRequest{}, reply,
		task); err != nil || plainCount(reply.GetHistory()) != 2 {
		t.Errorf("%v, %d plain", err, plainCount(reply.GetHistory()))
	}
	other := signals(encrypted(t, "lost", 1))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := call(s.InterceptWorker, ctx, &workflowservice.PollWorkflowTaskQueueRequest{},
		&workflowservice.PollWorkflowTaskQueueResponse{},
		&workflowservice.PollWorkflowTaskQueueResponse{History: other}); err == nil ||
		errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a worker got an unreadable workflow task: %v", err)
	}
	step := &workflowservice.PollActivityTaskQueueResponse{}
	if _, err := call(s.InterceptWorker, ctx, &workflowservice.PollActivityTaskQueueRequest{}, step,
		&workflowservice.PollActivityTaskQueueResponse{Input: &commonpb.Payloads{Payloads: encrypted(t,
			"lost", 1)}}); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	web := start(t, codectest.Cipher{Key: "k"})
	if err := dial(t, web).Check(t.Context()); err != nil {
		t.Error(err)
	}
	err := dial(t, web, func(c *codec.Config) { c.Auth = "Bearer another-secret" }).Check(t.Context())
	if err == nil || !strings.Contains(err.Error(), "403") ||
		strings.Contains(err.Error(), "another-secret") {
		t.Error(err)
	}
}
