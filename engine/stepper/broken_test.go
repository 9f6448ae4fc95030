package stepper_test

import (
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"acescope/engine/stepper"
	"acescope/engine/temporal/replay"
	"acescope/engine/temporal/replay/replaytest"
	"acescope/engine/workflows"
)

// broken lists ways to damage a history at event i.
var broken = map[string]func(events []*historypb.HistoryEvent, i int) []*historypb.HistoryEvent{
	"no attributes": func(e []*historypb.HistoryEvent, i int) []*historypb.HistoryEvent {
		e[i].Attributes = nil
		return e
	},
	"empty attributes": func(e []*historypb.HistoryEvent, i int) []*historypb.HistoryEvent {
		m := e[i].ProtoReflect()
		if f := m.WhichOneof(m.Descriptor().Oneofs().ByName("attributes")); f != nil {
			m.Set(f, m.NewField(f))
		}
		return e
	},
	"dangling references": func(e []*historypb.HistoryEvent, i int) []*historypb.HistoryEvent {
		point(e[i], 9999)
		return e
	},
	"references to itself": func(e []*historypb.HistoryEvent, i int) []*historypb.HistoryEvent {
		point(e[i], int64(i+1))
		return e
	},
	"negative references": func(e []*historypb.HistoryEvent, i int) []*historypb.HistoryEvent {
		point(e[i], -1)
		return e
	},
	"another type": func(e []*historypb.HistoryEvent, i int) []*historypb.HistoryEvent {
		e[i].EventType = enumspb.EVENT_TYPE_TIMER_FIRED
		return e
	},
	"another event's attributes": func(e []*historypb.HistoryEvent, i int) []*historypb.HistoryEvent {
		e[i].Attributes = e[(i+1)%len(e)].Attributes
		return e
	},
	"twice": func(e []*historypb.HistoryEvent, i int) []*historypb.HistoryEvent {
		return append(e[:i+1:i+1], e[i:]...)
	},
	"gone": func(e []*historypb.HistoryEvent, i int) []*historypb.HistoryEvent {
		return append(e[:i:i], e[i+1:]...)
	},
	"the end": func(e []*historypb.HistoryEvent, i int) []*historypb.HistoryEvent { return e[:i] },
	"swapped": func(e []*historypb.HistoryEvent, i int) []*historypb.HistoryEvent {
		j := (i + 1) % len(e)
		e[i], e[j] = e[j], e[i]
		return e
	},
	"gone and renumbered": func(e []*historypb.HistoryEvent, i int) []*historypb.HistoryEvent {
		e = append(e[:i:i], e[i+1:]...)
		for n := range e {
			e[n].EventId = int64(n + 1)
		}
		return e
	},
}

// point sets all event IDs in the attributes of an event.
func point(e *historypb.HistoryEvent, id int64) {
	m := e.ProtoReflect()
	f := m.WhichOneof(m.Descriptor().Oneofs().ByName("attributes"))
	if f == nil {
		return
	}
	a := m.Mutable(f).Message()
	a.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if f.Kind() == protoreflect.Int64Kind && !f.IsList() {
			a.Set(f, protoreflect.ValueOfInt64(id))
		}
		return true
	})
}

// Verifying and stepping through a damaged history give a result.
func TestBrokenHistories(t *testing.T) {
	v := &replay.Verifier{Register: workflows.Register, Patience: time.Minute}
	outcomes := map[replay.Outcome]int{}
	for _, name := range []string{"right", "failed", "experiment"} {
		whole := &historypb.History{Events: replaytest.Recorded(t, name)}
		for what, wrong := range broken {
			for i := 0; i < len(whole.Events); i += 1 + len(whole.Events)/40 {
				events := wrong(proto.Clone(whole).(*historypb.History).Events, i)
				got := v.Verify(t.Context(), events)
				outcomes[got.Outcome]++
				if got.Outcome == replay.Unverified && got.Why == "" ||
					got.Outcome == replay.Nondeterministic && got.Divergence.Sentence == "" {
					t.Errorf("%s, %s at event %d: %+v", name, what, i+1, got)
				}
				s := stepper.New(events, stepper.Options{})
				for pos := 1; pos <= s.Len(); pos++ {
					s.Frame(pos)
				}
			}
		}
	}
	if outcomes[replay.Unverified] == 0 || outcomes[replay.Nondeterministic] == 0 {
		t.Errorf("outcomes: %v", outcomes)
	}
	t.Log(outcomes)
}

// Missing and duplicate events are noted.
func TestNotesGaps(t *testing.T) {
	for what, want := range map[string]string{"gone": "event 10 is missing", "twice": "this event follows event 10"} {
		events := broken[what](replaytest.Recorded(t, "right"), 9)
		s := stepper.New(events, stepper.Options{})
		noted := 0
		for pos := 1; pos <= s.Len(); pos++ {
			for _, n := range s.Frame(pos).Notes {
				if noted++; !strings.Contains(n, want) {
					t.Errorf("%s: %s", what, n)
				}
			}
		}
		if noted != 1 {
			t.Errorf("%s: %d notes", what, noted)
		}
	}
}
