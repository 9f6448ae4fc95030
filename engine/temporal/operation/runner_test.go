package operation

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/internal/plainjson"
	"acescope/engine/temporal/history"
)

var quiet = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))

func environment() *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet)
	return suite.NewTestWorkflowEnvironment()
}

// run runs workflow code with mocked results.
func run(t *testing.T, m *Mock, code func(workflow.Context) error) error {
	t.Helper()
	env := environment()
	m.Register(env)
	env.ExecuteWorkflow(code)
	if !env.IsWorkflowCompleted() {
		t.Fatal("the workflow did not end")
	}
	return env.GetWorkflowError()
}

func act(step string) Operation { return Operation{Type: Action, Step: step} }

func idsOf(m *Mock) map[string]bool {
	ids := map[string]bool{}
	for _, c := range m.Calls() {
		ids[c.OperationID] = true
	}
	return ids
}

// TestS2_11 checks that IDs depend on the place in the logic: loops count, and parallel
// branches, other operations, timers and retries change nothing.
func TestS2_11(t *testing.T) {
	logic := func(disturbed bool) func(workflow.Context) error {
		return func(ctx workflow.Context) error {
			r := New(ctx)
			if disturbed {
				if err := r.Do(ctx, act("early"), nil); err != nil {
					return err
				}
				if err := workflow.Sleep(ctx, time.Hour); err != nil {
					return err
				}
			}
			for range 2 {
				if err := r.Do(ctx, act("loop"), nil); err != nil {
					return err
				}
			}
			left, right := r.Branch("left"), r.Branch("right")
			a, b := left.Execute(ctx, act("work")), right.Execute(ctx, act("work"))
			if disturbed {
				if err := right.Do(ctx, act("more"), nil); err != nil {
					return err
				}
			}
			c := left.Branch("in ner").Execute(ctx, act("work"))
			return errors.Join(a.Get(ctx, nil), b.Get(ctx, nil), c.Get(ctx, nil),
				left.Do(ctx, act("work"), nil))
		}
	}
	want := []string{"op.loop.-.1", "op.loop.-.2", "op.work.left.1", "op.work.left.2", "op.work.right.1",
		"op.work.left/in%20ner.1"}
	for _, disturbed := range []bool{false, true} {
		m := &Mock{}
		failed := atomic.Bool{}
		m.Step("early", 1).Step("more", 1).Step("work", 1).Step("loop", func(Request) (any, error) {
			if disturbed && failed.CompareAndSwap(false, true) {
				return nil, errors.New("the first attempt fails")
			}
			return 1, nil
		})
		if err := run(t, m, logic(disturbed)); err != nil {
			t.Fatal(err)
		}
		got := idsOf(m)
		for _, id := range want {
			if !got[id] {
				t.Errorf("disturbed %t: no %s in %v", disturbed, id, got)
			}
		}
	}
}

func TestIDs(t *testing.T) {
	long := strings.Repeat("ä/", 2000)
	seen := map[string]bool{}
	for _, step := range []string{"a", "a.b", "a%2Eb", "-", "%2D", "", "~", long, long + "x", "\x00\n",
		"日本"} {
		for _, branch := range []string{"", "-", "a", "a/b", "a.b", long, long + "x"} {
			path := branch
			if branch != "" {
				path = escape(branch)
			}
			for _, n := range []int{1, 1 << 62} {
				id := idOf(prefixOperation, step, path, n)
				if len(id) > MaxID || seen[id] || strings.Count(id, ".") != 3 ||
					strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEF0123456789%~-._/") != "" {
					t.Errorf("step %.20q, branch %.20q: %q (%d)", step, branch, id, len(id))
				}
				seen[id] = true
				gotStep, gotBranch, gotN, ok := history.ParseOperationID(id)
				if ok != (step != "") || ok && len(step) < 100 && gotStep != step || ok &&
					len(branch) < 100 && gotBranch != branch || ok && gotN != n {
					t.Errorf("%q is read as %q, %q, %d, %t", id, gotStep, gotBranch, gotN, ok)
				}
			}
		}
	}
	for id, want := range map[string]string{"op.draft.-.1": "draft", "op.draft.-.2": "draft 2",
		"op.a%20b.left/x.3": "a b [left/x] 3", "5": "", "op.x.-.0": "", "op..-.1": "", "op.%zz.-.1": ""} {
		if got, ok := history.OperationLabel(id); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %t", id, got, ok)
		}
	}
}

