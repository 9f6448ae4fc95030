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

	"acescope/engine/temporal/history"
)

// DefaultPatience is much longer than the second that a worker allows, because other replays
// may share the processors.
const DefaultPatience = 10 * time.Second

// patienceTicks is the number of ticks in the patience. A ticker drops ticks, so the time for which the whole
// process was stopped counts as one tick.
const patienceTicks = 20

var (
	errStuck      = errors.New("the workflow code does not yield")
	errReplayer   = errors.New("Temporal's replayer panicked on the history")
	discardLogger = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
)

// Verifier verifies histories against workflow code. It is safe for concurrent use.
type Verifier struct {
	// Register registers the workflows that can be verified.
	Register func(worker.WorkflowRegistry)
	// Build names the code that is verified, and Queue the task queue of its workers, "" for any.
	Build string
	Queue string
	// Strict also reports differences that Temporal accepts: [Drifted].
	Strict bool
	// Patience is how long the code may run without a decision; 0 means [DefaultPatience].
	Patience time.Duration
}

// Verify replays a history with Temporal's replayer and reports where the code decides differently. The
// verdict is that of the replayer. Verify compares decisions only to find the place, and to check what the
// replayer ignores: how a run ends, and with Strict the inputs, results and timers. If ctx ends first, the
// verdict is [Unverified]. Code that never yields leaves a goroutine behind.
func (v *Verifier) Verify(ctx context.Context, events []*historypb.HistoryEvent) Verdict {
	out := Describe(events)
	o := OriginOf(events)
	if out.Why = cmp.Or(out.Why, v.Unknown(o.WorkflowType), o.foreign()); out.Why != "" {
		return out
	}
	events = trimIncompleteTask(events)
	r, replayErr, err := v.replay(ctx, events, v.Strict)
	if err != nil {
		out.Why = err.Error()
		return out
	}
	verdict := v.judge(out, events, r, replayErr)
	if verdict.Outcome != Deterministic {
		// The verdict means nothing if the code cannot read its input, or if other code decided the run.
		if out.Why = cmp.Or(history.FirstEncoded(events), v.otherQueue(events)); out.Why != "" {
			return out
		}
	}
	if verdict.Outcome == Nondeterministic && !v.Strict && !errors.Is(replayErr, errStuck) {
		// Replay again with inputs and results, which the report shows.
		if r, replayErr, err = v.replay(ctx, events, true); err == nil {
			verdict = v.judge(out, events, r, replayErr)
		}
	}
	return verdict
}

// checkEvents returns why a history cannot be replayed, or "".
func checkEvents(events []*historypb.HistoryEvent) string {
	if len(events) == 0 {
		return "the history has no events"
	}
	first := events[0]
	if first.GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED ||
		first.GetWorkflowExecutionStartedEventAttributes() == nil {
		return fmt.Sprintf("the history begins with event %d (%s) instead of the start event: its first part is missing",
			first.GetEventId(), first.GetEventType())
	}
	for i, e := range events {
		id, want, eventType := e.GetEventId(), int64(i+1), e.GetEventType()
		switch {
		case id > want:
			return fmt.Sprintf("found event %d instead of event %d: the history has a gap", id, want)
		case id < want:
			return fmt.Sprintf("found event %d instead of event %d: the history is out of order or has duplicate events", id, want)
		case eventType == enumspb.EVENT_TYPE_UNSPECIFIED:
			return fmt.Sprintf("event %d has an unknown type; a newer acescope may read it", id)
		case e.GetAttributes() == nil:
			return fmt.Sprintf("event %d (%s) has no attributes", id, eventType)
		}
	}
	if len(events) < 3 {
		return "no workflow task has started yet"
	}
	return ""
}

// Unknown returns why no run of a workflow type can be verified, or "".
func (v *Verifier) Unknown(workflowType string) string {
	known := &registry{}
	v.Register(known)
	if slices.Contains(known.types, workflowType) {
		return ""
	}
	return fmt.Sprintf("unknown workflow type %q", workflowType)
}

// otherQueue returns a reason if workers of another task queue decided the history, perhaps with other code
// for the same workflow type, otherwise "".
func (v *Verifier) otherQueue(events []*historypb.HistoryEvent) string {
	queue := events[0].GetWorkflowExecutionStartedEventAttributes().GetTaskQueue().GetName()
	if v.Queue == "" || queue == v.Queue {
		return ""
	}
	return fmt.Sprintf("decided by workers of task queue %q, whose code may be another program's", queue)
}

// trimIncompleteTask removes the last workflow task if the events of its commands may be
// missing. A server writes them together, but a file may be truncated between them.
func trimIncompleteTask(events []*historypb.HistoryEvent) []*historypb.HistoryEvent {
	for i, e := range slices.Backward(events) {
		switch e.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			return events[:i]
		case enumspb.EVENT_TYPE_MARKER_RECORDED,
			enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
			enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
			continue
		}
		c, task, ok := commandOf(e)
		if !ok || task == 0 || isClosing(c.Kind) {
			return events
		}
	}
	return events
}

