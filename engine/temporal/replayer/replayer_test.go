//go:build unix

package replayer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/worker"

	"acescope/engine/temporal/replay"
	"acescope/engine/temporal/replay/replaytest"
)

// TestMain lets the test binary act as a replayer, chosen by its second argument.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "replayer" {
		act(os.Args[2])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// act answers each history as the mode says. The workflow ID of a history is w-N, N from 0.
func act(mode string) {
	in := bufio.NewReader(os.Stdin)
	var held []string
	for n := 0; ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if mode == "at end" {
				slices.Reverse(held)
				fmt.Print(strings.Join(held, ""))
			}
			return
		}
		var q struct {
			W string          `json:"workflow_id"`
			R string          `json:"run_id"`
			H json.RawMessage `json:"history"`
		}
		if err := json.Unmarshal(line, &q); err != nil || len(q.H) == 0 {
			fmt.Fprintln(os.Stderr, "no request:", err)
			os.Exit(9)
		}
		answer := fmt.Sprintf(`{"workflow_id":%q,"run_id":%q,"verdict":"deterministic"}`+"\n", q.W, q.R)
		switch mode {
		case "same":
			fmt.Print(answer)
		case "at end":
			held = append(held, answer)
		case "differs":
			fmt.Printf(`{"workflow_id":%q,"run_id":%q,"verdict":"nondeterministic","event_id":5,`+
				`"command":"timer","message":"m"}`+"\n", q.W, q.R)
		case "cannot":
			fmt.Printf(`{"workflow_id":%q,"run_id":%q,"verdict":"error","message":"no such workflow"}`+"\n", q.W, q.R)
		case "dies":
			fmt.Fprintln(os.Stderr, "Traceback\n  at x\nModuleNotFoundError: shop\n  at y")
			os.Exit(3)
		case "dies second":
			if n == 1 {
				os.Exit(4)
			}
			fmt.Print(answer)
		case "silent":
		case "garbage":
			fmt.Println("hello from print")
		case "long":
			fmt.Print(strings.Repeat("x", 2*MaxLine))
		case "other":
			fmt.Print(strings.ReplaceAll(answer, q.R, "another"))
		case "twice":
			fmt.Print(answer, answer)
		case "verdict":
			fmt.Print(strings.ReplaceAll(answer, "deterministic", "fine"))
		}
	}
}

// historyOf returns a history of an SDK and a task queue, and with the workflow ID w-N.
func historyOf(n int, sdk, queue string) []*historypb.HistoryEvent {
	m := replaytest.Begin("Order")
	started := m.Events[0].GetWorkflowExecutionStartedEventAttributes()
	started.WorkflowId, started.OriginalExecutionRunId = fmt.Sprint("w-", n), fmt.Sprint("r-", n)
	started.TaskQueue.Name = queue
	t := m.Task()
	m.Events[t-1].GetWorkflowTaskCompletedEventAttributes().SdkMetadata = &sdkpb.WorkflowTaskCompletedMetadata{
		SdkName: sdk, SdkVersion: "1.35.0"}
	m.Done(m.Activity(t, "price"), nil)
	return m.Complete(m.Task(), "done")
}

func own() *replay.Verifier { return &replay.Verifier{Register: func(worker.WorkflowRegistry) {}} }

// replayerOf returns the test binary as a replayer.
func replayerOf(mode string) Replayer {
	return Replayer{SDK: "temporal-python", Argv: []string{os.Args[0], "replayer", mode}, Env: os.Environ()}
}

// verifyAll verifies histories, several at a time.
func verifyAll(t *testing.T, r Replayer, histories, parallel int) []replay.Verdict {
	t.Helper()
	v := New(t.Context(), own(), []Replayer{r})
	defer v.Close()
	out := make([]replay.Verdict, histories)
	var wg sync.WaitGroup
	turns := make(chan struct{}, parallel)
	for i := range out {
		turns <- struct{}{}
		wg.Go(func() {
			out[i] = v.Verify(t.Context(), historyOf(i, "temporal-python", "q"), nil)
			<-turns
		})
	}
	wg.Wait()
	return out
}