// TestS2_12 checks results decoded from JSON and nil errors.
func TestS2_12(t *testing.T) {
	if FailureOf(nil) != nil || AgentFailure(nil) != nil || FailureOf(nil).Agent() {
		t.Error("nil is a failure")
	}
	type shape struct {
		At   time.Time
		List []int
		Ref  *int
	}
	at := time.Date(2026, 5, 4, 12, 0, 0, 123456789, time.UTC)
	m := (&Mock{}).Step("nothing", nil).Step("number", 1<<53+1).Step("shape",
		shape{At: at, List: []int{1}}).Step("text", "x")
	err := run(t, m, func(ctx workflow.Context) error {
		r := New(ctx)
		var n int64
		var s shape
		var p *shape
		if err := errors.Join(r.Do(ctx, act("nothing"), &n), r.Do(ctx, act("nothing"), &p),
			r.Do(ctx, act("nothing"), nil)); err != nil || n != 0 || p != nil {
			t.Errorf("%d, %v, %v", n, p, err)
		}
		if err := r.Do(ctx, act("number"), &n); err != nil || n != 1<<53+1 {
			t.Errorf("%d, %v", n, err)
		}
		if err := r.Do(ctx, act("shape"), &s); err != nil || !s.At.Equal(at) || len(s.List) != 1 ||
			s.Ref != nil {
			t.Errorf("%+v, %v", s, err)
		}
		err := r.Do(ctx, act("text"), &n)
		if f := FailureOf(err); f == nil || f.Type != TypeBadResult || !f.Permanent {
			t.Errorf("%v", err)
		}
		for _, bad := range []any{errors.New("x"), map[string]any{"e": errors.New("x")},
			[]any{[]any{errors.New("x")}}, make(chan int)} {
			err := r.Do(ctx, Operation{Type: Action, Step: "text", Parameters: bad}, nil)
			if f := FailureOf(err); f == nil || f.Type != TypeBadOperation || !f.Permanent {
				t.Errorf("%T: %v", bad, err)
			}
		}
		return nil
	})
	if err != nil || len(m.Calls()) != 6 {
		t.Errorf("%v, %d calls", err, len(m.Calls()))
	}
}

func TestBadOperations(t *testing.T) {
	m := &Mock{}
	err := run(t, m, func(ctx workflow.Context) error {
		r := New(ctx)
		for _, op := range []Operation{{Type: "magic", Step: "x"}, {Type: Action},
			{Type: AgentResponse, Step: "x", Parameters: strings.Repeat("x", MaxInline)}} {
			if f := FailureOf(r.Do(ctx, op, nil)); f == nil || f.Type != TypeBadOperation {
				t.Errorf("%+v", f)
			}
		}
		if f := FailureOf(r.Do(ctx, act("unknown"), nil)); f == nil || f.Type != TypeUnmocked ||
			f.OperationID != "op.unknown.-.1" {
			t.Errorf("%+v", f)
		}
		return nil
	})
	if err != nil || len(m.Calls()) != 1 {
		t.Errorf("%v, %d calls", err, len(m.Calls()))
	}
}

// TestS2_16_Canonical checks that parameters are canonical JSON, not %v.
func TestS2_16_Canonical(t *testing.T) {
	for want, v := range map[string]any{
		`{"a":"<&>","b":[1,2.50,1e400],"ü":null}`: json.RawMessage(
			` {"ü":null, "b":[1, 2.50,1e400],"a":"\u003c&>"} `),
		`null`:                   nil,
		`"2026-05-04T12:00:00Z"`: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC),
	} {
		if got, err := encode(v); err != nil || string(got) != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	for _, bad := range []string{``, `{`, `1 2`, `{"a":1}}`} {
		if got, err := plainjson.Canonical([]byte(bad)); err == nil {
			t.Errorf("%q: %s", bad, got)
		}
	}
	a, _ := cacheKey(Action, "s", json.RawMessage(`{"a":1,"b":2}`), "v1")
	b, _ := cacheKey(Action, "s", json.RawMessage(`{"b":2, "a":1}`), "v1")
	keys := map[string]bool{a: true}
	for _, k := range []struct {
		t       Type
		step    string
		p       string
		version string
	}{{AgentResponse, "s", `{"a":1,"b":2}`, "v1"}, {Action, "t", `{"a":1,"b":2}`, "v1"},
		{Action, "s", `{"a":1,"b":3}`, "v1"}, {Action, "s", `{"a":1,"b":2}`, "v2"}} {
		key, err := cacheKey(k.t, k.step, json.RawMessage(k.p), k.version)
		if err != nil || keys[key] {
			t.Errorf("%+v: %s, %v", k, key, err)
		}
		keys[key] = true
	}
	if a != b || len(a) != 64 {
		t.Errorf("%s, %s", a, b)
	}
}

