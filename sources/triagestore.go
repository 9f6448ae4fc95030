package sources

import (
	"context"
	"maps"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/triage"
)

// Rhythm of the triage: how often it is published while it is read, and how long it rests
// between two scans; longer, the more open runs each scan asks.
const (
	triagePublish = 200 * time.Millisecond
	triageRest    = 5 * time.Second
	restPerOpen   = 50 * time.Millisecond
)

// triageWish is what the user wants of the triage, and what was read for it. Everything
// is under the store's lock, but the scanner belongs to the reader.
type triageWish struct {
	window  int
	since   time.Duration
	stop    context.CancelFunc // of the scan under way
	scanner *triage.Scanner
}

// SetTriageWindow looks at so many ended runs.
func (s *Store) SetTriageWindow(ended int) {
	s.mu.Lock()
	s.triage.window = max(1, min(ended, triage.MaxTriage))
	s.mu.Unlock()
	s.again(PartTriage)
}

// SetTriageSince looks at runs only that ended so long ago at most, 0 for all.
func (s *Store) SetTriageSince(d time.Duration) {
	s.mu.Lock()
	s.triage.since = max(d, 0)
	s.mu.Unlock()
	s.again(PartTriage)
}

// ScanTriage scans now.
func (s *Store) ScanTriage() { s.again(PartTriage) }

// StopTriage ends the scan under way; what was read stays, and nothing more is read until
// it is asked for.
func (s *Store) StopTriage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.triage.stop != nil {
		s.triage.stop()
	}
}

// readTriage scans the runs of the list's query, and again after a rest.
func (s *Store) readTriage(ctx context.Context, d cluster.Deps) {
	for ctx.Err() == nil {
		sc := s.triageScanner(d)
		if !s.scanTriage(ctx, sc) {
			<-ctx.Done()
			return
		}
		rest := triageRest + time.Duration(len(sc.Facts.Open))*restPerOpen
		for s.rest(ctx, rest) == nil && s.Snapshot().Runs.Paused {
			rest = time.Second
		}
	}
}

func (s *Store) rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// triageScanner is the scanner of what is wanted now. What another one read of closed
// runs is still true.
func (s *Store) triageScanner(d cluster.Deps) *triage.Scanner {
	s.mu.Lock()
	defer s.mu.Unlock()
	want := triage.TriageOptions{Namespace: d.Namespace, Query: s.query, Window: s.triage.window, Since: s.triage.since}
	before := s.triage.scanner
	next := triage.NewScanner(d.Client, want)
	if before != nil {
		if before.O.Query == next.O.Query && before.O.Window == next.O.Window && before.O.Since == next.O.Since {
			return before
		}
		maps.Copy(next.Facts.Ends, before.Facts.Ends)
		maps.Copy(next.Facts.Notes, before.Facts.Notes)
		maps.Copy(next.Facts.Steps, before.Facts.Steps)
		maps.Copy(next.Since, before.Since)
	}
	s.triage.scanner = next
	return next
}

// scanTriage scans once and publishes as it goes; false where a person stopped it.
func (s *Store) scanTriage(ctx context.Context, sc *triage.Scanner) bool {
	scan, stop := context.WithCancel(ctx)
	defer stop()
	s.mu.Lock()
	s.triage.stop = stop
	s.mu.Unlock()
	var told time.Time
	sc.Tell = func(f *triage.Facts) {
		if now := time.Now(); scan.Err() == nil && now.Sub(told) >= triagePublish {
			told = now
			s.publishTriage(f, sc.State, "")
		}
	}
	err := sc.Scan(scan)
	if ctx.Err() != nil {
		return true
	}
	stopped := scan.Err() != nil
	sc.State.Stopped = stopped
	why := ""
	if err != nil && !stopped {
		why = cluster.PlainError(err)
	}
	s.publishTriage(&sc.Facts, sc.State, why)
	return !stopped
}

func (s *Store) publishTriage(f *triage.Facts, state triage.Scan, err string) {
	t := f.Analyse(s.now())
	t.Scan, t.Err = state, err
	s.update(func(snap *Snapshot) { snap.Triage = t })
}
