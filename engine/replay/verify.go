package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/history"
)

// Verifier verifies histories against workflow code. It may be used by several
// goroutines.
type Verifier struct {
	// Register makes the workflows known. Only what it registers can be verified.
	Register func(worker.WorkflowRegistry)
	// Build names the code that is verified.
	Build string
	// Strict reports decisions that Temporal lets pass too: [Drifted].
	Strict bool
	// Patience is how long the code may run without a decision, 0 for [DefaultPatience].
	Patience time.Duration
}

// DefaultPatience is far more than the second that a worker gives, since other replays may
// be under way on the same processors.
const DefaultPatience = 10 * time.Second

var errStuck = errors.New("the code does not come to a decision")

// Verify replays a history with Temporal's own replayer and says where the code decides
// otherwise. The replayer judges; the comparison names the place, and finds what the
// replayer does not look at: how a run ends, and the length of timers. Where the code
// does not end its turn, its goroutine is left behind, since nothing can end it; so it is
// where ctx ends first, with an [Unverified].
func (v *Verifier) Verify(ctx context.Context, events []*historypb.HistoryEvent) Verdict {
	out := Verdict{Outcome: Unverified, Events: len(events)}
	if out.Why = describe(&out, events); out.Why != "" {
		return out
	}
	if missing := v.unregistered(out.WorkflowType); missing != "" {
		out.Why = missing
		return out
	}
	events = settled(events)
	r, said, err := v.replay(ctx, events, v.Strict)
	if err != nil {
		out.Why = err.Error()
		return out
	}
	verdict := v.judge(out, events, r, said)
	if why := locked(events); verdict.Outcome != Same && why != "" {
		out.Why = why // that code decides otherwise on what it cannot read says nothing of it
		return out
	}
	if verdict.Outcome == Diverged && !v.Strict && !errors.Is(said, errStuck) {
		if r, said, err = v.replay(ctx, events, true); err == nil { // now that it will be shown, with what it was about
			verdict = v.judge(out, events, r, said)
		}
	}
	return verdict
}

// replay replays a history and notes what the code decides.
func (v *Verifier) replay(ctx context.Context, events []*historypb.HistoryEvent, details bool) (r *recorder, said, err error) {
	r = newRecorder(details)
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		Interceptors: []interceptor.WorkerInterceptor{r}, DisableDeadlockDetection: true})
	if err != nil {
		return nil, nil, err
	}
	v.Register(&registry{WorkflowReplayer: replayer})
	started := events[0].GetWorkflowExecutionStartedEventAttributes()
	done := make(chan error, 1)
	background(func() {
		defer func() {
			if p := recover(); p != nil { // the replayer trusts histories, and files are not all to be trusted
				done <- &unreadable{fmt.Sprint(p)}
			}
		}()
		done <- replayer.ReplayWorkflowHistoryWithOptions(quiet, &historypb.History{Events: events}, worker.ReplayWorkflowHistoryOptions{
			OriginalExecution: workflow.Execution{ID: started.GetWorkflowId(), RunID: started.GetOriginalExecutionRunId()}})
	})
	said, err = v.wait(ctx, r, done)
	if broken := (*unreadable)(nil); errors.As(said, &broken) {
		return r, nil, broken
	}
	return r, said, err
}

// unreadable is that the replayer itself broke on a history.
type unreadable struct{ panicked string }

func (e *unreadable) Error() string {
	return "Temporal's replayer cannot make sense of the history: " + e.panicked
}

// wait waits for a replay for as long as there is progress.
func (v *Verifier) wait(ctx context.Context, r *recorder, done <-chan error) (said, err error) {
	patience := cmp.Or(v.Patience, DefaultPatience)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for before := int64(0); ; {
		select {
		case said := <-done:
			return said, nil
		case <-ctx.Done():
			r.giveUp()
			return nil, ctx.Err()
		case <-timer.C:
		}
		now := r.step()
		if now == before {
			r.giveUp()
			return errStuck, nil
		}
		before = now
		timer.Reset(patience)
	}
}

