package example_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/temporal/operation"
	"acescope/engine/temporal/operation/example"
	"acescope/engine/temporal/replay"
)

func recorded(t *testing.T, name string) *historypb.History {
	t.Helper()
	f, err := os.Open("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// watcher records the IDs of the operations that replayed code starts.
type watcher struct {
	interceptor.WorkerInterceptorBase
	ids []string
}

func (w *watcher) InterceptWorkflow(_ workflow.Context,
	next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &inbound{interceptor.WorkflowInboundInterceptorBase{Next: next}, w}
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	w *watcher
}

func (i *inbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&outbound{interceptor.WorkflowOutboundInterceptorBase{Next: next}, i.w})
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	w *watcher
}

func (o *outbound) ExecuteActivity(ctx workflow.Context, kind string, args ...any) workflow.Future {
	o.w.ids = append(o.w.ids, workflow.GetActivityOptions(ctx).ActivityID)
	return o.Next.ExecuteActivity(ctx, kind, args...)
}

var quiet = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))

type registry struct{ worker.WorkflowReplayer }

func (registry) RegisterDynamicWorkflow(any, workflow.DynamicRegisterOptions) {}

func replayed(t *testing.T, h *historypb.History) []string {
	t.Helper()
	w := &watcher{}
	r, err := worker.NewWorkflowReplayerWithOptions(
		worker.WorkflowReplayerOptions{Interceptors: []interceptor.WorkerInterceptor{w}})
	if err != nil {
		t.Fatal(err)
	}
	example.Register(registry{r})
	if err := r.ReplayWorkflowHistory(quiet, h); err != nil {
		t.Fatal(err)
	}
	return w.ids
}

func started(h *historypb.History) (ids []string) {
	for _, e := range operation.Project(h.Events) {
		if e.Type == operation.OperationStarted {
			ids = append(ids, e.OperationID)
		}
	}
	return ids
}

// TestS2_17 checks that every replay of a recorded history starts its operations in its order.
func TestS2_17(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d recorded histories, %v", len(files), err)
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(name, func(t *testing.T) {
			h := recorded(t, name)
			first, again := replayed(t, h), replayed(t, h)
			if want := started(h); !slices.Equal(first, want) || !slices.Equal(again, want) {
				t.Errorf("the history has\n%q, replays\n%q\n%q", want, first, again)
			}
		})
	}
	// Two live runs whose results differ need not be alike.
	if a, b := started(recorded(t, "review")), started(recorded(t, "review-failed")); len(a) != 6 ||
		len(b) != 1 {
		t.Errorf("%q, %q", a, b)
	}
}

// TestEvents checks the projection of a recorded history: S2.3 and S2.4.
func TestEvents(t *testing.T) {
	events := operation.Project(recorded(t, "review").Events)
	kinds := map[operation.EventType]int{}
	variables := map[string]string{}
	for _, e := range events {
		kinds[e.Type]++
		switch e.Type {
		case operation.VariableSet:
			variables[e.Variable] = string(e.Data)
		case operation.OperationStarted:
			if e.OperationID == "" || e.OperationType == "" || e.Step == "" || e.Parameters == nil {
				t.Errorf("%+v", e)
			}
		case operation.OperationCompleted:
			if e.Result == nil || e.ExecutedAt.IsZero() || e.DurationMS == nil || e.Attempt != 1 {
				t.Errorf("%+v", e)
			}
		case operation.RandomGenerated:
			var n int
			if json.Unmarshal(e.Data, &n) != nil || n < 100 || n > 999 || e.Seed == "" ||
				e.Key != "random.title.-.1" {
				t.Errorf("%+v", e)
			}
		case operation.TimeAccessed:
			if e.Time.IsZero() || e.Key != "time.now.-.1" {
				t.Errorf("%+v", e)
			}
		}
	}
	want := map[operation.EventType]int{operation.OperationStarted: 6, operation.OperationCompleted: 6,
		operation.VariableSet:     4,
		operation.RandomGenerated: 1, operation.TimeAccessed: 1}
	if !reflect.DeepEqual(kinds, want) {
		t.Errorf("%v, want %v", kinds, want)
	}
	if variables["wrong"] != "1" || !strings.Contains(variables["draft"], "Yes.") ||
		variables["receipt"] == "" {
		t.Errorf("%v", variables)
	}
	last := operation.Project(recorded(t, "review-failed").Events)
	if f := last[len(last)-1]; f.Type != operation.OperationFailed || f.Error.Type != operation.TypeAgent ||
		f.Error.Message == "" || f.Attempt != 1 {
		t.Errorf("%+v", f)
	}
	guarded := operation.Project(recorded(t, "refund-guarded").Events)
	if v := guarded[0]; v.Type != operation.VersionDecision || v.ChangeID != "fraud-check" ||
		*v.Version != 1 || *v.MinVersion != -1 || *v.MaxVersion != 1 {
		t.Errorf("%+v", v)
	}
	old := started(recorded(t, "refund-first"))
	if !slices.Equal(old, []string{"op.pay%20back.-.1", "op.tell.-.1"}) {
		t.Errorf("%q", old)
	}
}

