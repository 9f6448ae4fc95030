package playbook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"acescope/engine/ace"
	"acescope/engine/internal/durable"

	"github.com/gofrs/flock"
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
// Operations have their outcomes and, for an ADD, the new ID. Added, Updated, Removed and
// Tagged count accepted operations; Bullets is the size after the merge. If no operation had
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
	Operations []ace.Operation `json:"operations,omitempty"`
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
}

// Branch returns the current state of a branch.
func (s *Store) Branch(name string) (Branch, error) {
	b, err := s.openBranch(name)
	if err != nil {
		return Branch{}, err
	}
	return b.snapshot().describe(), nil
}

// Branches returns the branches by name. It returns the readable branches together with an
// error that names the others.
func (s *Store) Branches() ([]Branch, error) {
	branches, err := s.readBranches()
	list := make([]Branch, len(branches))
	for i, b := range branches {
		list[i] = b.snapshot().describe()
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
	b, err := s.openBranch(name)
	if err != nil {
		return "", err
	}
	x := b.snapshot()
	switch {
	case seq == 0:
		return x.header.Start, nil
	case seq < 0 || seq > len(x.entries):
		return "", fmt.Errorf("%w: branch %q has versions 0 to %d, not %d", ErrNotFound, name, len(x.entries), seq)
	}
	return x.entries[seq-1].hash, nil
}

// Page returns the merges of a branch from one number to another (1-based, inclusive), oldest
// first. Numbers beyond the ends are allowed.
func (s *Store) Page(name string, from, to int) ([]Version, error) {
	b, err := s.openBranch(name)
	if err != nil {
		return nil, err
	}
	return b.versions(b.snapshot().span(from-1, to))
}

// Start creates a branch that begins at a version, or at the empty playbook if hash is "",
// and returns its head. It does not change an existing branch.
func (s *Store) Start(ctx context.Context, name, hash string) (head string, err error) {
	b, err := s.branch(name)
	if err != nil {
		return "", err
	}
	unlock, err := b.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	err = b.refresh()
	if err == nil {
		return b.snapshot().head(), nil
	}
	if !errors.Is(err, ErrNoBranch) {
		return "", err
	}
	if err := s.create(b, hash); err != nil {
		return "", fmt.Errorf("start playbook branch %q: %w", name, err)
	}
	err = b.refresh()
	return b.snapshot().head(), err
}

// create writes the log of a new branch. The branch must be locked.
func (s *Store) create(b *branch, hash string) error {
	book := &Playbook{}
	var err error
	if hash != "" {
		if book, err = s.Get(hash); err != nil {
			return err
		}
	}
	if hash, err = s.Put(book); err != nil {
		return err
	}
	line, err := encodeLine(logHeader{Format: logFormat, Branch: b.name, Start: hash, At: time.Now().UTC()})
	if err != nil {
		return err
	}
	return durable.WriteFile(b.path, filepath.Join(s.dir, tmpDir), line, true)
}

// Merge applies the operations of a delta to the newest head of a branch, makes the result the
// head and returns its record. The request sets Branch, DeltaID, Operations and, except for the
// hash and number, the source; a zero At means now. If the delta was merged before, Merge
// returns the first record. A delta without operations leaves no record.
func (s *Store) Merge(ctx context.Context, request Version) (Version, error) {
	if request.DeltaID == "" {
		return Version{}, errors.New("merge playbook: the delta has no ID")
	}
	b, err := s.branch(request.Branch)
	if err != nil {
		return Version{}, err
	}
	unlock, err := b.lock(ctx)
	if err != nil {
		return Version{}, err
	}
	defer unlock()
	if err := b.refresh(); err != nil {
		return Version{}, err
	}
	if e, ok := b.delta(request.DeltaID); ok {
		versions, err := b.versions([]entry{e})
		if err != nil {
			return Version{}, err
		}
		return versions[0], nil
	}
	return s.merge(b, request)
}

// merge requires that the branch is locked and refreshed.
func (s *Store) merge(b *branch, v Version) (Version, error) {
	x := b.snapshot()
	book, err := s.head(b, x)
	if err != nil {
		return Version{}, err
	}
	v.Hash, v.Parent, v.Bullets = x.head(), x.head(), len(book.Bullets)
	if len(v.Operations) == 0 {
		v.Seq = len(x.entries)
		return v, nil
	}
	after, done := Apply(book, v.Operations)
	content := after.Canonical()
	v.Hash, v.Bullets, v.Operations = digest(content), len(after.Bullets), done
	v.Rationale = strings.ToValidUTF8(cut(v.Rationale, maxRationale), "�")
	if v.At.IsZero() {
		v.At = time.Now()
	}
	v.At = v.At.UTC()
	v.count()
	stored := v
	stored.Branch, stored.Seq = "", 0
	line, err := encodeLine(stored)
	if err == nil {
		err = appendLine(b.path, x.size, line)
	}
	if err != nil {
		b.forget()
		return Version{}, fmt.Errorf("merge into playbook branch %q: %w", b.name, err)
	}
	if v.Hash != v.Parent {
		s.books.Put(v.Hash, after)
	}
	v.Seq = len(x.entries) + 1
	if v.Seq%snapshotEvery == 0 {
		// The merge is done. If this fails, the version is rebuilt from an earlier one.
		_ = s.writeBook(v.Hash, content, false)
	}
	return v, b.refresh()
}

// head returns the playbook at the head of a branch.
func (s *Store) head(b *branch, x *logIndex) (*Playbook, error) {
	if book, ok := s.books.Get(x.head()); ok {
		return book, nil
	}
	if len(x.entries) == 0 {
		return s.Get(x.head())
	}
	return s.rebuild(b, x.entries[len(x.entries)-1])
}

// rebuild reconstructs a version from the nearest earlier whole playbook.
func (s *Store) rebuild(b *branch, e entry) (*Playbook, error) {
	from := e.index // the first merge to replay
	var book *Playbook
	x := b.snapshot()
	for ; from > 0; from-- {
		prior := x.entries[from-1].hash
		if book, _ = s.books.Get(prior); book == nil && from%snapshotEvery == 0 {
			book, _ = s.readBook(prior) // if missing or damaged, use an earlier one
		}
		if book != nil {
			break
		}
	}
	if book == nil {
		var err error
		if book, err = s.readBook(x.header.Start); err != nil {
			return nil, fmt.Errorf("playbook branch %q: start: %w", b.name, err)
		}
	}
	versions, err := b.versions(x.entries[from : e.index+1])
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		book = replay(book, v.Operations)
	}
	if book.Hash() != e.hash {
		return nil, fmt.Errorf("%w: %s, line %d: its operations do not produce version %s",
			ErrCorrupt, b.path, e.index+2, e.hash)
	}
	s.books.Put(e.hash, book)
	return book, nil
}