// unregistered says that a workflow type is not known, "" if it is.
func (v *Verifier) unregistered(name string) string {
	known := &registry{}
	v.Register(known)
	if slices.Contains(known.types, name) {
		return ""
	}
	return fmt.Sprintf("no workflow of type %q is registered here; there are: %s", name, strings.Join(known.types, ", "))
}

// settled is a history without the last workflow task where the events that this led to
// may be missing: a server writes them together, but a file can break off between them.
func settled(events []*historypb.HistoryEvent) []*historypb.HistoryEvent {
	for n := len(events); n > 0; n-- {
		e := events[n-1]
		switch e.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			return events[:n-1]
		case enumspb.EVENT_TYPE_MARKER_RECORDED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
			continue
		}
		_, task, ok := commandOf(e)
		if _, _, closed := closingOf(e); closed || !ok || task == 0 {
			return events
		}
	}
	return events
}

// describe fills in what the first event says, and says why a history cannot be replayed.
func describe(out *Verdict, events []*historypb.HistoryEvent) string {
	if len(events) == 0 {
		return "the history has no events"
	}
	first := events[0]
	started := first.GetWorkflowExecutionStartedEventAttributes()
	if first.GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED || started == nil {
		return fmt.Sprintf("the history begins with event %d (%s), not with the start: its first part is missing", first.GetEventId(), first.GetEventType())
	}
	out.WorkflowType, out.WorkflowID, out.RunID = started.GetWorkflowType().GetName(), started.GetWorkflowId(), history.OriginOf(events).RunID
	for i, e := range events {
		switch id, want := e.GetEventId(), int64(i+1); {
		case id > want:
			return fmt.Sprintf("event %d stands where event %d should: the history has a gap", id, want)
		case id < want:
			return fmt.Sprintf("event %d stands where event %d should: the history is out of order, or has events twice", id, want)
		case e.GetAttributes() == nil && e.GetEventType() != enumspb.EVENT_TYPE_UNSPECIFIED:
			return fmt.Sprintf("event %d (%s) is empty: what it should tell is missing", id, e.GetEventType())
		}
		if e.GetEventType() == enumspb.EVENT_TYPE_UNSPECIFIED {
			return fmt.Sprintf("event %d is of a type that this program does not know; a newer acescope may", e.GetEventId())
		}
	}
	if len(events) < 3 {
		return "the run has not been worked on yet"
	}
	return ""
}

func (v *Verifier) judge(out Verdict, events []*historypb.HistoryEvent, r *recorder, said error) Verdict {
	tasks := tasksOf(events)
	upTo := r.at
	if len(tasks) > 0 && (said == nil || !isPanic(said)) { // code that only waits decides nothing in the later tasks, too
		upTo = tasks[len(tasks)-1].started
	}
	d := compare(tasks, r.commands, upTo)
	if said == nil && d != nil && !atEnd(d, tasks) {
		// Temporal's replayer is content: what looks different is a command that it took
		// back, of a scope that was cancelled in the same task.
		d = nil
	}
	if said != nil {
		d = v.explain(d, tasks, r, said)
	}
	switch {
	case d != nil:
		out.Outcome = Diverged
	default:
		out.Outcome = Same
		if d = drift(tasks, r.commands); d != nil && v.Strict {
			out.Outcome = Drifted
		} else {
			d = nil
		}
	}
	if d != nil {
		d.Code = v.Build
		d.Sentence, d.Advice = d.say()
		out.Divergence = d
	}
	return out
}

// atEnd tells whether a divergence is in the last task, which the replayer leaves alone.
func atEnd(d *Divergence, tasks []*task) bool {
	return d.Task == tasks[len(tasks)-1].completed.GetEventId()
}

