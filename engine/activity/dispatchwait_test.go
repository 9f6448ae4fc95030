package activity

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"acescope/engine/runner"
)

// desk is a Dispatch whose dispatcher does as a test says.
func desk(p *post, dispatcher func(runner.Notices) error) *Dispatch {
	d := newDispatch(p)
	d.gather = newGather(func(_ context.Context, n runner.Notices) error { return dispatcher(n) }, 0)
	d.aside = newAside(d.gather.tell, d.Logger)
	return d
}

func asks(run string, try int) runner.Notices {
	return runner.Notices{{Kind: runner.Enqueue, Run: run, Request: &runner.Request{RunID: run, Execution: "x", Try: try}}}
}

func answerTo(run string, try int, number int64) runner.Answer {
	a := claim(run, number)
	a.Claimed.Try = try
	return a
}

// TestTellAnswered holds that a run which asks gets its answer at once, without a signal, as
// often as it asks, and that what was answered otherwise is a signal.
func TestTellAnswered(t *testing.T) {
	p := &post{}
	var d *Dispatch
	d = desk(p, func(n runner.Notices) error {
		told, err := d.tellRuns(t.Context(), runner.Answers{answerTo("a", 1, 7), answerTo("b", 1, 8)})
		if err != nil || told.Ended != nil || told.Later != nil {
			t.Errorf("%+v, %v", told, err)
		}
		return nil
	})
	for range 2 { // its first workflow task was lost
		got, err := d.tell(t.Context(), asks("a", 1))
		if err != nil || got == nil || got.Claimed == nil || got.Claimed.Number != 7 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if len(p.signals) != 1 || p.signals[0] != "run/b claimed" {
		t.Errorf("%v", p.signals)
	}
}

// TestTellLate holds that a run which waited in vain is told by a signal, that nobody waits
// then, and that they do again once the dispatcher has told something here.
func TestTellLate(t *testing.T) {
	p := &post{}
	var d *Dispatch
	var answers runner.Answers
	d = desk(p, func(runner.Notices) error {
		if answers == nil {
			return nil
		}
		_, err := d.tellRuns(t.Context(), answers)
		return err
	})
	d.waiting.most = time.Millisecond
	if got, err := d.tell(t.Context(), asks("a", 1)); got != nil || err != nil {
		t.Fatalf("%+v, %v", got, err)
	}
	d.waiting.most = time.Hour
	if got, err := d.tell(t.Context(), asks("b", 1)); got != nil || err != nil { // or it would not return
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := d.tellRuns(t.Context(), runner.Answers{answerTo("a", 1, 1), answerTo("b", 1, 2)}); err != nil || len(p.signals) != 2 {
		t.Errorf("%v, %v", p.signals, err)
	}
	answers = runner.Answers{answerTo("c", 2, 4)} // to another try than the first
	if got, err := d.tell(t.Context(), asks("c", 2)); got == nil || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if len(d.waiting.of) > 0 {
		t.Errorf("%d still wait", len(d.waiting.of))
	}
}

// TestTellBounds holds that a bounded number waits, and that who stops waiting is forgotten.
func TestTellBounds(t *testing.T) {
	w := newWaiting(time.Hour)
	var all []*waiter
	for i := range waitMost + 1 {
		one := w.begin(runner.Request{RunID: "run", Execution: "x", Try: i})
		if (one == nil) != (i == waitMost) {
			t.Fatalf("number %d: %v", i, one)
		}
		all = append(all, one)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, one := range all {
		if w.end(ctx, one, true) != nil {
			t.Error("an answer of nobody")
		}
	}
	if len(w.of) > 0 || w.vain {
		t.Errorf("%d still wait; in vain: %v", len(w.of), w.vain)
	}
}

// TestTellAnsweredBefore holds that an answer counts that came before it was known whether the
// dispatcher was told.
func TestTellAnsweredBefore(t *testing.T) {
	p := &post{}
	var d *Dispatch
	d = desk(p, func(runner.Notices) error {
		_, _ = d.tellRuns(t.Context(), runner.Answers{answerTo("a", 1, 1)})
		return errors.New("the connection is gone")
	})
	if got, err := d.tell(t.Context(), asks("a", 1)); got == nil || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := d.tell(t.Context(), asks("b", 1)); got != nil || err == nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAside holds that a run which has ended waits for nobody, that the dispatcher is told all
// the same, and that the end of the process waits for that.
func TestAside(t *testing.T) {
	open := make(chan struct{})
	var heard atomic.Int64
	d := desk(&post{}, func(n runner.Notices) error {
		<-open
		heard.Add(int64(len(n)))
		return nil
	})
	const runs = asideMost
	for range runs {
		if got, err := d.tell(t.Context(), runner.Notices{{Kind: runner.Release, Run: "a", Claim: 1}}); got != nil || err != nil {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if d.aside.take(nil) {
		t.Error("there is room for more than asideMost")
	}
	close(open)
	d.aside.close(time.Hour)
	if heard.Load() != runs {
		t.Errorf("heard %d of %d", heard.Load(), runs)
	}
	if d.aside.take(nil) {
		t.Error("something is taken after the end")
	}
	blocked := newAside(func(ctx context.Context, _ runner.Notices) error { <-ctx.Done(); return ctx.Err() }, slog.New(slog.NewTextHandler(io.Discard, nil)))
	blocked.take(runner.Notices{{Kind: runner.Release, Run: "a"}})
	blocked.close(0)
	blocked.all.Wait()
}
