package sources_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/tasks/runner"
	"acescope/engine/temporal/historyfile"
	"acescope/engine/temporal/replay"
	"acescope/engine/temporal/replay/replaytest"
	"acescope/engine/temporal/replayer"
	"acescope/sources"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/historytest"
	"acescope/sources/offline"
	runspkg "acescope/sources/runs"
)

// untilVerified waits for a value that satisfies want.
func untilVerified(t *testing.T, s *sources.Feeds, want func(*histories.Verified) bool) *histories.Verified {
	t.Helper()
	for {
		if v := s.Verified.Value(); v != nil && want(v) {
			return v
		}
		select {
		case <-s.Link.Changed():
		case <-t.Context().Done():
			t.Fatal("it never came")
		}
	}
}

func ended(v *histories.Verified) bool { return !v.Ended.IsZero() }

// closedRuns returns a client of a server with a number of closed runs.
func closedRuns(t *testing.T, runs int) client.Client {
	t.Helper()
	files := make([]offline.Source, runs)
	for i := range files {
		id := fmt.Sprintf("run-%d", i)
		var text bytes.Buffer
		if err := historyfile.Write(&text, historytest.Task(true).Of(ace.WorkflowID(id), id, "",
			id).Events); err != nil {
			t.Fatal(err)
		}
		open := func() (io.ReadCloser, error) { return io.NopCloser(&text), nil }
		files[i] = offline.Source{Name: id, Open: open}
	}
	return clientOf(t, files)
}

// clientOf returns a client of a server with the runs of files.
func clientOf(t *testing.T, files []offline.Source) client.Client {
	t.Helper()
	set := offline.New()
	if err := set.Load(t.Context(), files, nil); err != nil {
		t.Fatal(err)
	}
	c, err := set.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// running returns feeds on a server with a number of runs, until the test ends.
func running(t *testing.T, runs int, verify func(context.Context, []*historypb.HistoryEvent,
	bool) replay.Verdict) *sources.Feeds {
	t.Helper()
	s := sources.NewFeeds()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx, cluster.Deps{Client: closedRuns(t, runs),
			NewVerifier: refusing("", verify)})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return s
}

// Every run of a query is verified in the background; runs that do not match come first.
func TestVerifyRuns(t *testing.T) {
	const runs = 700
	turn := make(chan int, runs)
	for i := range runs {
		turn <- i
	}
	s := running(t, runs, func(_ context.Context, events []*historypb.HistoryEvent,
		strict bool) replay.Verdict {
		v := replay.Verdict{Outcome: replay.Deterministic, Events: len(events)}
		switch n := <-turn; {
		case n%100 == 50 && strict:
			v.Outcome = replay.Drifted
		case n%100 == 60:
			v.Outcome = replay.Nondeterministic
		}
		return v
	})
	s.VerifyRuns(histories.VerifyRequest{Strict: true})
	v := untilVerified(t, s, ended)
	if v.Done != runs || v.Total != runs || v.Nondeterministic != 7 || v.Drifted != 7 ||
		v.Deterministic != runs-14 || v.Incomplete || v.Err != "" || v.Dropped() != 0 || v.Events == 0 {
		t.Errorf("%+v", v)
	}
	for i, r := range v.Rows {
		if same := r.Verdict.Outcome == replay.Deterministic; same != (i >= 14) {
			t.Errorf("row %d is %s", i, r.Verdict.Outcome)
		}
	}
	if n := len(s.Link.Status().Work); n != 0 {
		t.Errorf("%d works go on", n)
	}
}

