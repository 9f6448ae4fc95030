package runs

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"acescope/sources/cluster"
)

// TestWatchesNewestRunOnly checks that the list reads one run every other interval while nothing runs and no
// key is pressed, that its age stays small, and that it is read completely when a run starts, closes, or was
// deleted.
func TestWatchesNewestRunOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(simRuns(100)...)
		link := cluster.NewLink()
		link.Deps = cluster.Deps{Client: s, Namespace: "ace-dev"}
		link.SetConnection(cluster.Connection{State: cluster.ConnReady})
		list := NewListFeed(link)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { list.Run(ctx) })
		defer wg.Wait()
		defer cancel()
		const every = 2 * cluster.DefaultInterval
		time.Sleep(15 * time.Second)
		rows := s.sent()
		time.Sleep(5 * every)
		synctest.Wait()
		if got := s.sent() - rows; got != 5 {
			t.Errorf("%d rows were read in %s, want 5", got, 5*every)
		}
		if age := time.Since(list.Value().Loaded); age > every {
			t.Errorf("the list is %s old", age)
		}
		for name, runs := range map[string][]Run{"started": {simOpen(-1)}, "closed": {simRun(-1)}} {
			s.put(runs...)
			time.Sleep(every)
			synctest.Wait()
			if got := list.Value().Rows[0]; got.Status != runs[0].Status {
				t.Errorf("the first run is %s, want the one that has %s", got.RunID, name)
			}
		}
		s.remove(50)
		time.Sleep(stillFor + every)
		synctest.Wait()
		if got := len(list.Value().Rows); got != 100 {
			t.Errorf("%d runs are listed, want 100", got)
		}
	})
}

// sent returns how many rows the server has returned.
func (s *sim) sent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows
}

// remove deletes a run.
func (s *sim) remove(at int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = append(s.runs[:at:at], s.runs[at+1:]...)
}
