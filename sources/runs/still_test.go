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
// key is pressed, and more rarely after a minute, that it is read at once after a key, and completely when a
// run starts, closes, or was deleted.
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
		for _, r := range []Run{simOpen(-1), simRun(-1)} {
			s.put(r)
			time.Sleep(every)
			synctest.Wait()
			if got := list.Value().Rows[0]; got.Status != r.Status {
				t.Errorf("the first run is %s and %s, want %s", got.RunID, got.Status, r.Status)
			}
		}
		time.Sleep(2 * time.Minute)
		var oldest time.Duration
		for range 30 {
			time.Sleep(time.Second)
			synctest.Wait()
			oldest = max(oldest, time.Since(list.Value().Loaded))
		}
		if idle := 5 * cluster.DefaultInterval; oldest < idle-time.Second || oldest > idle {
			t.Errorf("the list of an idle console became %s old", oldest)
		}
		s.put(simOpen(-2))
		time.Sleep(cluster.DefaultInterval)
		link.Used()
		synctest.Wait()
		if got := list.Value().Rows[0]; got.RunID != simOpen(-2).RunID {
			t.Errorf("after a key, the first run is %s, want the new one", got.RunID)
		}
		s.remove(50)
		time.Sleep(stillFor + every)
		synctest.Wait()
		if got := len(list.Value().Rows); got != 101 {
			t.Errorf("%d runs are listed, want 101", got)
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
