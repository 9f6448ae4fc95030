package observe

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// maxSessions bounds the agents' sessions that are kept in mind; the ones of which nothing
// was heard for longest are forgotten.
const maxSessions = 1000

const positionFile = "position.json"

// position is up to where a spool was delivered. It is written after the deliveries, so
// that a crash repeats some and leaves none out.
type position struct {
	Active    int64               `json:"active"`             // number of the file that is written to
	Offsets   map[int64]int64     `json:"offsets"`            // delivered bytes, by file
	Sessions  map[string]*session `json:"sessions,omitempty"` // of agents, by their id
	Forwarded int64               `json:"forwarded"`          // records that were delivered
	Passed    int64               `json:"passed"`             // records that say nothing, and lines that are none
	At        time.Time           `json:"at,omitzero"`        // of the newest delivery
	Failure   string              `json:"failure,omitempty"`  // why nothing is delivered now
}

func newPosition() position {
	return position{Active: 1, Offsets: map[int64]int64{}, Sessions: map[string]*session{}}
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
	if err := json.Unmarshal(data, &p); err != nil || p.Active < 1 {
		// What was delivered is delivered again; the events' ids tell.
		return newPosition(), nil
	}
	if p.Offsets == nil {
		p.Offsets = map[int64]int64{}
	}
	if p.Sessions == nil {
		p.Sessions = map[string]*session{}
	}
	return p, nil
}

func (p *position) save(dir string) error {
	p.forget()
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	tmp := filepath.Join(dir, fmt.Sprintf(".%s-%d", positionFile, os.Getpid()))
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return os.Rename(tmp, filepath.Join(dir, positionFile))
}

func (p *position) forget() {
	over := len(p.Sessions) - maxSessions
	if over <= 0 {
		return
	}
	ids := slices.SortedFunc(maps.Keys(p.Sessions), func(a, b string) int { return cmp.Compare(p.Sessions[a].Last, p.Sessions[b].Last) })
	for _, id := range ids[:over] {
		delete(p.Sessions, id)
	}
}