// TestPartialHistory checks that the beginning of a history gives the beginning of its events,
// as for an open run.
func TestPartialHistory(t *testing.T) {
	h := recorded(t, "review").Events
	whole := operation.Project(h)
	for n := range h {
		if part := operation.Project(h[:n]); !reflect.DeepEqual(part, whole[:len(part):len(part)]) &&
			len(part) > 0 {
			t.Fatalf("after %d events: %+v", n, part)
		}
	}
}

// TestReview runs the workflow of the documentation with mocked results (S2.7).
func TestReview(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet)
	env := suite.NewTestWorkflowEnvironment()
	mock := (&operation.Mock{}).
		Step("draft", example.Draft{Text: "Perhaps.", Score: 0.5}, example.Draft{Text: "No.", Score: 0.95}).
		Step("check", true).
		ID("op.check.facts.2", errors.New("the encyclopaedia is away")).
		Step("publish", "receipt 9")
	mock.Register(env)
	env.ExecuteWorkflow(example.Review,
		example.Question{Text: "Is it flat?", Facts: []string{"it turns", "it is blue"}, Rounds: 5})

	var a example.Answer
	if err := env.GetWorkflowResult(&a); err != nil {
		t.Fatal(err)
	}
	if a.Text != "No." || a.Rounds != 2 || a.Receipt != "receipt 9" ||
		!slices.Equal(a.Wrong, []string{"it is blue"}) {
		t.Errorf("%+v", a)
	}
}

// verdict verifies a recorded refund against a version of the code.
func verdict(t *testing.T, code func(workflow.Context, string) error, name string) replay.Verdict {
	t.Helper()
	v := replay.Verifier{Build: "new", Register: func(r worker.WorkflowRegistry) {
		r.RegisterWorkflowWithOptions(code, workflow.RegisterOptions{Name: example.RefundWorkflow})
	}}
	return v.Verify(t.Context(), recorded(t, name).Events)
}

// TestVersioning is the worked example of docs/design/versioning.md.
func TestVersioning(t *testing.T) {
	for _, c := range []struct {
		name    string
		code    func(workflow.Context, string) error
		history string
		kind    replay.Kind
		said    string
	}{
		{"first code, first run", example.RefundFirst, "refund-first", "", ""},
		{"guarded code, first run", example.RefundGuarded, "refund-first", "", ""},
		{"guarded code, its own run", example.RefundGuarded, "refund-guarded", "", ""},
		{"finished code, guarded run", example.RefundFinished, "refund-guarded", "", ""},
		{"finished code, first run", example.RefundFinished, "refund-first", replay.KindVersion,
			`the change "fraud-check"`},
		{"careless code, first run", example.RefundCareless, "refund-first", replay.KindOther,
			"the code does activity operation.action op.look%20for%20fraud.-.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := verdict(t, c.code, c.history)
			if c.kind == "" {
				if v.Outcome != replay.Deterministic {
					t.Errorf("%+v %+v", v, v.Divergence)
				}
				return
			}
			if v.Outcome != replay.Nondeterministic || v.Divergence.Kind != c.kind ||
				!strings.Contains(v.Divergence.Sentence, c.said) || v.Divergence.Advice == "" {
				t.Errorf("%+v %+v", v, v.Divergence)
			}
			if v.Divergence != nil {
				t.Log(v.Divergence.Sentence)
			}
		})
	}
}

