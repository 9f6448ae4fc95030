package sources

import (
	"context"
	"sync"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/codec"
	"acescope/engine/playbook"
)

// Deps are what a store reads from.
type Deps struct {
	Client    client.Client
	Namespace string
	TaskQueue string
	// Books is where playbook versions lie, nil where there are none here.
	Books *playbook.Store
	// NoBooks says why there are no playbooks in Books; nil where that needs no saying.
	NoBooks func() string
	// Artifact reads an artifact of at most limit bytes and checks it against the
	// reference; nil where there are none here.
	Artifact func(ref ace.Ref, limit int64) ([]byte, error)
	// ArtifactPath is the file of an artifact that is here; nil where there are none.
	ArtifactPath func(ref ace.Ref) (string, error)
	// DataDir is the local data directory: its logs can be followed.
	DataDir string
	// TurnLog is the file that holds, on this machine, what an attempt at a turn of a session
	// says, as it is written; nil where there are none.
	TurnLog func(workflowID, runID string, turn int, attempt int32) string
	// Codec is the codec server that the client reads payloads through, nil where there is
	// none.
	Codec *codec.Server
	// Meter counts the calls to the server, nil where nobody counts.
	Meter *Meter
	// Host says who hosts the server and how much room is left; nil where nobody knows.
	Host func() Host
	// Agents looks which agents can be called here; nil where nobody calls any.
	Agents func(ctx context.Context) []AgentCheck
	// Screen counts what is drawn, nil where nothing is.
	Screen func() Screen
	// Verify replays a history with today's workflow code, strictly or as Temporal judges;
	// nil where there is none here.
	Verify func(ctx context.Context, events []*historypb.HistoryEvent, strict bool) ReplayVerdict
}

// Part is a piece of a snapshot that is read only while somebody looks at it.
type Part string

// Parts.
const (
	PartEvents      Part = "events"
	PartBooks       Part = "playbook"
	PartExperiments Part = "experiments"
	PartLogs        Part = "logs"
	PartTriage      Part = "triage"
	PartSystem      Part = "health"
	PartFacets      Part = "facets"
	PartReplay      Part = "replay"
)

// parts keeps which part is looked at.
type parts struct {
	mu   sync.Mutex
	each map[Part]*looking
}

type looking struct {
	on   bool
	wake chan struct{}
}

func (p *parts) of(name Part) *looking {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.each == nil {
		p.each = map[Part]*looking{}
	}
	l := p.each[name]
	if l == nil {
		l = &looking{wake: make(chan struct{}, 1)}
		p.each[name] = l
	}
	return l
}

// Look starts or stops reading a part.
func (s *Store) Look(name Part, on bool) {
	l := s.parts.of(name)
	s.parts.mu.Lock()
	changed := l.on != on
	l.on = on
	s.parts.mu.Unlock()
	if changed {
		signal(l.wake)
	}
}

// again starts the reading of a part anew, since what is wanted of it has changed.
func (s *Store) again(name Part) { signal(s.parts.of(name).wake) }

// watchPart calls read while somebody looks at the part, and anew after each call of
// again. read goes on until its context ends.
func (s *Store) watchPart(ctx context.Context, name Part, read func(context.Context)) {
	l := s.parts.of(name)
	for {
		s.parts.mu.Lock()
		on := l.on
		s.parts.mu.Unlock()
		reading, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		if on {
			go func() { defer close(done); read(reading) }()
		} else {
			close(done)
		}
		select {
		case <-ctx.Done():
		case <-l.wake:
		}
		stop()
		<-done
		if ctx.Err() != nil {
			return
		}
	}
}
