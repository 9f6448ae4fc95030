package webui

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"acescope/engine/temporal/codec/codectest"
)

// frontend is a Temporal server with one encrypted history.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer
	operatorservice.UnimplementedOperatorServiceServer
	reset  chan *workflowservice.ResetWorkflowExecutionRequest
	header chan metadata.MD
}

func newFrontend() frontend {
	return frontend{reset: make(chan *workflowservice.ResetWorkflowExecutionRequest, 9),
		header: make(chan metadata.MD, 9)}
}

func (f frontend) GetWorkflowExecutionHistory(
	ctx context.Context, r *workflowservice.GetWorkflowExecutionHistoryRequest,
) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	header, _ := metadata.FromIncomingContext(ctx)
	f.header <- header
	if r.GetExecution().GetWorkflowId() != "ace/q 1" {
		return nil, serviceerror.ToStatus(serviceerror.NewNotFound("no such workflow")).Err()
	}
	plain, codec := converter.GetDefaultDataConverter(), codectest.Cipher{Key: "k"}
	input, err := converter.NewCodecDataConverter(plain, codec).ToPayloads("secret input")
	if err != nil {
		return nil, err
	}
	started := &historypb.WorkflowExecutionStartedEventAttributes{Input: input}
	events := []*historypb.HistoryEvent{{EventId: 1, EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: started,
		}}}
	return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{Events: events}},
		nil
}

func (f frontend) ResetWorkflowExecution(
	_ context.Context, r *workflowservice.ResetWorkflowExecutionRequest,
) (*workflowservice.ResetWorkflowExecutionResponse, error) {
	f.reset <- r
	return &workflowservice.ResetWorkflowExecutionResponse{RunId: "new"}, nil
}

type apiKey struct{}

func (apiKey) GetHeaders(context.Context) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer engine"}, nil
}

// serve returns the pages with a client of the frontend that has credentials and a codec.
func (f frontend) serve(t *testing.T, readOnly bool) http.Handler {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, f)
	operatorservice.RegisterOperatorServiceServer(server, f)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	decode, err := converter.NewPayloadCodecGRPCClientInterceptor(
		converter.PayloadCodecGRPCClientInterceptorOptions{
			Codecs: []converter.PayloadCodec{codectest.Cipher{Key: "k"}},
		})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewLazyClient(client.Options{HostPort: l.Addr().String(), HeadersProvider: apiKey{},
		ConnectionOptions: client.ConnectionOptions{
			DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(decode)},
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	h, err := pages(t.Context(), Options{Client: c, Of: Namespace{Name: "n"}, ReadOnly: readOnly})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func request(h http.Handler, method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, "http://127.0.0.1:1"+path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

const workflows = "/api/v1/namespaces/n/workflows/"

// The API calls the server as the process's client does: with its credentials, through its codec.
func TestAPI(t *testing.T) {
	f := newFrontend()
	h := f.serve(t, false)
	code, body := request(h, "GET", workflows+"ace%2Fq%201/history", "")
	if code != 200 || !strings.Contains(body, "InNlY3JldCBpbnB1dCI=") ||
		!strings.Contains(body, "EVENT_TYPE_WORKFLOW_EXECUTION_STARTED") {
		t.Errorf("a history: %d %s", code, body)
	}
	if got := (<-f.header)["authorization"]; len(got) != 1 || got[0] != "Bearer engine" {
		t.Errorf("credentials: %q", got)
	}
	code, body = request(h, "GET", workflows+"ace%2Fq%201/run/r1/history.json", "")
	if code != 200 || !strings.Contains(body, "InNlY3JldCBpbnB1dCI=") {
		t.Errorf("a history to download: %d %s", code, body)
	}
	code, body = request(h, "GET", workflows+"other/history", "")
	if code != 404 || !strings.Contains(body, "no such workflow") {
		t.Errorf("an unknown run: %d %s", code, body)
	}
	const reset = `{"workflowExecution":{"runId":"r1"},"workflowTaskFinishEventId":"4",
		"resetReapplyType":"Signal"}`
	code, body = request(h, "POST", workflows+"ace%2Fq%201/reset", reset)
	if code != 200 || !strings.Contains(body, `"runId":"new"`) {
		t.Fatalf("reset: %d %s", code, body)
	}
	if r := <-f.reset; r.GetWorkflowExecution().GetWorkflowId() != "ace/q 1" ||
		r.GetWorkflowTaskFinishEventId() != 4 ||
		r.GetResetReapplyType() != enumspb.RESET_REAPPLY_TYPE_SIGNAL {
		t.Errorf("the server got %v", r)
	}
	if code, body = request(h, "POST", workflows+"ace%2Fq%201/reset", "{"); code != 400 {
		t.Errorf("bad JSON: %d %s", code, body)
	}
}

func TestReadOnly(t *testing.T) {
	f := newFrontend()
	h := f.serve(t, true)
	if code, body := request(h, "POST", workflows+"ace%2Fq%201/reset", "{}"); code != 405 ||
		len(f.reset) != 0 {
		t.Errorf("reset: %d %s", code, body)
	}
	if code, body := request(h, "GET", workflows+"ace%2Fq%201/history", ""); code != 200 {
		t.Errorf("a history: %d %s", code, body)
	}
	_, body := request(h, "GET", "/api/v1/settings", "")
	if !strings.Contains(body, `"DisableWriteActions":true`) {
		t.Errorf("settings: %s", body)
	}
}

// Pages are served for every path; the scripts come with this program.
func TestPages(t *testing.T) {
	h := frontend{}.serve(t, false)
	for path, want := range map[string]string{
		"/": "<!doctype html", "/namespaces/n/workflows/ace%2Fq": "<!doctype html", "/favicon.ico": "\x00",
		"/render?content=**bold**": "<strong>bold</strong>", "/api/v1/ui-extensions": `"Enabled":false`,
		"/api/v1/releases": `"Releases":{}`, "/api/v1/settings": `"DisableNewsFetch":true`,
	} {
		code, body := request(h, "GET", path, "")
		if code != 200 || !strings.Contains(strings.ToLower(body), strings.ToLower(want)) {
			t.Errorf("%s: %d %.200q", path, code, body)
		}
	}
}