// TestS2_14 checks that code fails its workflow task if the history has another random value.
func TestS2_14(t *testing.T) {
	h := recorded(t, "review")
	data := markerData(t, h)
	*data = []byte(strings.Replace(string(*data), "random.title", "random.other", 1))
	v := replay.Verifier{Register: example.Register}
	got := v.Verify(t.Context(), h.Events)
	if got.Outcome != replay.Nondeterministic ||
		!strings.Contains(got.Divergence.SDK,
			`the random value "random.other.-.1" where the code draws "random.title.-.1"`) {
		t.Errorf("%+v %+v", got, got.Divergence)
	}
}

// markerData returns the content of the first marker of a side effect.
func markerData(t *testing.T, h *historypb.History) *[]byte {
	t.Helper()
	for _, e := range h.Events {
		if m := e.GetMarkerRecordedEventAttributes(); m.GetMarkerName() == "SideEffect" {
			return &m.Details["data"].Payloads[0].Data
		}
	}
	t.Fatal("no marker")
	return nil
}

// TestS2_15 checks that a run started before a change has the original version, and that later
// runs keep the version that they recorded.
func TestS2_15(t *testing.T) {
	for _, c := range []struct {
		history   string
		low, high workflow.Version
		want      workflow.Version
	}{
		{"refund-first", workflow.DefaultVersion, 1, workflow.DefaultVersion},
		{"refund-first", workflow.DefaultVersion, 7, workflow.DefaultVersion},
		{"refund-guarded", workflow.DefaultVersion, 1, 1},
		{"refund-guarded", 1, 7, 1},
	} {
		var got []workflow.Version
		v := replay.Verifier{Register: func(r worker.WorkflowRegistry) {
			r.RegisterWorkflowWithOptions(func(ctx workflow.Context, order string) error {
				got = append(got, operation.New(ctx).Version(ctx, "fraud-check", c.low, c.high))
				return example.RefundGuarded(ctx, order)
			}, workflow.RegisterOptions{Name: example.RefundWorkflow})
		}}
		v.Verify(t.Context(), recorded(t, c.history).Events)
		if len(got) == 0 || slices.ContainsFunc(got, func(v workflow.Version) bool { return v != c.want }) {
			t.Errorf("%s, %d to %d: %v, want %d", c.history, c.low, c.high, got, c.want)
		}
	}
}

// TestDocs checks that the Go code in the documentation is compiled and run here.
func TestDocs(t *testing.T) {
	var code strings.Builder
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		code.WriteString(flat(t, path) + "\n")
	}
	blocks := 0
	for _, path := range []string{"guides/workflows.md", "design/versioning.md"} {
		for _, part := range strings.Split(flat(t, "../../../../docs/"+path), "```go\n")[1:] {
			block, _, _ := strings.Cut(part, "\n```")
			if blocks++; !strings.Contains(code.String(), block) {
				t.Errorf("%s: no file here has\n%s", path, block)
			}
		}
	}
	if blocks < 8 {
		t.Errorf("%d blocks", blocks)
	}
}

// flat returns a file without indentation.
func flat(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		out = append(out, strings.TrimSpace(line))
	}
	return strings.Join(out, "\n")
}