func TestVariables(t *testing.T) {
	m := (&Mock{}).Step("ask", map[string]int{"n": 3})
	err := run(t, m, func(ctx workflow.Context) error {
		r := New(ctx, Annotated())
		var n int
		if ok, err := r.Get("count", &n); ok || err != nil {
			t.Errorf("%t, %v", ok, err)
		}
		if err := errors.Join(r.Set("count", 7), r.Set("big", strings.Repeat("x", 2000)),
			r.Branch("b").Set("z", nil)); err != nil {
			t.Error(err)
		}
		op := act("ask")
		op.Variable = "asked"
		var got struct{ N int }
		if err := r.Do(ctx, op, nil); err != nil {
			t.Error(err)
		}
		if ok, err := r.Get("asked", &got); !ok || err != nil || got.N != 3 {
			t.Errorf("%+v, %t, %v", got, ok, err)
		}
		if ok, err := r.Get("big", &n); !ok || err == nil {
			t.Errorf("%t, %v", ok, err)
		}
		if !slices.Equal(sortedNames(r.s.variables), []string{"asked", "big", "count", "z"}) {
			t.Errorf("%q", sortedNames(r.s.variables))
		}
		for _, bad := range []error{r.Set("", 1), r.Set("e", errors.New("x")),
			r.Set("l", strings.Repeat("x", MaxInline))} {
			if bad == nil {
				t.Error("it was set")
			}
		}
		next := New(ctx, Continue(r.Carry()))
		if ok, err := next.Get("count", &n); !ok || err != nil || n != 7 || next.Carry().Generation != 2 {
			t.Errorf("%d, %t, %v, %+v", n, ok, err, next.Carry())
		}
		for i := range MaxVariables + 10 {
			_ = r.Set(fmt.Sprint(i), i)
		}
		if len(sortedNames(r.s.variables)) != MaxVariables {
			t.Errorf("%d variables", len(sortedNames(r.s.variables)))
		}
		return r.Do(ctx, act("ask"), nil)
	})
	calls := m.Calls()
	if err != nil || len(calls) != 2 {
		t.Fatalf("%v, %d calls", err, len(calls))
	}
	notes := calls[0].Notes
	if len(notes) != 3 || notes[0].Key != "count" || string(notes[0].Value) != "7" || notes[1].Value != nil ||
		notes[1].Size != 2002 || notes[1].Digest == "" {
		t.Errorf("%+v", notes)
	}
	if last := calls[1]; len(last.Notes) != MaxNotes || last.Dropped != MaxVariables-4-MaxNotes {
		t.Errorf("%d notes, %d dropped", len(last.Notes), last.Dropped)
	}
}

