package observe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"acescope/engine/agents/observe/spool"
)

// Quarantine describes the events of a spool that the server refused permanently.
type Quarantine struct {
	Quarantined int64  `json:"quarantined"`                 // events
	Reason      string `json:"quarantine_reason,omitempty"` // of the newest one
	File        string `json:"quarantine_file,omitempty"`
}

// ReadQuarantine reads the quarantine of the spool in dir. A missing one is empty.
func ReadQuarantine(dir string) (q Quarantine, err error) {
	path := filepath.Join(dir, spool.Quarantine)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return q, nil
	}
	if err != nil {
		return q, fmt.Errorf("quarantine of the spool: %w", err)
	}
	for line := range bytes.SplitSeq(data, []byte{'\n'}) {
		if rec, ok := spool.Parse(line); ok {
			var o Observation
			_ = json.Unmarshal(rec.Payload, &o)
			q = Quarantine{Quarantined: q.Quarantined + 1, Reason: o.Refused, File: path}
		}
	}
	return q, nil
}

// Advice says how to deliver the events of a quarantine again, or to discard them.
func (q Quarantine) Advice() string {
	return fmt.Sprintf("remove the cause and rename %s to %s to deliver them again, or delete the file",
		q.File, filepath.Join(filepath.Dir(q.File), spool.ExtraPrefix+"again"))
}
