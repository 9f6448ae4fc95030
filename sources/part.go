package sources

import (
	"context"
	"sync"

	"acescope/sources/cluster"
)

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
	// PartTranscripts is the sessions of agents that lie on this machine as transcripts.
	PartTranscripts Part = "transcripts"
	// PartArtifacts is the artifacts that somebody opened.
	PartArtifacts Part = "artifacts"
	// PartDiff is two runs side by side.
	PartDiff Part = "diff"
	// PartLineage is the lineage of the selected run.
	PartLineage Part = "lineage"
	// PartRunners is the runners, and the runs that wait for one.
	PartRunners Part = "runners"
	// PartSessions is the agents' sessions on the engine.
	PartSessions Part = "sessions"
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
	if name == PartDiff {
		s.diff.Look(on)
		return
	}
	l := s.parts.of(name)
	s.parts.mu.Lock()
	changed := l.on != on
	l.on = on
	s.parts.mu.Unlock()
	if changed {
		cluster.Signal(l.wake)
	}
}

// again starts the reading of a part anew, since what is wanted of it has changed.
func (s *Store) again(name Part) { cluster.Signal(s.parts.of(name).wake) }

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