// Runs of all types are verified, also of those that lists leave out. The histories of unknown types are not
// read.
func TestVerifyAllTypes(t *testing.T) {
	types := []string{ace.TaskWorkflow, runner.Workflow, runner.DispatcherWorkflow, "Refund"}
	var files []offline.Source
	for i, workflowType := range types {
		h := replaytest.Begin(workflowType)
		started := h.Events[0].GetWorkflowExecutionStartedEventAttributes()
		started.WorkflowId, started.OriginalExecutionRunId = fmt.Sprintf("w-%d", i), fmt.Sprintf("r-%d", i)
		var text bytes.Buffer
		if err := historyfile.Write(&text, h.Complete(h.Task(), nil)); err != nil {
			t.Fatal(err)
		}
		open := func() (io.ReadCloser, error) { return io.NopCloser(&text), nil }
		files = append(files, offline.Source{Name: workflowType, Open: open})
	}
	s := sources.NewFeeds()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	deps := cluster.Deps{Client: clientOf(t, files),
		NewVerifier: refusing("Refund", func(_ context.Context, events []*historypb.HistoryEvent,
			_ bool) replay.Verdict {
			name := events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()
			return replay.Verdict{Outcome: replay.Deterministic, WorkflowType: name,
				Events: len(events)}
		})}
	go func() { defer close(done); s.Run(ctx, deps) }()
	t.Cleanup(func() { cancel(); <-done })
	s.VerifyRuns(histories.VerifyRequest{})
	v := untilVerified(t, s, ended)
	if v.Total != 4 || v.Done != 4 || v.Deterministic != 3 || v.Unverified != 1 || v.Err != "" {
		t.Errorf("%+v", v)
	}
	if r := v.Rows[0].Verdict; r.WorkflowType != "Refund" || r.Why != "unknown" || r.Events != 0 {
		t.Errorf("%+v", r)
	}
}

// Only the named runs are verified, and a run that cannot be read has a reason.
func TestVerifyNamedRuns(t *testing.T) {
	s := running(t, 3, func(context.Context, []*historypb.HistoryEvent, bool) replay.Verdict {
		return replay.Verdict{Outcome: replay.Deterministic}
	})
	s.VerifyRuns(histories.VerifyRequest{Runs: []runspkg.Run{{WorkflowID: "ace/run-1", RunID: "run-1"},
		{WorkflowID: "gone", RunID: "gone"}}})
	v := untilVerified(t, s, ended)
	if v.Total != 2 || v.Done != 2 || v.Deterministic+v.Unverified != 2 {
		t.Errorf("%+v", v)
	}
}

// A canceled verification keeps its results and reports that they are incomplete.
func TestVerifyStopped(t *testing.T) {
	var first atomic.Bool
	waits := make(chan struct{}, 100)
	s := running(t, 100, func(ctx context.Context, _ []*historypb.HistoryEvent,
		_ bool) replay.Verdict {
		if first.CompareAndSwap(false, true) {
			return replay.Verdict{Outcome: replay.Nondeterministic}
		}
		waits <- struct{}{}
		<-ctx.Done()
		return replay.Verdict{Outcome: replay.Unverified}
	})
	s.VerifyRuns(histories.VerifyRequest{})
	<-waits
	s.Link.CancelWork(s.Link.Status().Work[0].ID)
	if v := untilVerified(t, s, ended); !v.Incomplete || v.Unverified != 0 || v.Done > 1 {
		t.Errorf("%+v", v)
	}
}

// A run is found by the ID of its task; the lookup waits for the connection.
func TestFindRun(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := sources.NewFeeds().FindRun(ctx, "run-1"); !errors.Is(err, context.Canceled) {
		t.Errorf("without a connection: %v", err)
	}
	s := running(t, 3, nil)
	r, err := s.FindRun(t.Context(), "run-1")
	if err != nil || r.WorkflowID != ace.WorkflowID("run-1") || r.RunID != "run-1" || r.Open() {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := s.FindRun(t.Context(), "nosuchrun"); !errors.Is(err, runspkg.ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
}

// refusing returns verifiers that call verify, except for runs of a workflow type.
func refusing(workflowType string, verify func(context.Context, []*historypb.HistoryEvent,
	bool) replay.Verdict) func(context.Context, bool) cluster.Verifier {
	return func(_ context.Context, strict bool) cluster.Verifier {
		return verifier{workflowType, verify, strict}
	}
}

type verifier struct {
	refused string
	verify  func(context.Context, []*historypb.HistoryEvent, bool) replay.Verdict
	strict  bool
}

func (v verifier) Verify(ctx context.Context, e []*historypb.HistoryEvent, _ replayer.Stored) replay.Verdict {
	return v.verify(ctx, e, v.strict)
}

func (v verifier) Unknown(workflowType string) string {
	if workflowType == v.refused {
		return "unknown"
	}
	return ""
}

func (v verifier) Start(e []*historypb.HistoryEvent) (replay.Verdict, bool) {
	name := e[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()
	return replay.Verdict{Outcome: replay.Unverified, WorkflowType: name, Why: v.Unknown(name)}, true
}

func (verifier) Close() {}