// TestAnswers checks the verdict for each kind of answer.
func TestAnswers(t *testing.T) {
	for mode, want := range map[string]struct {
		outcome replay.Outcome
		why     string
	}{
		"same":    {replay.Deterministic, ""},
		"differs": {replay.Nondeterministic, ""},
		"cannot":  {replay.Unverified, "no such workflow"},
		"dies":    {replay.Unverified, "the replayer ended with exit code 3 before it answered: ModuleNotFoundError: shop"},
		"garbage": {replay.Unverified, `the replayer wrote a line that is no answer: "hello from print"`},
		"long":    {replay.Unverified, "the replayer wrote a line of more than 1048576 bytes"},
		"other":   {replay.Unverified, `the replayer answered for "w-0", run "another", which it was not asked about`},
		"verdict": {replay.Unverified, `the replayer wrote the unknown verdict "fine"`},
	} {
		for i, v := range verifyAll(t, replayerOf(mode), 1, 1) {
			if v.Outcome != want.outcome || !strings.HasPrefix(v.Why, want.why) || (v.Why == "") != (want.why == "") ||
				v.WorkflowID != fmt.Sprint("w-", i) || v.RunID != fmt.Sprint("r-", i) || v.Events != 11 ||
				!strings.HasSuffix(v.Replayer, "replayer "+mode) {
				t.Errorf("%s: %+v", mode, v)
			}
			if d := v.Divergence; (d != nil) != (mode == "differs") || d != nil &&
				(d.EventID != 5 || d.Task != 4 || d.Actual.Kind != "timer" || d.Expected.Name != "price" ||
					!strings.Contains(d.Advice, "workflow.patched")) {
				t.Errorf("%s: %+v", mode, d)
			}
		}
	}
}

// TestOneProcess checks that a batch of many histories, some of them equal, has one process.
func TestOneProcess(t *testing.T) {
	v := New(t.Context(), own(), []Replayer{replayerOf("same")})
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			if got := v.Verify(t.Context(), historyOf(i%50, "temporal-python", "q"), nil); got.Outcome !=
				replay.Deterministic {
				t.Errorf("%+v", got)
			}
		})
	}
	wg.Wait()
	s := v.sessions[0]
	s.mu.Lock()
	first := s.current
	s.mu.Unlock()
	if first == nil {
		t.Fatal("the process ended")
	}
	v.Close()
	if e := first.process.Wait(); e.Code != 0 || e.Class != "exited" {
		t.Errorf("%+v", e)
	}
	if got := v.Verify(t.Context(), historyOf(0, "temporal-python", "q"), nil); got.Outcome != replay.Unverified ||
		got.Why != "the verification has ended" {
		t.Errorf("after the end: %+v", got)
	}
}

// TestRestart checks that a process that dies costs only the histories that it had, and that one that never
// answers is not started again.
func TestRestart(t *testing.T) {
	fine := 0
	for i, v := range verifyAll(t, replayerOf("dies second"), 6, 1) {
		if v.Outcome == replay.Deterministic {
			fine++
		} else if v.Why != "the replayer ended with exit code 4 before it answered" {
			t.Errorf("%d: %+v", i, v)
		}
	}
	if fine != 3 {
		t.Errorf("%d of 6", fine)
	}
	for _, v := range verifyAll(t, replayerOf("dies"), 6, 2) {
		if !strings.Contains(v.Why, "ModuleNotFoundError: shop") {
			t.Errorf("%+v", v)
		}
	}
}

// TestTwice checks that a second answer for one history is a mistake of the replayer.
func TestTwice(t *testing.T) {
	v := New(t.Context(), own(), []Replayer{replayerOf("twice")})
	defer v.Close()
	_ = v.Verify(t.Context(), historyOf(0, "temporal-python", "q"), nil)
	p := v.sessions[0]
	p.mu.Lock()
	current := p.current
	p.mu.Unlock()
	if current != nil {
		<-current.process.Done()
		v.sessions[0].mu.Lock()
		defer v.sessions[0].mu.Unlock()
		if !strings.Contains(current.fault, "answered before") {
			t.Errorf("%q", current.fault)
		}
	}
}

// TestSilent checks that a replayer that does not answer is stopped.
func TestSilent(t *testing.T) {
	r := replayerOf("silent")
	r.Timeout = 50 * time.Millisecond
	for _, v := range verifyAll(t, r, 3, 3) {
		if v.Outcome != replay.Unverified || v.Why != "the replayer gave no answer within 50ms" {
			t.Errorf("%+v", v)
		}
	}
}

// TestCanceled checks that a verification that is canceled waits for no answer.
func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	v := New(ctx, own(), []Replayer{replayerOf("silent")})
	got := make(chan replay.Verdict)
	go func() { got <- v.Verify(ctx, historyOf(0, "temporal-python", "q"), nil) }()
	for asked := false; !asked; {
		v.sessions[0].mu.Lock()
		asked = v.sessions[0].current != nil
		v.sessions[0].mu.Unlock()
	}
	cancel(errors.New("enough"))
	if v := <-got; v.Outcome != replay.Unverified || v.Why != "enough" {
		t.Errorf("%+v", v)
	}
	v.Close()
	if v.sessions[0].current != nil {
		t.Error("the process runs")
	}
}

// TestMissingProgram checks the reason for a command that does not exist.
func TestMissingProgram(t *testing.T) {
	r := Replayer{Argv: []string{"/nowhere/python"}}
	if v := verifyAll(t, r, 1, 1)[0]; v.Why != "the replayer did not start: /nowhere/python: program not found" {
		t.Errorf("%+v", v)
	}
}

