package sources

import (
	"context"
	"fmt"
	"time"

	"acescope/engine/temporal/codec"
	"acescope/sources/cluster"
	"acescope/sources/system"
)

// watchCodec shows how the codec server does. What was read while it failed is read anew
// when it answers again, or when a refresh asks for it.
func (s *Store) watchCodec(ctx context.Context, c *codec.Server) {
	if c == nil {
		return
	}
	w := codecWatch{store: s, c: c}
	w.show()
	tick := time.NewTicker(system.ProbeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.Changes():
			w.show()
		case <-s.codecCh:
			if st := c.Status(); !st.OK || st.Reason != "" {
				c.Retry()
				w.show()
				s.rereadAll()
			}
		case <-tick.C:
			if c.Probe(ctx) {
				w.show()
				s.rereadAll()
			}
		}
	}
}

// rereadAll begins anew with everything that is read through the codec server.
func (s *Store) rereadAll() {
	s.mu.Lock()
	if s.wishes != nil {
		s.wishes.closed, s.wishes.kept = nil, nil
	}
	s.mu.Unlock()
	cluster.Signal(s.wake)
	cluster.Signal(s.selectCh)
	for _, part := range []Part{PartEvents, PartReplay, PartExperiments, PartTriage, PartDiff, PartFacets, PartBooks} {
		s.again(part)
	}
}

// show sets the server's lasting state, and reports a problem once for as long as it stays
// the same.
func (w *codecWatch) show() {
	st, name := w.c.Status(), w.c.Name()
	text, problem := name, ""
	switch {
	case !st.OK:
		text = fmt.Sprintf("%s: %s; payloads are shown encoded, and it is asked again by itself", name, st.Reason)
		problem = fmt.Sprintf("codec server %s: %s", name, st.Reason)
	case st.Reason != "":
		text = fmt.Sprintf("%s: answers, but some payloads it cannot decode: %s", name, st.Reason)
		problem = fmt.Sprintf("codec server %s cannot decode some payloads: %s", name, st.Reason)
	}
	w.store.SetHealth(system.CodecHealth, problem == "", text)
	if problem != "" && problem != w.told {
		w.told = problem
		w.store.Report(problem)
	}
	if w.down && st.OK {
		w.told = problem
	}
	w.down = !st.OK
}

// codecWatch is what was shown of a codec server.
type codecWatch struct {
	store *Store
	c     *codec.Server
	told  string // the problem that was reported last
	down  bool
}
