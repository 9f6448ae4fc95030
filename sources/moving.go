package sources

import "acescope/sources/cluster"

// LoadMore holds more of the older runs, if there are any, and LoadNewer of the newer
// ones. Whoever leans on a key gets one part for each time that one came.
func (s *Store) LoadMore() { s.wish(func(w *listWishes) { w.older, w.newer = true, false }) }

// LoadNewer is the other way.
func (s *Store) LoadNewer() { s.wish(func(w *listWishes) { w.newer, w.older = true, false }) }

// LoadFirst goes back to the newest runs.
func (s *Store) LoadFirst() { s.wish(func(w *listWishes) { *w = listWishes{first: true, stop: true} }) }

// LoadLast walks to the oldest run, however far that is; the list's Walking tells how far
// it has come, until StopWalk ends it where it is.
func (s *Store) LoadLast() { s.wish(func(w *listWishes) { *w = listWishes{last: true} }) }

// StopWalk ends a walk to the oldest run where it is.
func (s *Store) StopWalk() { s.wish(func(w *listWishes) { *w = listWishes{stop: true} }) }

func (s *Store) wish(change func(*listWishes)) {
	s.mu.Lock()
	change(&s.wanted)
	s.mu.Unlock()
	cluster.Signal(s.wake)
}
