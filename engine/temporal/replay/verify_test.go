package replay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/temporal/replay/replaytest"
)

func withOptions(ctx workflow.Context) workflow.Context {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: "c-1"})
}

func do(ctx workflow.Context, name string, args ...any) error {
	return workflow.ExecuteActivity(ctx, name, args...).Get(ctx, nil)
}

// original is the workflow that wrote the history: two sequential activities, two parallel
// ones, a timer, a child and a last activity.
func original(ctx workflow.Context) (string, error) {
	return variant{}.run(ctx)
}

// variant is the original workflow with changes.
type variant struct {
	swap, drop, extra, together, noTimer, noChild bool
	rename, child                                 string
	sleep                                         time.Duration
	input                                         any
	fail                                          bool
	result                                        string
	panics                                        bool
}

func (v variant) run(ctx workflow.Context) (string, error) {
	ctx = withOptions(ctx)
	first, second := "one", "two"
	if v.swap {
		first, second = second, first
	}
	if v.rename != "" {
		second = v.rename
	}
	if v.input == nil {
		v.input = 1
	}
	if err := do(ctx, first, v.input); err != nil {
		return "", err
	}
	if v.extra {
		if err := do(ctx, "extra"); err != nil {
			return "", err
		}
	}
	if !v.drop {
		if err := do(ctx, second); err != nil {
			return "", err
		}
	}
	if v.panics {
		panic("no")
	}
	a, b := "left", "right"
	if v.together {
		a, b = b, a
	}
	fa, fb := workflow.ExecuteActivity(ctx, a), workflow.ExecuteActivity(ctx, b)
	if err := fa.Get(ctx, nil); err != nil {
		return "", err
	}
	if err := fb.Get(ctx, nil); err != nil {
		return "", err
	}
	if v.sleep == 0 {
		v.sleep = time.Hour
	}
	if v.noTimer {
		v.sleep = 0
	}
	if err := workflow.Sleep(ctx, v.sleep); err != nil {
		return "", err
	}
	child := "Child"
	if v.child != "" {
		child = v.child
	}
	if !v.noChild {
		if err := workflow.ExecuteChildWorkflow(ctx, child).Get(ctx, nil); err != nil {
			return "", err
		}
	}
	if err := do(ctx, "last"); err != nil {
		return "", err
	}
	if v.fail {
		return "", fmt.Errorf("it went wrong")
	}
	if v.result != "" {
		return v.result, nil
	}
	return "done", nil
}

func originalHistory() []*historypb.HistoryEvent {
	m := replaytest.Begin("W")
	m.Done(m.Activity(m.Task(), "one", 1), nil) // 5
	m.Done(m.Activity(m.Task(), "two"), nil)    // 11
	t := m.Task()
	l, r := m.Activity(t, "left"), m.Activity(t, "right") // 17, 18
	m.Done(l, nil)
	m.Done(r, nil)
	m.Fired(m.Timer(m.Task(), time.Hour))                          // 26
	m.ChildDone(m.Child(m.Task(), "Child", "c-1"), "Child", "c-1") // 31
	m.Done(m.Activity(m.Task(), "last"), nil)                      // 37
	return m.Complete(m.Task(), "done")                            // 43
}

func verifier(code func(workflow.Context) (string, error), strict bool) *Verifier {
	return &Verifier{Build: "new-build", Strict: strict, Register: func(r worker.WorkflowRegistry) {
		r.RegisterWorkflowWithOptions(code, workflow.RegisterOptions{Name: "W"})
	}}
}