// TestRandom checks that values are typed, drawn once, and the same for the same seed.
func TestRandom(t *testing.T) {
	drawn := func(seed uint64) (list []int, uuid string) {
		err := run(t, &Mock{}, func(ctx workflow.Context) error {
			r := New(ctx, WithSeed(seed))
			list = Random(ctx, r, "order", func(r *rand.Rand) []int { return r.Perm(50) })
			uuid = Random(ctx, r, "id", UUID)
			if again := Random(ctx, r, "id", UUID); again == uuid {
				t.Error("the second value is the first")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return list, uuid
	}
	a, id := drawn(1)
	b, same := drawn(1)
	c, other := drawn(2)
	if !slices.Equal(a, b) || id != same || slices.Equal(a, c) || id == other || len(id) != 36 ||
		id[14] != '4' {
		t.Errorf("%v %v %v; %s %s %s", a, b, c, id, same, other)
	}
	err := run(t, &Mock{}, func(ctx workflow.Context) error {
		Random(ctx, New(ctx), "x", func(*rand.Rand) func() { return nil })
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "cannot be recorded") {
		t.Errorf("%v", err)
	}
}

// TestS2_15_Range checks that invalid ranges are rejected.
func TestS2_15_Range(t *testing.T) {
	for _, c := range []struct {
		change    string
		low, high workflow.Version
	}{{"", 1, 2}, {"x", 2, 1}, {"x", -2, 1}} {
		err := run(t, &Mock{}, func(ctx workflow.Context) error {
			New(ctx).Version(ctx, c.change, c.low, c.high)
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "invalid range") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	m := (&Mock{}).Step("x", 1)
	err := run(t, m, func(ctx workflow.Context) error {
		r := New(ctx)
		for range 2 {
			if v := r.Version(ctx, "new", workflow.DefaultVersion, 3); v != 3 {
				t.Errorf("version %d", v)
			}
		}
		return r.Do(ctx, act("x"), nil)
	})
	if notes := m.Calls()[0].Notes; err != nil || len(notes) != 1 || *notes[0].Version != 3 ||
		*notes[0].Min != -1 || *notes[0].Max != 3 {
		t.Errorf("%v, %+v", err, notes)
	}
}

func TestRunKey(t *testing.T) {
	for want, c := range map[string]struct {
		info       workflow.Info
		generation int
	}{
		"first": {workflow.Info{FirstRunID: "first", OriginalRunID: "first", Attempt: 1}, 0},
		"first+2": {workflow.Info{FirstRunID: "first", OriginalRunID: "third",
			ContinuedExecutionRunID: "second", Attempt: 1}, 2},
		// handed nothing
		"third": {workflow.Info{FirstRunID: "first", OriginalRunID: "third",
			ContinuedExecutionRunID: "second", Attempt: 1}, 0},
		"retried": {workflow.Info{FirstRunID: "retried", OriginalRunID: "x",
			ContinuedExecutionRunID: "retried", Attempt: 2}, 0},
	} {
		if got := runKey(&c.info, c.generation); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	env := environment()
	m := (&Mock{}).Step("ask", 1).Step("do", 1)
	m.Register(env)
	var mu sync.Mutex
	infos := map[string]activity.Info{}
	env.SetOnActivityStartedListener(func(info *activity.Info, _ ctxType, _ encoded) {
		mu.Lock()
		defer mu.Unlock()
		infos[info.ActivityID] = *info
	})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		r := New(ctx, WithOptions(Action, Options{Timeout: 7 * time.Second, Cache: Yes}))
		return errors.Join(
			r.Do(ctx, Operation{Type: AgentResponse, Step: "ask"}, nil),
			r.Do(ctx, act("do"), nil),
			r.Do(ctx, Operation{Type: Action, Step: "do",
				Options: Options{Timeout: time.Second, Heartbeat: -1, Cache: No, TaskQueue: "elsewhere"}},
				nil))
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if i := infos["op.ask.-.1"]; i.StartToCloseTimeout != 10*time.Minute ||
		i.HeartbeatTimeout != 10*time.Second || i.ActivityType.Name != "operation.agent_response" {
		t.Errorf("%+v", i)
	}
	if i := infos["op.do.-.1"]; i.StartToCloseTimeout != 7*time.Second ||
		i.HeartbeatTimeout != 10*time.Second {
		t.Errorf("%+v", i)
	}
	if i := infos["op.do.-.2"]; i.StartToCloseTimeout != time.Second || i.HeartbeatTimeout != 0 ||
		i.TaskQueue != "elsewhere" {
		t.Errorf("%+v", i)
	}
	if c := m.Calls(); c[0].Cache || !c[1].Cache || c[2].Cache {
		t.Errorf("%+v", c)
	}
	for _, ty := range types() {
		o := Defaults(ty).with(Options{Retry: temporal.RetryPolicy{MaximumAttempts: 2,
			InitialInterval: time.Minute, NonRetryableErrorTypes: []string{"X"}}})
		a := o.activity("id")
		if a.RetryPolicy.MaximumAttempts != 2 ||
			a.RetryPolicy.MaximumInterval < a.RetryPolicy.InitialInterval ||
			a.RetryPolicy.BackoffCoefficient != 2 || a.RetryPolicy.NonRetryableErrorTypes[0] != "X" ||
			!a.WaitForCancellation {
			t.Errorf("%s: %+v", ty, a.RetryPolicy)
		}
	}
}

// TestRetries checks that agent failures are not retried and other failures are.
func TestRetries(t *testing.T) {
	m := (&Mock{}).Step("agent", AgentFailure(errors.New("I will not"))).Step("flaky",
		func(r Request) (any, error) { return nil, errors.New("away") })
	err := run(t, m, func(ctx workflow.Context) error {
		r := New(ctx)
		f := FailureOf(r.Do(ctx, act("agent"), nil))
		if !f.Agent() || !f.Permanent || f.Message != "I will not" || f.OperationID != "op.agent.-.1" {
			t.Errorf("%+v", f)
		}
		f = FailureOf(r.Do(ctx, Operation{Type: Action, Step: "flaky",
			Options: Options{Retry: temporal.RetryPolicy{MaximumAttempts: 3}}}, nil))
		if f.Agent() || f.Permanent || f.Type != TypeInfrastructure || f.Kind != ace.Failed {
			t.Errorf("%+v", f)
		}
		return nil
	})
	if err != nil || len(m.Calls()) != 4 {
		t.Errorf("%v, %d calls", err, len(m.Calls()))
	}
}

func TestBatch(t *testing.T) {
	var now, most atomic.Int32
	m := (&Mock{}).Step("work", func(r Request) (any, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for {
			if seen := most.Load(); n <= seen || most.CompareAndSwap(seen, n) {
				break
			}
		}
		if r.Occurrence == 3 {
			return nil, AgentFailure(errors.New("not three"))
		}
		return r.Occurrence, nil
	})
	ops := slices.Repeat([]Operation{act("work")}, 20)
	err := run(t, m, func(ctx workflow.Context) error {
		r := New(ctx)
		out, err := r.Branch("all").Batch(ctx, ops, BatchOptions{Window: 3, OnFailed: CollectAll})
		if err != nil || len(out) != 20 {
			t.Errorf("%d, %v", len(out), err)
		}
		for i, o := range out {
			var n int
			if o.OperationID != fmt.Sprintf("op.work.all.%d", i+1) {
				t.Errorf("%d: %s", i, o.OperationID)
			}
			if i == 2 {
				if !FailureOf(o.Err).Agent() {
					t.Errorf("%v", o.Err)
				}
			} else if o.Err != nil || o.Decode(&n) != nil || n != i+1 {
				t.Errorf("%d: %d, %v", i, n, o.Err)
			}
		}
		out, err = r.Branch("fast").Batch(ctx, ops, BatchOptions{Window: 1})
		if !FailureOf(err).Agent() || out[1].Err != nil || !errors.Is(out[2].Err, err) {
			t.Errorf("%v, %+v", err, out[:3])
		}
		for _, o := range out[3:] {
			if FailureOf(o.Err).Type != TypeNotRun || o.OperationID == "" {
				t.Errorf("%+v", o)
			}
		}
		if _, err := r.Batch(ctx, make([]Operation, MaxBatch+1),
			BatchOptions{}); FailureOf(err).Type != TypeBadOperation {
			t.Errorf("%v", err)
		}
		out, err = r.Batch(ctx, nil, BatchOptions{})
		if len(out) != 0 || err != nil {
			t.Errorf("%v, %v", out, err)
		}
		return nil
	})
	if err != nil || most.Load() > 3 || len(m.Calls()) != 23 {
		t.Errorf("%v, at most %d at a time, %d calls", err, most.Load(), len(m.Calls()))
	}
}

// TestBatchCanceled checks that a failure cancels running operations and that a canceled run
// starts none.
func TestBatchCanceled(t *testing.T) {
	env := environment()
	h := &Handlers{}
	waits := func(ctx ctxType, _ json.RawMessage) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err := errors.Join(h.Handle(Action, "wait", "", waits),
		h.Handle(Action, "fail", "", func(ctxType, json.RawMessage) (any, error) {
			return nil, AgentFailure(errors.New("no"))
		})); err != nil {
		t.Fatal(err)
	}
	h.Register(env)
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		options := Options{Heartbeat: 40 * time.Millisecond}
		out, err := New(ctx).Batch(ctx, []Operation{{Type: Action, Step: "wait", Options: options},
			act("fail"), act("wait")}, BatchOptions{Window: 2})
		if !FailureOf(err).Agent() || !temporal.IsCanceledError(out[0].Err) ||
			FailureOf(out[2].Err).Type != TypeNotRun {
			t.Errorf("%v, %+v", err, out)
		}
		ctx, cancel := workflow.WithCancel(ctx)
		cancel()
		out, err = New(ctx).Batch(ctx, []Operation{act("wait")}, BatchOptions{})
		if !temporal.IsCanceledError(err) || FailureOf(out[0].Err).Type != TypeNotRun {
			t.Errorf("%v, %+v", err, out)
		}
		return nil
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}
