package playbook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"acescope/engine/ace"
	"acescope/engine/store/bucket"
)

const (
	// lockRetry is the interval between attempts to lock a branch.
	lockRetry = time.Millisecond
	// snapshotEvery is the number of merges between two whole playbooks on disk.
	snapshotEvery = 32
	// maxRationale is the number of bytes of a rationale that a record keeps.
	maxRationale = 64 << 10
)

// Source identifies a merge and the run that requested it. Seq is the number of the merge in
// its branch, from 1.
type Source struct {
	Branch     string    `json:"branch,omitempty"`
	Seq        int       `json:"seq,omitempty"`
	Hash       string    `json:"hash"`
	At         time.Time `json:"at"`
	TaskID     string    `json:"task_id,omitempty"`
	WorkflowID string    `json:"workflow_id,omitempty"`
	RunID      string    `json:"run_id,omitempty"`
	Rationale  string    `json:"rationale,omitempty"`
}

// Version is the record of one merge: a line of a branch's log, which lacks Branch and Seq.
// Operations have their outcomes and, for an ADD, the new ID. Added, Updated, Removed, Tagged and
// Merged count accepted operations; Bullets is the size after the merge. If no operation had
// an effect, Hash equals Parent.
type Version struct {
	Source
	Parent     string          `json:"parent,omitempty"`
	DeltaID    string          `json:"delta_id,omitempty"`
	Bullets    int             `json:"bullets"`
	Added      int             `json:"added,omitempty"`
	Updated    int             `json:"updated,omitempty"`
	Removed    int             `json:"removed,omitempty"`
	Tagged     int             `json:"tagged,omitempty"`
	Merged     int             `json:"merged,omitempty"`
	Operations []ace.Operation `json:"operations,omitempty"`
	Imported   *Imported       `json:"imported,omitempty"`
	// Tokens bounds the playbook of a request, see [ApplyWithin].
	Tokens int `json:"-"`
}

func (v *Version) count() {
	for _, op := range v.Operations {
		if op.Outcome != ace.OutcomeAccepted {
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
		case ace.OpMerge:
			v.Merged++
		}
	}
}

// Branch is a named sequence of versions. Versions counts the merges since Start; At is the
// time of the newest merge or of the start.
type Branch struct {
	Name     string    `json:"name"`
	Start    string    `json:"start"`
	Head     string    `json:"head"`
	Versions int       `json:"versions"`
	At       time.Time `json:"at"`
	Origin   *Origin   `json:"imported,omitempty"`
}

// Branch returns the current state of a branch.
func (s *Store) Branch(name string) (Branch, error) {
	x, err := s.logs.of(name)
	if err != nil {
		return Branch{}, err
	}
	return x.describe(), nil
}

// Branches returns the branches by name. It returns the readable branches together with an
// error that names the others.
func (s *Store) Branches() ([]Branch, error) {
	logs, err := s.logs.all()
	list := make([]Branch, len(logs))
	for i, x := range logs {
		list[i] = x.describe()
	}
	slices.SortFunc(list, func(a, b Branch) int { return cmp.Compare(a.Name, b.Name) })
	return list, err
}

// Head returns the newest version of a branch, and false if the branch does not exist.
func (s *Store) Head(name string) (hash string, ok bool, err error) {
	d, err := s.Branch(name)
	if errors.Is(err, ErrNoBranch) {
		return "", false, nil
	}
	return d.Head, err == nil, err
}

// At returns the version of a branch after seq merges; 0 is its start.
func (s *Store) At(name string, seq int) (hash string, err error) {
	x, err := s.logs.of(name)
	if err != nil {
		return "", err
	}
	if seq < 0 || seq > len(x.entries) {
		return "", fmt.Errorf("%w: branch %q has versions 0 to %d, not %d", ErrNotFound, name, len(x.entries),
			seq)
	}
	return x.at(seq), nil
}

// Page returns the merges of a branch from one number to another (1-based, inclusive), oldest
// first. Numbers beyond the ends are allowed.
func (s *Store) Page(name string, from, to int) ([]Version, error) {
	x, err := s.logs.of(name)
	if err != nil {
		return nil, err
	}
	to = min(to, len(x.entries))
	return x.versions(min(max(from-1, 0), to), to)
}

// Start creates a branch that begins at a version, or at the empty playbook if hash is "",
// and returns its head. It does not change an existing branch.
func (s *Store) Start(ctx context.Context, name, hash string) (head string, err error) {
	unlock, err := s.logs.lock(ctx, name)
	if err != nil {
		return "", err
	}
	defer unlock()
	x, err := s.current(ctx, name)
	if errors.Is(err, ErrNoBranch) {
		if err := s.create(ctx, name, hash); err != nil {
			return "", fmt.Errorf("start playbook branch %q: %w", name, err)
		}
		x, err = s.current(ctx, name)
	}
	if err != nil {
		return "", err
	}
	return x.head(), nil
}

// current returns the log of a branch, with what other machines have added. The branch must be locked.
func (s *Store) current(ctx context.Context, name string) (*branchLog, error) {
	x, _, err := s.currentWithin(ctx, name, 0)
	return x, err
}

// currentWithin is like current. It reads at most limit writes of other machines, or all for 0, and returns
// their number.
func (s *Store) currentWithin(ctx context.Context, name string, limit int) (x *branchLog, read int,
	err error) {
	if s.shared != nil {
		branch, err := s.shared.branchKey(name)
		if err == nil {
			read, err = s.shared.pull(ctx, branch, limit)
		}
		if err != nil {
			return nil, read, err
		}
	}
	x, err = s.logs.of(name)
	return x, read, err
}

// create writes the log of a new branch. The branch must be locked.
func (s *Store) create(ctx context.Context, name, hash string) error {
	book := &Playbook{}
	var err error
	if hash != "" {
		if book, err = s.Get(ctx, hash); err != nil {
			return err
		}
	}
	if hash, err = s.Put(ctx, book); err != nil {
		return err
	}
	line, err := encodeLine(logHeader{Format: logFormat, Branch: name, Start: hash, At: time.Now().UTC()})
	if err != nil {
		return err
	}
	err = s.appendLines(ctx, name, nil, [][]byte{line})
	if errors.Is(err, bucket.ErrExists) {
		return nil // another machine was first
	}
	return err
}

// Merge applies the operations of a delta to the newest head of a branch, makes the result the
// head and returns its record. The request sets Branch, DeltaID, Operations and, except for the
// hash and number, the source; a zero At means now. If the delta was merged before, Merge
// returns the first record. A delta without operations leaves no record.
func (s *Store) Merge(ctx context.Context, request Version) (Version, error) {
	if request.DeltaID == "" {
		return Version{}, errors.New("merge playbook: the delta has no ID")
	}
	r := &mergeRequest{Version: request}
	err := s.mergeTogether(ctx, r)
	if err == nil && s.shared != nil && r.content != nil {
		err = s.shared.putBook(ctx, r.record.Hash, r.content)
	}
	if err != nil {
		return Version{}, fmt.Errorf("merge into playbook branch %q: %w", request.Branch, err)
	}
	return r.record, nil
}
