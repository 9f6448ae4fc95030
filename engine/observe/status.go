package observe

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"acescope/engine/observe/spool"
)

// Status is how a spool stands.
type Status struct {
	Bytes      int64     // of all its files
	Waiting    int64     // records that were not delivered yet
	Dropped    int64     // records that did not fit
	Forwarded  int64     // records that were delivered
	Passed     int64     // records that told nothing, and lines that are no record
	At         time.Time // of the newest delivery
	Failure    string    // why nothing is delivered now
	Forwarding bool      // a process forwards it
}

// StatusOf looks at a spool. One that is not there is empty.
func StatusOf(dir string) (Status, error) {
	p, err := readPosition(dir)
	if err != nil {
		return Status{}, err
	}
	s := Status{Forwarded: p.Forwarded, Passed: p.Passed, At: p.At, Failure: p.Failure}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return s, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		s.Bytes += info.Size()
		switch {
		case e.Name() == spool.Dropped:
			s.Dropped = info.Size()
		case strings.HasPrefix(e.Name(), spool.Extra):
			s.Waiting++
		}
	}
	r := reader{dir: dir, record: func(spot, spool.Record) { s.Waiting++ }, broken: func(spot) { s.Waiting++ }, looking: true}
	defer r.close()
	if err := r.begin(p); err != nil {
		return s, err
	}
	s.Forwarding = isLocked(dir)
	for _, f := range r.files {
		for more := true; more; {
			if more, err = r.readFile(f); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

// isLocked tells whether a forwarder works on the spool.
func isLocked(dir string) bool {
	f, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		return false
	}
	defer f.Close()
	return !spool.Lock(f)
}