// Every kind of change is reported at its first differing event, with both commands.
func TestDivergences(t *testing.T) {
	for name, c := range map[string]struct {
		code             variant
		kind             Kind
		event            int64
		expected, actual string
	}{
		"order swapped":         {variant{swap: true}, KindOther, 5, "activity one", "activity two"},
		"parallel ones swapped": {variant{together: true}, KindOther, 17, "activity left", "activity right"},
		"activity renamed":      {variant{rename: "zwei"}, KindOther, 11, "activity two", "activity zwei"},
		"activity removed":      {variant{drop: true}, KindOther, 11, "activity two", "activity left"},
		"activity added":        {variant{extra: true}, KindOther, 11, "activity two", "activity extra"},
		"timer removed":         {variant{noTimer: true}, KindOther, 26, "timer", "child workflow Child"},
		"child removed": {variant{noChild: true}, KindOther, 31, "child workflow Child",
			"activity last"},
		"different child": {variant{child: "Other"}, KindOther, 31, "child workflow Child",
			"child workflow Other"},
		"fails instead": {variant{fail: true}, KindResult, 43, "completion", "failure"},
		"panics":        {variant{panics: true}, KindPanic, 17, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := verifier(c.code.run, false).Verify(t.Context(), originalHistory())
			d := v.Divergence
			if v.Outcome != Nondeterministic || d == nil {
				t.Fatalf("%+v", v)
			}
			t.Log(d.Sentence)
			if d.Kind != c.kind || c.event != 0 && d.EventID != c.event {
				t.Errorf("%s at %d, want %s at %d: %s (%s)", d.Kind, d.EventID, c.kind, c.event, d.Sentence,
					d.SDK)
			}
			if c.expected != "" && !strings.HasPrefix(d.Expected.String(), c.expected) || c.actual != "" &&
				!strings.HasPrefix(d.Actual.String(), c.actual) {
				t.Errorf("expected %q, actual %q", d.Expected, d.Actual)
			}
			if d.Recorded != "old-build" || d.Code != "new-build" || d.Sentence == "" || d.Advice == "" {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestSame(t *testing.T) {
	for _, strict := range []bool{false, true} {
		if v := verifier(original, strict).Verify(t.Context(),
			originalHistory()); v.Outcome != Deterministic || v.WorkflowID != "w-1" || v.RunID != "r-1" {
			t.Errorf("%+v %+v", v, v.Divergence)
		}
	}
	// An open run is verified up to its last event.
	for n := 4; n < 43; n++ {
		events := originalHistory()[:n]
		if v := verifier(original, true).Verify(t.Context(), events); v.Outcome != Deterministic {
			t.Errorf("the first %d events: %+v %+v", n, v, v.Divergence)
		}
	}
}

// Strict reports differences that Temporal accepts.
func TestDrift(t *testing.T) {
	for name, c := range map[string]struct {
		code  variant
		event int64
		what  string
	}{
		"timer changed": {variant{sleep: time.Minute}, 26, "length (1m0s)"},
		"input changed": {variant{input: 2}, 5, "another input"},
		"other result":  {variant{result: "x"}, 43, "another result"},
	} {
		if v := verifier(c.code.run, false).Verify(t.Context(),
			originalHistory()); v.Outcome != Deterministic {
			t.Errorf("%s: %+v", name, v)
		}
		v := verifier(c.code.run, true).Verify(t.Context(), originalHistory())
		if v.Outcome != Drifted || v.Divergence.Kind != KindChanged || v.Divergence.EventID != c.event ||
			!strings.Contains(v.Divergence.Sentence, c.what) {
			t.Errorf("%s: %+v %+v", name, v, v.Divergence)
		}
	}
}

// versioned returns a workflow that runs "new" with the change and "old" without.
func versioned(low, high workflow.Version) func(workflow.Context) (string, error) {
	return func(ctx workflow.Context) (string, error) {
		name := "old"
		if workflow.GetVersion(ctx, "rename", low, high) >= 1 {
			name = "new"
		}
		return "done", do(withOptions(ctx), name)
	}
}

func versionHistory(marker int, name string) []*historypb.HistoryEvent {
	m := replaytest.Begin("W")
	t := m.Task()
	if marker >= 0 {
		m.Version(t, "rename", marker)
	}
	m.Done(m.Activity(t, name), nil)
	return m.Complete(m.Task(), "done")
}

// A versioned change replays with and without its marker. An unsupported version and a
// change without its marker are reported.
func TestVersions(t *testing.T) {
	for name, c := range map[string]struct {
		code    func(workflow.Context) (string, error)
		history []*historypb.HistoryEvent
		kind    Kind
		said    string
	}{
		"new code, old history": {versioned(workflow.DefaultVersion, 1), versionHistory(-1, "old"), "", ""},
		"new code, new history": {versioned(workflow.DefaultVersion, 1), versionHistory(1, "new"), "", ""},
		"old branch removed": {versioned(1, 1), versionHistory(-1, "old"), KindVersion,
			`the change "rename"`},
		"version too new": {versioned(workflow.DefaultVersion, 1), versionHistory(2, "new"),
			KindVersion, `version 2 of the change "rename", the code supports -1 to 1`},
		"marker missing": {versioned(workflow.DefaultVersion, 1), versionHistory(-1, "new"),
			KindOther, "has activity new"},
		"version call taken out": {func(ctx workflow.Context) (string,
			error) {
			return "done", do(withOptions(ctx), "new")
		}, versionHistory(1, "new"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := verifier(c.code, true).Verify(t.Context(), c.history)
			if c.kind == "" {
				if v.Outcome != Deterministic {
					t.Errorf("%+v %+v", v, v.Divergence)
				}
				return
			}
			if v.Divergence == nil || v.Divergence.Kind != c.kind || !strings.Contains(v.Divergence.Sentence,
				c.said) {
				t.Errorf("%+v %+v", v, v.Divergence)
			}
		})
	}
}

func TestUnverified(t *testing.T) {
	full := originalHistory()
	other := replaytest.Begin("Elsewhere")
	other.Done(other.Activity(other.Task(), "one"), nil)
	unknown := originalHistory()
	unknown[7].EventType = 0
	empty := originalHistory()
	empty[6].Attributes = nil
	for why, events := range map[string][]*historypb.HistoryEvent{
		"has no events":             nil,
		"its first part is missing": full[3:],
		"has a gap": append(append([]*historypb.HistoryEvent{},
			full[:8]...), full[9:]...),
		"no workflow task has started": full[:2],
		"out of order or has duplicate events": append(append([]*historypb.HistoryEvent{},
			full[:8]...), full[7:]...),
		"event 7 (ActivityTaskCompleted) has no attributes": empty,
		`unknown workflow type "Elsewhere"`:                 other.Events,
		"event 8 has an unknown type":                       unknown,
	} {
		if v := verifier(original, false).Verify(t.Context(), events); v.Outcome != Unverified ||
			!strings.Contains(v.Why, why) {
			t.Errorf("%s: %+v", why, v)
		}
	}
}

// A history of another SDK is unverified, whatever it contains: the code here did not decide it.
func TestOtherSDK(t *testing.T) {
	for name, c := range map[string]struct {
		sdk, version string
		outcome      Outcome
		why          string
	}{
		"TypeScript": {"temporal-typescript", "1.11.2", Unverified,
			"decided by temporal-typescript 1.11.2"},
		"without version": {"temporal-python", "", Unverified, "decided by temporal-python"},
		"Go":              {"temporal-go", "1.37.0", Nondeterministic, ""},
		"old":             {"", "", Nondeterministic, ""},
	} {
		events := originalHistory()
		last := events[41].GetWorkflowTaskCompletedEventAttributes()
		last.SdkMetadata = &sdkpb.WorkflowTaskCompletedMetadata{SdkName: c.sdk, SdkVersion: c.version}
		if v := verifier(variant{drop: true}.run, false).Verify(t.Context(),
			events); v.Outcome != c.outcome || v.Why != c.why {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// A history that this code cannot read, or that workers of another task queue decided, is not called
// nondeterministic. If it replays, it is deterministic.
func TestOtherWorkers(t *testing.T) {
	stored := originalHistory()
	stored[0].GetWorkflowExecutionStartedEventAttributes().Input = storedPayloads()
	for name, c := range map[string]struct {
		events  []*historypb.HistoryEvent
		queue   string
		code    func(workflow.Context) (string, error)
		outcome Outcome
		why     string
	}{
		"stored": {stored, "", variant{drop: true}.run, Unverified,
			`a payload of event 1 is stored outside the history by the storage driver "s3"`},
		"other queue": {originalHistory(), "ace", variant{drop: true}.run, Unverified,
			`decided by workers of task queue "q", whose code may be another program's`},
		"own queue":    {originalHistory(), "q", variant{drop: true}.run, Nondeterministic, ""},
		"same program": {originalHistory(), "ace", original, Deterministic, ""},
	} {
		checked := verifier(c.code, false)
		checked.Queue = c.queue
		if v := checked.Verify(t.Context(), c.events); v.Outcome != c.outcome || v.Why != c.why {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// Tasks and commands are found in a history that a server recorded.
func TestTasksOfRecorded(t *testing.T) {
	n := 0
	for _, task := range tasksOf(replaytest.Recorded(t, "right")) {
		for _, c := range task.history {
			if c.Kind == kindActivity {
				n++
			}
		}
	}
	if n != 5 {
		t.Errorf("%d activities", n)
	}
}

// storedPayloads returns a payload that the external storage of an SDK replaced by a reference.
func storedPayloads() *commonpb.Payloads {
	p := replaytest.Encoded(map[string]any{"driverName": "s3"})
	p.Payloads[0].Metadata = map[string][]byte{
		converter.MetadataEncoding:    []byte(converter.MetadataEncodingProtoJSON),
		converter.MetadataMessageType: []byte("temporal.api.sdk.v1.ExternalStorageReference"),
	}
	return p
}
