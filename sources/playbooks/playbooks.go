// Package playbooks reads branches and versions of playbooks, with the runs that wrote each version.
package playbooks

import (
	"time"

	"acescope/engine/learning/playbook"
)

// VersionWindow bounds the listed versions of a branch.
const VersionWindow = 600

// Playbooks holds the playbooks of this machine, as far as the ask requires.
type Playbooks struct {
	Missing  string // why there are no playbooks on this machine
	Err      string // why the last reading failed, completely or in part
	Updated  time.Time
	Branches []playbook.Branch // by name
	Branch   playbook.Branch   // selected branch; no name without branches
	// Versions holds the merges from number From on, oldest first, without their operations; Branch.Versions
	// is the total.
	From     int
	Versions []playbook.Version
	Version  *VersionDetail // selected version
	Compared *Pair          // requested pair, or nil
	Health   *VersionHealth
	Steps    map[RunKey]RunSteps // of the requested runs
}

// VersionRef names a version by its branch and number.
type VersionRef struct {
	Branch string
	Seq    int // number of merges; 0 is the start of the branch
}

// VersionDetail is a complete version: the operations of its merge, their changes, and each bullet with its
// history. It is shared and must not be changed.
type VersionDetail struct {
	VersionRef
	Hash string
	// with its operations; the start of a branch has only Hash, At and Bullets
	Record     playbook.Version
	Changes    *playbook.Difference // against the previous version
	HasBullets bool                 // the following fields are set
	Bullets    []playbook.BulletHistory
	Totals     playbook.Totals // of the branch up to this version
	Sizes      playbook.Sizes
}

// Pair is two versions and their difference, the older first if both are of one branch.
type Pair struct {
	A, B VersionRef
	Diff *playbook.Difference
	Err  string
}

// VersionHealth holds the findings about a version. Judged is the number of tasks with a known outcome.
type VersionHealth struct {
	VersionRef
	*playbook.Health
	Judged int
}

// RunKey names a run.
type RunKey struct{ WorkflowID, RunID string }

// RunSteps holds the history events of a run in which its curator proposed the operations and in which they
// were merged; 0 if there is no such event.
type RunSteps struct {
	Curator int64  `json:"curator_event,omitempty"`
	Persist int64  `json:"persist_event,omitempty"`
	Err     string `json:"-"`
}

// Ask says what to read of the playbooks. Negative numbers mean the newest.
type Ask struct {
	Branch  string // "" for the one that changed last
	Seq     int    // selected version
	Around  int    // list versions around this one
	Bullets bool   // of the selected version, with their histories
	Compare bool   // the pair A, B
	A, B    VersionRef
	Health  bool
	Run     RunKey // find the steps of this run
}
