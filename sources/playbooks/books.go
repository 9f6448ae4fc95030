// Package playbooks reads branches and versions of playbooks, with the runs that wrote each version.
package playbooks

import (
	"time"

	"acescope/engine/learning/playbook"
)

// What a snapshot holds of playbooks is made by engine/learning/playbook. These are its types under
// names that a screen may use.
type (
	Bullet       = playbook.Bullet
	BookVersion  = playbook.Version
	BookBranch   = playbook.Branch
	BulletLife   = playbook.BulletHistory
	BulletTouch  = playbook.BulletChange
	BookSource   = playbook.Source
	BookDiff     = playbook.Difference
	BulletChange = playbook.Change
	WordHunk     = playbook.Hunk
	BookHealth   = playbook.Health
	BookFinding  = playbook.Finding
	BookTotals   = playbook.Totals
	BookSizes    = playbook.Sizes
)

// Kinds of a [WordHunk].
const (
	HunkAdded   = playbook.HunkAdded
	HunkRemoved = playbook.HunkRemoved
)

// Severities of a [BookFinding].
const (
	FindingBad    = playbook.SeverityError
	FindingDoubt  = playbook.SeverityWarning
	FindingRemark = playbook.SeverityInfo
)

// WordHunks is what differs between two texts.
func WordHunks(before, after string) []WordHunk { return playbook.Words(before, after) }

// VersionWindow is how many versions of a branch a snapshot lists at most.
const VersionWindow = 600

// Books is what is known of the playbooks here, as far as somebody asked for it.
type Books struct {
	Missing  string // why there are none here, "" where there are
	Err      string // why the last reading failed, or what of it
	Updated  time.Time
	Branches []BookBranch // by name
	Branch   BookBranch   // that is shown, without a name where there is none
	// Versions holds the merges from number From on, oldest first, without their
	// operations; Branch.Versions counts all there are.
	From     int
	Versions []BookVersion
	Version  *BookAt   // the chosen version
	Compared *BookPair // the pair that was asked for, nil where none was
	Health   *HealthOf
	Steps    map[RunKey]RunSteps // of the runs that were asked for
}

// BookMark names a version by its branch and number.
type BookMark struct {
	Branch string
	Seq    int // merges up to it; 0 is the branch's start
}

// BookAt is one version whole: what its merge did, what that changed, and each bullet with
// its past. It is shared: nothing of it is changed.
type BookAt struct {
	BookMark
	Hash    string
	Record  BookVersion // with its operations; only Hash, At and Bullets of a start
	Changes *BookDiff   // against the version before
	Blamed  bool        // what follows was asked for and read
	Bullets []BulletLife
	Totals  BookTotals // of the branch up to it
	Sizes   BookSizes
}

// BookPair is two versions and what differs, the older first where they are of one branch.
type BookPair struct {
	A, B BookMark
	Diff *BookDiff
	Err  string
}

// HealthOf is the findings on a version. Judged counts the tasks whose outcome was known.
type HealthOf struct {
	BookMark
	*BookHealth
	Judged int
}

// RunKey names a run.
type RunKey struct{ WorkflowID, RunID string }

// RunSteps says which history events of a run told that its curator proposed the
// operations, and that they were merged; 0 where no event does.
type RunSteps struct {
	Curator int64
	Persist int64
	Err     string
}

// BookWish is what a screen wants to know of playbooks. Numbers below 0 mean the newest.
type BookWish struct {
	Branch  string // "" for the one that changed last
	Seq     int    // the chosen version
	Around  int    // list versions around this one
	Bullets bool   // the chosen version's, with their pasts
	Compare bool   // the pair A, B
	A, B    BookMark
	Health  bool
	Run     RunKey // find the steps of this run
}