// replay replays a history and records the decisions of the code. replayErr is the judgment
// of Temporal's replayer; err says why it is missing.
func (v *Verifier) replay(
	ctx context.Context, events []*historypb.HistoryEvent, details bool,
) (r *recorder, replayErr, err error) {
	r = &recorder{details: details, commands: map[int64][]Command{}}
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		Interceptors:             []interceptor.WorkerInterceptor{r},
		DisableDeadlockDetection: true,
	})
	if err != nil {
		return nil, nil, err
	}
	v.Register(&registry{WorkflowReplayer: replayer})
	started := events[0].GetWorkflowExecutionStartedEventAttributes()
	options := worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: started.GetWorkflowId(),
			RunID: started.GetOriginalExecutionRunId()},
	}
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil { // the replayer trusts its input, which may be any file
				done <- fmt.Errorf("%w: %v", errReplayer, p)
			}
		}()
		done <- replayer.ReplayWorkflowHistoryWithOptions(discardLogger, &historypb.History{Events: events},
			options)
	}()
	replayErr, err = v.wait(ctx, r, done)
	if errors.Is(replayErr, errReplayer) {
		return r, nil, replayErr
	}
	return r, replayErr, err
}

// wait waits for a replay as long as the code makes progress.
func (v *Verifier) wait(ctx context.Context, r *recorder, done <-chan error) (replayErr, err error) {
	tick := time.NewTicker(cmp.Or(v.Patience, DefaultPatience) / patienceTicks)
	defer tick.Stop()
	for before, idle := int64(0), 0; idle < patienceTicks; idle++ {
		select {
		case replayErr := <-done:
			return replayErr, nil
		case <-ctx.Done():
			r.stop()
			return nil, ctx.Err()
		case <-tick.C:
		}
		if now := r.observed(); now != before || now == 0 { // at first the replayer prepares
			before, idle = now, -1
		}
	}
	r.stop()
	return errStuck, nil
}

// judge derives the verdict from the recorded decisions and the replayer's error.
func (v *Verifier) judge(out Verdict, events []*historypb.HistoryEvent, r *recorder,
	replayErr error) Verdict {
	tasks := tasksOf(events)
	lastStarted := r.at
	if len(tasks) > 0 && !isPanic(replayErr) { // code that only waits runs in tasks without making decisions
		lastStarted = tasks[len(tasks)-1].started
	}
	d := compare(tasks, r.commands, lastStarted)
	switch {
	case replayErr != nil:
		d = explain(d, tasks, r, replayErr)
	case d != nil && d.Task != tasks[len(tasks)-1].completed.GetEventId():
		// The replayer accepted the task: the difference is a command that the code withdrew because its
		// scope was canceled in the same task. The replayer does not check the last task.
		d = nil
	}
	out.Outcome = Deterministic
	if d != nil {
		out.Outcome = Nondeterministic
	} else if v.Strict {
		if d = drift(tasks, r.commands); d != nil {
			out.Outcome = Drifted
		}
	}
	if d != nil {
		d.Code = v.Build
		d.Sentence, d.Advice = d.describe()
		out.Divergence = d
	}
	return out
}

// explain turns the replayer's error into a divergence at the place where the comparison
// found a difference, or else in the last task that ran code.
func explain(d *Divergence, tasks []*task, r *recorder, replayErr error) *Divergence {
	text := strings.Join(strings.Fields(replayErr.Error()), " ")
	var last *task
	for _, t := range tasks {
		if t.started <= r.at || last == nil {
			last = t
		}
	}
	stuck, panicked := errors.Is(replayErr, errStuck), isPanic(replayErr)
	switch {
	case versionRange.MatchString(text):
		d = unsupportedVersion(last, r, text)
	case d == nil && last == nil:
		d = &Divergence{Kind: KindPanic}
	case d == nil:
		event, expected := last.completed, (*Command)(nil)
		if n := len(last.history); n > 0 && !stuck {
			event, expected = last.history[n-1].event, &last.history[n-1].Command
		}
		d = last.diverge(KindOther, event, expected, nil)
	}
	switch {
	case d.Kind == KindVersion:
	case stuck:
		d.Kind = KindStuck
		d.Actual = nil
	case panicked:
		d.Kind = KindPanic
	}
	d.addLocalActivity(r)
	d.SDK = text
	return d
}

// addLocalActivity names the local activity that the code started instead of the missing
// command. A local activity leaves a marker only when it ends.
func (d *Divergence) addLocalActivity(r *recorder) {
	if d.Kind != KindMissing || d.Actual != nil || len(r.locals) == 0 {
		return
	}
	local := Command{Kind: kindLocal, Name: r.locals[0].activityType}
	if !local.matches(*d.Expected) {
		d.Kind = KindOther
		d.Actual = &local
	}
}

// versionRange matches the panics of the SDK's GetVersion.
var versionRange = regexp.MustCompile(
	`Workflow code removed support of version (-?\d+)\. for "([^"]*)" changeID\. The oldest supported version is (-?\d+)|` +
		`Workflow code is too old to support version (-?\d+) for "([^"]*)" changeID\. The maximum supported version is (-?\d+)`)

// unsupportedVersion returns a divergence for a recorded version that the code does not support.
func unsupportedVersion(t *task, r *recorder, text string) *Divergence {
	m := versionRange.FindStringSubmatch(text)
	version, change := cmp.Or(m[1], m[4]), cmp.Or(m[2], m[5])
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
	if len(t.history) > 0 {
		event = t.history[0].event
	}
	return t.diverge(KindVersion, event, &Command{Kind: "version", Name: change, Detail: version}, actual)
}

// isPanic reports whether the code panicked. It compares names because the error's type is
// internal to the SDK, which itself panics on nondeterminism (TMPRL1100).
func isPanic(err error) bool {
	return strings.Contains(fmt.Sprintf("%T", err), "PanicError") &&
		!strings.Contains(err.Error(), "TMPRL1100")
}

// registry records the registered workflow types and passes them on to a replayer, if any.
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
