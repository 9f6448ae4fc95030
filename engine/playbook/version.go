package playbook

import (
	"time"

	"acescope/engine/ace"
)

// Version is the record of one merge: a line of a branch's log. Operations hold what
// was done, each with its fate and, for an ADD, the id given. Added, Updated, Removed and
// Tagged count the accepted ones; Bullets is the size afterwards. Where no operation had
// an effect, Hash equals Parent. A book that was stored as such has Hash, At and Bullets.
type Version struct {
	Hash       string          `json:"hash"`
	Parent     string          `json:"parent,omitempty"`
	Branch     string          `json:"branch,omitempty"`
	DeltaID    string          `json:"delta_id,omitempty"`
	At         time.Time       `json:"at"`
	TaskID     string          `json:"task_id,omitempty"`
	WorkflowID string          `json:"workflow_id,omitempty"`
	RunID      string          `json:"run_id,omitempty"`
	Rationale  string          `json:"rationale,omitempty"`
	Bullets    int             `json:"bullets"`
	Added      int             `json:"added,omitempty"`
	Updated    int             `json:"updated,omitempty"`
	Removed    int             `json:"removed,omitempty"`
	Tagged     int             `json:"tagged,omitempty"`
	Operations []ace.Operation `json:"operations,omitempty"`
}

// maxRationale is how much of a rationale a record keeps, in bytes.
const maxRationale = 64 << 10

func (v *Version) count() {
	for _, op := range v.Operations {
		if op.Fate != ace.FateAccepted {
			continue
		}
		switch op.Type {
		case ace.OpAdd:
			v.Added++
		case ace.OpUpdate:
			v.Updated++
		case ace.OpRemove:
			v.Removed++
		case ace.OpTag:
			v.Tagged++
		}
	}
}

func (v *Version) merged(seq int) Merged {
	return Merged{Before: v.Parent, After: v.Hash, Operations: v.Operations, Bullets: v.Bullets, Seq: seq}
}

// MergeRequest is a delta to merge into a branch. DeltaID names it for ever: merging it
// again gives the first result again. A zero At means now.
type MergeRequest struct {
	Branch     string
	DeltaID    string
	Operations []ace.Operation
	TaskID     string
	WorkflowID string
	RunID      string
	Rationale  string
	At         time.Time
}

// Merged is what a merge did: the head before and after it, every operation with its
// fate, and the size afterwards.
type Merged struct {
	Before     string
	After      string
	Operations []ace.Operation
	Bullets    int
	Seq        int // merges of the branch up to After
}

// Branch is a line of versions. Versions counts the merges since Start; At is the time
// of the newest, or of the start.
type Branch struct {
	Name     string    `json:"name"`
	Start    string    `json:"start"`
	Head     string    `json:"head"`
	Versions int       `json:"versions"`
	At       time.Time `json:"at"`
}