// branch is the state of one branch in this process.
type branch struct {
	name string
	path string

	mu  sync.Mutex
	log logIndex
}

// branch returns the handle of a branch, which need not exist.
func (s *Store) branch(name string) (*branch, error) {
	base, err := fileName(name)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.branches[base]
	if !ok {
		b = &branch{name: name, path: filepath.Join(s.dir, branchesDir, base+logSuffix)}
		s.branches[base] = b
	}
	return b, nil
}

// openBranch returns the up-to-date handle of an existing branch.
func (s *Store) openBranch(name string) (*branch, error) {
	b, err := s.branch(name)
	if err != nil {
		return nil, err
	}
	return b, b.refresh()
}

// readBranches returns the up-to-date handles of all readable branches, and an error for the
// others.
func (s *Store) readBranches() ([]*branch, error) {
	logs, err := os.ReadDir(filepath.Join(s.dir, branchesDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("playbook branches: %w", err)
	}
	var branches []*branch
	var errs []error
	for _, e := range logs {
		base, ok := strings.CutSuffix(e.Name(), logSuffix)
		if !ok {
			continue
		}
		b, err := s.branchOfFile(base)
		if err == nil {
			err = b.refresh()
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		branches = append(branches, b)
	}
	return branches, errors.Join(errs...)
}

// branchOfFile returns the branch of a log file. The header of the log has its name.
func (s *Store) branchOfFile(base string) (*branch, error) {
	s.mu.Lock()
	b, ok := s.branches[base]
	s.mu.Unlock()
	if ok {
		return b, nil
	}
	name, err := readBranchName(filepath.Join(s.dir, branchesDir, base+logSuffix))
	if err != nil {
		return nil, err
	}
	return s.branch(name)
}

// lock excludes merges of all goroutines and processes until the returned function is called.
func (b *branch) lock(ctx context.Context) (func(), error) {
	file := flock.New(strings.TrimSuffix(b.path, logSuffix)+lockSuffix, flock.SetPermissions(0o600))
	if _, err := file.TryLockContext(ctx, lockRetry); err != nil {
		return nil, fmt.Errorf("playbook branch %q: lock %s: %w", b.name, file.Path(), err)
	}
	return func() { _ = file.Close() }, nil // closing the file releases the lock in any case
}

// refresh reads the merges of other processes. The error is ErrNoBranch if the log does not
// exist.
func (b *branch) refresh() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.log.update(b.path, b.name)
	if errors.Is(err, errNoLog) {
		return fmt.Errorf("%w: %q; start it first", ErrNoBranch, b.name)
	}
	if err != nil {
		return fmt.Errorf("playbook branch %q: %w", b.name, err)
	}
	return nil
}

// forget discards the index after a failed write: refresh may have read the line that was
// then truncated.
func (b *branch) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = logIndex{}
}

// snapshot returns the log as of the last refresh, which later merges do not change. Its maps
// must not be used.
func (b *branch) snapshot() *logIndex {
	b.mu.Lock()
	defer b.mu.Unlock()
	return new(b.log)
}

func (b *branch) find(hash string) (entry, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := b.log.made[hash]
	if !ok {
		return entry{}, false
	}
	return b.log.entries[i], true
}

// delta returns the entry of a delta, and false if it was not merged.
func (b *branch) delta(id string) (entry, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := b.log.deltas[id]
	if !ok {
		return entry{}, false
	}
	return b.log.entries[i], true
}

// hashes adds the versions of the branch that begin with the prefix.
func (b *branch) hashes(prefix string, to map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if strings.HasPrefix(b.log.header.Start, prefix) {
		to[b.log.header.Start] = true
	}
	for hash := range b.log.made {
		if strings.HasPrefix(hash, prefix) {
			to[hash] = true
		}
	}
}
