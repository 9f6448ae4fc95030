package sources

import (
	"context"
	"sync"
	"time"
)

// Work is something long that is under way: a history that is read, a file that is
// searched. There are as many as are under way; each goes when it ends.
type Work struct {
	ID    int64
	Label string
	Done  int64
	Total int64 // 0 where nobody knows how much there is
	Since time.Time
}

// works keeps how to stop what is under way.
type works struct {
	mu    sync.Mutex
	last  int64
	stops map[int64]context.CancelFunc
}

// StartWork shows that something long begins. The context ends when somebody cancels the
// work, or with its parent. progress tells how far it is, and may be called often; end
// must be called once it is over.
func (s *Store) StartWork(ctx context.Context, label string) (working context.Context, progress func(done, total int64), end func()) {
	working, stop := context.WithCancel(ctx)
	s.works.mu.Lock()
	s.works.last++
	id := s.works.last
	if s.works.stops == nil {
		s.works.stops = map[int64]context.CancelFunc{}
	}
	s.works.stops[id] = stop
	s.works.mu.Unlock()
	s.update(func(snap *Snapshot) {
		snap.Work = append(append([]Work{}, snap.Work...), Work{ID: id, Label: label, Since: s.now()})
	})
	return working, func(done, total int64) { s.progress(id, done, total) }, func() { s.endWork(id) }
}

// CancelWork stops the work of an id. It goes from the snapshot when it has ended, so
// that one sees that it really did.
func (s *Store) CancelWork(id int64) {
	s.works.mu.Lock()
	stop := s.works.stops[id]
	s.works.mu.Unlock()
	if stop != nil {
		stop()
	}
}

func (s *Store) progress(id, done, total int64) {
	s.update(func(snap *Snapshot) {
		list := append([]Work{}, snap.Work...)
		for i := range list {
			if list[i].ID == id {
				list[i].Done, list[i].Total = done, total
			}
		}
		snap.Work = list
	})
}

func (s *Store) endWork(id int64) {
	s.works.mu.Lock()
	stop := s.works.stops[id]
	delete(s.works.stops, id)
	s.works.mu.Unlock()
	if stop == nil {
		return
	}
	stop()
	s.update(func(snap *Snapshot) {
		var rest []Work
		for _, w := range snap.Work {
			if w.ID != id {
				rest = append(rest, w)
			}
		}
		snap.Work = rest
	})
}

// SetInterval changes how often the list of runs is read.
func (s *Store) SetInterval(d time.Duration) {
	s.update(func(snap *Snapshot) { snap.Runs.Interval = d })
}
