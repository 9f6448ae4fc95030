package observe

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"acescope/engine/agents/observe/spool"
	"acescope/engine/store/durable"
)

// maxSessions bounds the agents' sessions that are remembered. The ones without events for the
// longest time are forgotten.
const maxSessions = 1000

const positionFile = "position.json"

// position is how far a spool was delivered. It is saved after the deliveries, so a crash repeats
// some of them and skips none.
type position struct {
	Active    int64                   `json:"active"`             // number of the active file
	Offsets   map[int64]int64         `json:"offsets"`            // delivered bytes, by file
	Sessions  map[string]*hookSession `json:"sessions,omitempty"` // of agents, by id
	Forwarded int64                   `json:"forwarded"`          // delivered records
	// records without events, and malformed lines
	Ignored int64     `json:"passed"`
	At      time.Time `json:"at,omitzero"`       // of the newest delivery
	Failure string    `json:"failure,omitempty"` // why deliveries fail now
}

func newPosition() position {
	return position{Active: 1, Offsets: map[int64]int64{}, Sessions: map[string]*hookSession{}}
}

func readPosition(dir string) (position, error) {
	p := newPosition()
	data, err := os.ReadFile(filepath.Join(dir, positionFile))
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	if json.Unmarshal(data, &p) != nil || p.Active < 1 || p.Offsets == nil || p.Sessions == nil {
		return newPosition(), nil // deliver again; the events' ids identify duplicates
	}
	return p, nil
}

func (p *position) save(dir string) error {
	forgetSessions(p.Sessions)
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(dir, positionFile), dir, data, false)
}

// forgetSessions removes the oldest sessions beyond maxSessions.
func forgetSessions(sessions map[string]*hookSession) {
	excess := len(sessions) - maxSessions
	if excess <= 0 {
		return
	}
	ids := slices.SortedFunc(maps.Keys(sessions), func(a, b string) int {
		return cmp.Compare(sessions[a].Last, sessions[b].Last)
	})
	for _, id := range ids[:excess] {
		delete(sessions, id)
	}
}

// Status is the status of a spool.
type Status struct {
	Bytes      int64     `json:"spool_bytes"` // of all files
	Waiting    int64     `json:"waiting"`     // undelivered records
	Dropped    int64     `json:"dropped"`     // records that did not fit
	Forwarded  int64     `json:"forwarded"`   // delivered records
	Ignored    int64     `json:"ignored"`     // records without events, and malformed lines
	At         time.Time `json:"last_forwarded,omitzero"`
	Failure    string    `json:"failure,omitempty"` // why deliveries fail now
	Forwarding bool      `json:"forwarding"`        // a forwarder is running
	Quarantine
}

// ReadStatus returns the status of the spool in dir. A missing spool is empty.
func ReadStatus(dir string) (Status, error) {
	p, err := readPosition(dir)
	if err != nil {
		return Status{}, err
	}
	s := Status{Forwarded: p.Forwarded, Ignored: p.Ignored, At: p.At, Failure: p.Failure}
	if s.Quarantine, err = ReadQuarantine(dir); err != nil {
		return s, err
	}
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
		if e.Name() == spool.Dropped {
			s.Dropped = info.Size()
		}
	}
	r := reader{
		dir: dir, readOnly: true,
		record:    func(location, spool.Record) { s.Waiting++ },
		malformed: func(location) { s.Waiting++ },
	}
	defer r.close()
	if err := r.open(p); err != nil {
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

// isLocked reports whether a forwarder works on the spool.
func isLocked(dir string) bool {
	f, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		return false
	}
	defer f.Close()
	return !spool.Lock(f)
}
