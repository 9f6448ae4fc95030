// Package replayer verifies histories with programs of the user. Such a program, a replayer, has the user's
// workflow code and the replayer of its SDK. It reads one history per line from its standard input and writes
// one verdict per line to its standard output; docs/guides/replayers.md has the protocol.
//
// Order: a replayer may answer in any order. Bounds: at most one process per replayer; a line of its output has
// at most [MaxLine] bytes. Loss: a history without a valid answer is unverified, with the reason.
package replayer

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"

	"acescope/engine/internal/process"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/replay"
)

// DefaultTimeout is how long a replayer may take for a history. The first one includes the start of the
// program.
const DefaultTimeout = 2 * time.Minute

// Replayer is a program that replays histories. SDK, TaskQueue and WorkflowType are patterns of the histories
// that it replays, in which * stands for any characters; an empty pattern matches all.
type Replayer struct {
	SDK, TaskQueue, WorkflowType string

	Argv    []string
	Dir     string        // "" for the directory of this process
	Env     []string      // the complete environment
	Timeout time.Duration // 0 for DefaultTimeout
}

// Matches reports whether the replayer is for histories of an origin.
func (r Replayer) Matches(o replay.Origin) bool {
	return matches(r.SDK, o.SDK) && matches(r.TaskQueue, o.TaskQueue) &&
		matches(r.WorkflowType, o.WorkflowType)
}

func matches(pattern, name string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == "" || pattern == name
	}
	expr := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`)
	return regexp.MustCompile("(?s)^" + expr + "$").MatchString(name)
}

// Name returns the command as a user would type it.
func (r Replayer) Name() string { return strings.Join(r.Argv, " ") }

// Path returns the path of the program on this machine.
func (r Replayer) Path() (string, error) { return process.LookPath(r.Argv[0], r.Dir, r.Env) }

// Verifier verifies a batch of histories: those of this program with its workflow code, the others with the
// first replayer that matches. It is safe for concurrent use. The caller must call Close.
type Verifier struct {
	own       *replay.Verifier
	replayers []Replayer
	sessions  []*session // by replayer
	ctx       context.Context
	stop      context.CancelFunc
	wg        sync.WaitGroup
}

// New returns a verifier. Its programs end with ctx.
func New(ctx context.Context, own *replay.Verifier, replayers []Replayer) *Verifier {
	v := &Verifier{own: own, replayers: replayers}
	v.ctx, v.stop = context.WithCancel(ctx)
	for _, r := range replayers {
		v.sessions = append(v.sessions, &session{Replayer: r, ctx: v.ctx, wg: &v.wg})
	}
	return v
}

// Close lets the programs end, and waits until they have.
func (v *Verifier) Close() {
	var ending sync.WaitGroup
	for _, s := range v.sessions {
		ending.Go(s.close)
	}
	ending.Wait()
	v.stop()
	v.wg.Wait()
}

// Stored returns the events of a history as they were recorded, with encoded payloads.
type Stored func(context.Context) ([]*historypb.HistoryEvent, error)

// Unknown returns why this program cannot verify the runs of a workflow type, or "".
func (v *Verifier) Unknown(workflowType string) string { return v.own.Unknown(workflowType) }

// Verify verifies a history. A replayer gets the events that stored returns; nil means that they are the same.
func (v *Verifier) Verify(ctx context.Context, events []*historypb.HistoryEvent, stored Stored) replay.Verdict {
	o := replay.OriginOf(events)
	if v.own.Decides(o) {
		return v.own.Verify(ctx, events)
	}
	s := v.match(o)
	if s == nil {
		return advised(v.own.Verify(ctx, events), o)
	}
	out := replay.Describe(events)
	out.Replayer = s.Name()
	if out.Why != "" {
		return out
	}
	if stored != nil {
		recorded, err := stored(ctx)
		if err != nil {
			out.Why = err.Error()
			return out
		}
		events = recorded
	}
	return s.verify(ctx, out, events)
}

// Start returns the verdict on a run whose first events already show that it cannot be verified. Otherwise ok
// is false.
func (v *Verifier) Start(events []*historypb.HistoryEvent) (verdict replay.Verdict, ok bool) {
	o := replay.OriginOf(events)
	if v.own.Unknown(o.WorkflowType) == "" || v.match(o) != nil || o.SDK == "" && len(v.replayers) > 0 {
		return verdict, false
	}
	verdict = replay.Describe(events)
	verdict.Events = 0 // the others are not read
	verdict.Why = cmp.Or(foreign(o), v.own.Unknown(o.WorkflowType))
	return advised(verdict, o), true
}

func (v *Verifier) match(o replay.Origin) *session {
	for i, r := range v.replayers {
		if r.Matches(o) {
			return v.sessions[i]
		}
	}
	return nil
}

func foreign(o replay.Origin) string {
	if o.SDK == "" {
		return ""
	}
	return "decided by " + o.Worker() + ", and no replayer matches it"
}

// advised adds what to do about a history that this program did not decide.
func advised(v replay.Verdict, o replay.Origin) replay.Verdict {
	if v.Outcome != replay.Unverified || o.SDK == "" || len(v.Why) == 0 {
		return v
	}
	v.Why = foreign(o)
	v.Advice = fmt.Sprintf("to verify it, add to config.toml (docs/guides/replayers.md):\n"+
		"[[replayers]]\nsdk = %q\ncommand = %s\n", o.SDK, exampleOf(o.SDK))
	if o.SDK == "temporal-go" {
		v.Advice = fmt.Sprintf("to verify it, add to config.toml (docs/guides/replayers.md):\n"+
			"[[replayers]]\ntask_queue = %q\ncommand = %s\n", o.TaskQueue, exampleOf(o.SDK))
	}
	v.Advice = strings.TrimSuffix(v.Advice, "\n")
	return v
}

// exampleOf returns an example of a command for an SDK, in TOML.
func exampleOf(sdk string) string {
	switch sdk {
	case "temporal-python":
		return `["python3", "replay.py", "your_workflows"]`
	case "temporal-typescript":
		return `["node", "replay.cjs", "./lib/workflows.js"]`
	}
	return `["./your-replayer"]`
}

// request is a line of the input of a replayer.
type request struct {
	WorkflowID, RunID string
	line              []byte
}

// key identifies the answer to a request.
func (q request) key() [2]string { return [2]string{q.WorkflowID, q.RunID} }

// requestOf encodes a history. A history is as "temporal workflow show -o json" writes it, in one line.
func requestOf(events []*historypb.HistoryEvent) (q request, err error) {
	q.WorkflowID = events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId()
	q.RunID = history.OriginOf(events).RunID
	h, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(&historypb.History{Events: events})
	if err != nil {
		return q, fmt.Errorf("the history cannot be written as JSON: %w", err)
	}
	q.line = encode(q.WorkflowID, q.RunID, h)
	return q, nil
}
