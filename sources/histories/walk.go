package histories

import (
	"context"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/kind"
	"acescope/engine/stepper"
	"acescope/sources/cluster"
	"acescope/sources/playbooks"
)

// Walk describes the events of a run one by one.
type Walk struct {
	*stepper.Stepper
	Log   *EventLog // with the spans of the run
	Books kind.Books
}

// NewWalk folds a history. Types names events of unknown types. Shared is the history if others read it too,
// otherwise nil.
func NewWalk(events []*historypb.HistoryEvent, types map[int]string, shared *cluster.History) *Walk {
	s := stepper.New(events, stepper.Options{Types: types})
	x := NewEventIndex(s.About.WorkflowID, s.About.RunID, shared)
	x.Append(events)
	w := &Walk{Stepper: s, Log: x.Log(time.Now())}
	w.Log.Spans = Timeline(w.Log, nil)
	return w
}

// Start returns the position that a reader of the run looks at first: where its answer became wrong,
// otherwise the end.
func (w *Walk) Start(closed bool) int {
	if at := w.WrongAt(); closed && at > 0 {
		return at
	}
	return w.Len()
}

// Words says in one line what the event at a position did. It contains untrusted text.
func (w *Walk) Words(pos int) string {
	if e := w.Log.Event(w.EventID(pos)); e != nil {
		return w.Log.words(e)
	}
	return w.EventType(pos)
}

// Sections returns the state at a position.
func (w *Walk) Sections(pos int) []kind.Section { return w.Stepper.Sections(pos, w.Books) }

// Wrong describes the wrong answer of the run, or returns nil.
func (w *Walk) Wrong() *stepper.WrongAnswer { return w.Stepper.Wrong(w.Books) }

// ReadBooks reads the playbook versions of a run. A version that cannot be read is nil.
func ReadBooks(ctx context.Context, d cluster.Deps, given, before string) (b kind.Books) {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	b.Given = playbooks.Bullets(ctx, d.Playbooks, given)
	if b.Before = b.Given; before != given {
		b.Before = playbooks.Bullets(ctx, d.Playbooks, before)
	}
	return b
}
