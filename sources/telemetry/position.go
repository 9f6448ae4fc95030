package telemetry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"acescope/sources/runs"
)

// position says up to which closed run a namespace is exported. The zero value is unknown.
type position struct {
	// Closed is the newest close of a run, by the server's clock.
	Closed time.Time `json:"closed"`
	// Runs are the closes of the exported runs, by run ID, that the next reading lists again.
	Runs map[string]time.Time `json:"runs"`

	kept int // runs that the last cleanup kept
}

// add adds an exported run, and forgets those that are not listed again.
func (p *position) add(r runs.Run) {
	if p.Runs == nil {
		p.Runs = map[string]time.Time{}
	}
	p.Runs[r.RunID] = r.Close
	if !r.Close.After(p.Closed) {
		return
	}
	p.Closed = r.Close
	if len(p.Runs) < 2*p.kept {
		return
	}
	for id, closed := range p.Runs {
		if closed.Before(p.Closed.Add(-overlap)) {
			delete(p.Runs, id)
		}
	}
	p.kept = max(len(p.Runs), batchSize)
}

// maxSkew is how far the server's clock may be behind that of this machine.
const maxSkew = 10 * time.Minute

// loadPosition reads a position. Without a file, it is maxSkew ago: only runs that close from now on are
// exported, and some that closed just before. The error says which runs are omitted.
func loadPosition(file string, now time.Time) (position, error) {
	var p position
	fresh := position{Closed: now.Add(-maxSkew)}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return fresh, fmt.Errorf("position of telemetry: %w; it continues from now", err)
	}
	if oldest := now.Add(-maxCatchUp); p.Closed.Before(oldest) {
		return position{Closed: oldest}, fmt.Errorf("runs that closed from %s to %s are omitted",
			p.Closed.Format(time.RFC3339), oldest.Format(time.RFC3339))
	}
	return p, nil
}