// TestStored checks that a replayer gets the events as they were recorded.
func TestStored(t *testing.T) {
	v := New(t.Context(), own(), []Replayer{replayerOf("same")})
	defer v.Close()
	asked := 0
	got := v.Verify(t.Context(), historyOf(0, "temporal-python", "q"),
		func(context.Context) ([]*historypb.HistoryEvent, error) {
			asked++
			return historyOf(0, "temporal-python", "q"), nil
		})
	if asked != 1 || got.Outcome != replay.Deterministic {
		t.Errorf("%d, %+v", asked, got)
	}
	got = v.Verify(t.Context(), historyOf(0, "temporal-python", "q"),
		func(context.Context) ([]*historypb.HistoryEvent, error) { return nil, errors.New("gone") })
	if got.Outcome != replay.Unverified || got.Why != "gone" {
		t.Errorf("%+v", got)
	}
}

// TestMatch checks which replayer a history gets.
func TestMatch(t *testing.T) {
	o := replay.Origin{WorkflowType: "shop.Order", TaskQueue: "shop/eu", SDK: "temporal-python", Version: "1"}
	for name, c := range map[string]struct {
		r    Replayer
		want bool
	}{
		"any":         {Replayer{}, true},
		"sdk":         {Replayer{SDK: "temporal-python"}, true},
		"other sdk":   {Replayer{SDK: "temporal-java"}, false},
		"type":        {Replayer{WorkflowType: "shop.*"}, true},
		"dot":         {Replayer{WorkflowType: "shop?Order"}, false},
		"queue":       {Replayer{TaskQueue: "*/eu"}, true},
		"all three":   {Replayer{SDK: "temporal-*", TaskQueue: "shop*", WorkflowType: "*Order"}, true},
		"two of them": {Replayer{SDK: "temporal-python", TaskQueue: "bank"}, false},
		"not a part":  {Replayer{WorkflowType: "Order"}, false},
	} {
		if got := c.r.Matches(o); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	v := New(t.Context(), own(), []Replayer{{SDK: "temporal-java"}, {WorkflowType: "shop.*"}, {}})
	defer v.Close()
	if s := v.match(o); s != v.sessions[1] {
		t.Error("not the first that matches")
	}
}

// TestAdvice checks that a history without a replayer names its SDK and the lines to add.
func TestAdvice(t *testing.T) {
	v := New(t.Context(), own(), nil)
	defer v.Close()
	for sdk, line := range map[string]string{"temporal-python": `sdk = "temporal-python"`,
		"temporal-go": `task_queue = "shop"`} {
		events := historyOf(0, sdk, "shop")
		start, ok := v.Start(events[:4])
		for _, got := range []replay.Verdict{v.Verify(t.Context(), events, nil), start} {
			if !ok || got.Why != "decided by "+sdk+" 1.35.0, and no replayer matches it" ||
				!strings.Contains(got.Advice, "[[replayers]]\n"+line+"\ncommand = [") {
				t.Errorf("%+v", got)
			}
		}
		if start.Events != 0 {
			t.Errorf("%d events were read", start.Events)
		}
	}
	if got := v.Verify(t.Context(), historyOf(0, "", "shop"), nil); got.Why != `unknown workflow type "Order"` ||
		got.Advice != "" {
		t.Errorf("%+v", got)
	}
}

// FuzzAnswer checks that no output makes the parser fail or return an unknown verdict.
func FuzzAnswer(f *testing.F) {
	for _, line := range []string{`{"workflow_id":"w","run_id":"r","verdict":"deterministic"}`, "", "null", "[]",
		`{"workflow_id":"w","run_id":"r","verdict":"nondeterministic","event_id":-5,"message":null}`,
		`{"workflow_id":1}`, `{"workflow_id":"w","run_id":"r","verdict":"error","event_id":1e99}`,
		`{"workflow_id":"w","run_id":"r","verdict":"nondeterministic","message":"[TMPRL1100] Nondeterminism error: ` +
			`Activity machine does not handle this event: HistoryEvent(id: 99999999999999999999, X)"}`} {
		f.Add([]byte(line))
	}
	events := historyOf(0, "temporal-python", "q")
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := parseAnswer(line)
		if err != nil {
			return
		}
		if a.WorkflowID == "" || a.RunID == "" || !slices.Contains([]string{"deterministic", "nondeterministic",
			"error"}, a.Verdict) {
			t.Errorf("%+v", a)
		}
		d := replay.Reported(events, replay.Report{EventID: a.EventID, Does: a.Command, Message: a.Message})
		if d.EventID < 0 || d.EventID > int64(len(events)) || d.Sentence == "" {
			t.Errorf("%+v", d)
		}
	})
}