// versionRange is what the SDK's GetVersion panics with.
var versionRange = regexp.MustCompile(`Workflow code removed support of version (-?\d+)\. for "([^"]*)" changeID\. The oldest supported version is (-?\d+)|Workflow code is too old to support version (-?\d+) for "([^"]*)" changeID\. The maximum supported version is (-?\d+)`)

// explain makes a divergence of an error that the replayer gives, at the place that the
// comparison found.
func (v *Verifier) explain(d *Divergence, tasks []*task, r *recorder, said error) *Divergence {
	text := oneLine(said)
	var last *task
	for _, t := range tasks {
		if t.started <= r.at || last == nil {
			last = t
		}
	}
	switch {
	case versionRange.MatchString(text):
		d = v.version(last, r, text)
	case errors.Is(said, errStuck):
		d = stuck(d, last)
	case d != nil && isPanic(said):
		d.Kind = KindPanic
	case d == nil && last != nil:
		kind := KindOther
		if isPanic(said) {
			kind = KindPanic
		}
		event, expected := last.completed, (*Command)(nil)
		if n := len(last.history); n > 0 {
			event, expected = last.history[n-1].event, &last.history[n-1].Command
		}
		d = last.at(kind, event, expected, nil)
	case d == nil:
		d = &Divergence{Kind: KindPanic}
	}
	d.beganLocal(r)
	d.SDK = text
	return d
}

// stuck is a divergence by code that does not end its turn: at what the history has next,
// else in the last task.
func stuck(d *Divergence, last *task) *Divergence {
	switch {
	case d != nil:
		d.Kind, d.Actual = KindStuck, nil
	case last != nil:
		d = last.at(KindStuck, last.completed, nil, nil)
	default:
		d = &Divergence{Kind: KindStuck}
	}
	return d
}

// beganLocal names the local activity that the code began in the place of what is missing;
// it leaves no marker before it has ended.
func (d *Divergence) beganLocal(r *recorder) {
	if d.Kind != KindMissing || d.Actual != nil || len(r.locals) == 0 {
		return
	}
	if began := (Command{Kind: kindLocal, Name: r.locals[0].kind}); !began.matches(*d.Expected) {
		d.Kind, d.Actual = KindOther, &began
	}
}

// version is a divergence by a change whose recorded version the code does not support.
func (v *Verifier) version(t *task, r *recorder, text string) *Divergence {
	m := versionRange.FindStringSubmatch(text)
	change, version := m[2], m[1]
	if change == "" {
		change, version = m[5], m[4]
	}
	actual := &Command{Kind: "version", Name: change}
	for _, c := range r.versions {
		if c.change == change {
			actual.Detail = fmt.Sprintf("%d to %d", c.min, c.max)
		}
	}
	if t == nil {
		return &Divergence{Kind: KindVersion, Actual: actual}
	}
	event := t.completed
	for _, c := range t.history {
		event = c.event
		break
	}
	d := t.at(KindVersion, event, &Command{Kind: "version", Name: change, Detail: version}, actual)
	return d
}

// isPanic goes by names: the type is the SDK's own, and it panics itself on a history
// that does not fit.
func isPanic(err error) bool {
	return strings.Contains(fmt.Sprintf("%T", err), "PanicError") && !strings.Contains(err.Error(), "TMPRL1100")
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

var quiet = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))

// registry registers with a replayer, where it has one, and notes what.
type registry struct {
	worker.WorkflowReplayer
	types []string
}

func (r *registry) RegisterWorkflowWithOptions(w any, o workflow.RegisterOptions) {
	r.types = append(r.types, o.Name)
	if r.WorkflowReplayer != nil {
		r.WorkflowReplayer.RegisterWorkflowWithOptions(w, o)
	}
}

func (r *registry) RegisterWorkflow(w any) {
	r.RegisterWorkflowWithOptions(w, workflow.RegisterOptions{})
}

func (r *registry) RegisterDynamicWorkflow(any, workflow.DynamicRegisterOptions) {}
