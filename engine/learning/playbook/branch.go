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

// Version is the record of one merge: a line of a branch's log. Operations have their
// outcomes and, for an ADD, the new ID. Added, Updated, Removed and Tagged count accepted
// operations; Bullets is the size after the merge. If no operation had an effect, Hash equals
// Parent. A playbook stored with [Store.Put] has only Hash, At and Bullets.
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

func (v *Version) result(seq int) MergeResult {
	return MergeResult{Before: v.Parent, After: v.Hash, Operations: v.Operations, Bullets: v.Bullets, Seq: seq}
}

// MergeRequest is a delta to merge into a branch. Merging the same DeltaID again returns the
// first result. A zero At means now.
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

// MergeResult is the result of a merge: the head before and after it, the operations with
// their outcomes, and the size after it.
type MergeResult struct {
	Before     string
	After      string
	Operations []ace.Operation
	Bullets    int
	Seq        int // merges of the branch up to After
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
	return b.describe(), nil
}

// Branches returns the branches by name. It returns the readable branches together with an
// error that names the others.
func (s *Store) Branches() ([]Branch, error) {
	branches, err := s.readBranches()
	list := make([]Branch, len(branches))
	for i, b := range branches {
		list[i] = b.describe()
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
	d := b.describe()
	if seq == 0 {
		return d.Start, nil
	}
	entries := b.span(seq-1, seq)
	if seq < 0 || len(entries) == 0 {
		return "", fmt.Errorf("%w: branch %q has versions 0 to %d, not %d", ErrNotFound, name, d.Versions, seq)
	}
	return entries[0].hash, nil
}

// Page returns the merges of a branch from one number to another (1-based, inclusive), oldest
// first. Numbers beyond the ends are allowed.
func (s *Store) Page(name string, from, to int) ([]Version, error) {
	b, err := s.openBranch(name)
	if err != nil {
		return nil, err
	}
	return b.versions(b.span(from-1, to))
}

// Log returns the newest merges of a branch, newest first. A limit of 0 means all.
func (s *Store) Log(name string, limit int) ([]Version, error) {
	b, err := s.openBranch(name)
	if err != nil {
		return nil, err
	}
	_, _, n := b.state()
	from := 0
	if limit > 0 {
		from = n - limit
	}
	versions, err := b.versions(b.span(from, n))
	slices.Reverse(versions)
	return versions, err
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
		head, _, _ = b.state()
		return head, nil
	}
	if !errors.Is(err, ErrNoBranch) {
		return "", err
	}
	if err := s.create(b, hash); err != nil {
		return "", fmt.Errorf("start playbook branch %q: %w", name, err)
	}
	err = b.refresh()
	head, _, _ = b.state()
	return head, err
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

// Merge applies a delta to the newest head of a branch and makes the result the head. If the
// delta was merged before, Merge returns the first result. A delta without operations leaves
// no record.
func (s *Store) Merge(ctx context.Context, req MergeRequest) (MergeResult, error) {
	if req.DeltaID == "" {
		return MergeResult{}, errors.New("merge playbook: the delta has no ID")
	}
	b, err := s.branch(req.Branch)
	if err != nil {
		return MergeResult{}, err
	}
	unlock, err := b.lock(ctx)
	if err != nil {
		return MergeResult{}, err
	}
	defer unlock()
	if err := b.refresh(); err != nil {
		return MergeResult{}, err
	}
	if e, seq := b.delta(req.DeltaID); seq > 0 {
		v, err := b.version(e)
		return v.result(seq), err
	}
	return s.merge(b, req)
}

// merge requires that the branch is locked and refreshed.
func (s *Store) merge(b *branch, req MergeRequest) (MergeResult, error) {
	before, size, n := b.state()
	book, err := s.head(b)
	if err != nil {
		return MergeResult{}, err
	}
	if len(req.Operations) == 0 {
		return MergeResult{Before: before, After: before, Bullets: len(book.Bullets), Seq: n}, nil
	}
	after, done := Apply(book, req.Operations)
	content := after.Canonical()
	v := Version{
		Hash: digest(content), Parent: before, DeltaID: req.DeltaID, At: req.At.UTC(),
		TaskID: req.TaskID, WorkflowID: req.WorkflowID, RunID: req.RunID,
		Rationale: strings.ToValidUTF8(cut(req.Rationale, maxRationale), "�"),
		Bullets:   len(after.Bullets), Operations: done,
	}
	if req.At.IsZero() {
		v.At = time.Now().UTC()
	}
	v.count()
	line, err := encodeLine(v)
	if err == nil {
		err = appendLine(b.path, size, line)
	}
	if err != nil {
		b.forget()
		return MergeResult{}, fmt.Errorf("merge into playbook branch %q: %w", b.name, err)
	}
	if v.Hash != before {
		s.books.Put(v.Hash, after)
	}
	if (n+1)%snapshotEvery == 0 {
		// The merge is done. If this fails, the version is rebuilt from an earlier one.
		_ = s.writeBook(v.Hash, content, false)
	}
	return v.result(n + 1), b.refresh()
}

// head returns the playbook at the head of a branch.
func (s *Store) head(b *branch) (*Playbook, error) {
	hash, _, n := b.state()
	if book, ok := s.books.Get(hash); ok {
		return book, nil
	}
	if n == 0 {
		return s.Get(hash)
	}
	return s.rebuild(b, b.span(n-1, n)[0])
}

// rebuild reconstructs a version from the nearest earlier whole playbook.
func (s *Store) rebuild(b *branch, e entry) (*Playbook, error) {
	from := e.index // the first merge to replay
	var book *Playbook
	entries := b.span(0, e.index+1)
	for ; from > 0; from-- {
		prior := entries[from-1].hash
		if book, _ = s.books.Get(prior); book == nil && from%snapshotEvery == 0 {
			book, _ = s.readBook(prior) // if missing or damaged, use an earlier one
		}
		if book != nil {
			break
		}
	}
	if book == nil {
		var err error
		if book, err = s.readBook(b.describe().Start); err != nil {
			return nil, fmt.Errorf("playbook branch %q: start: %w", b.name, err)
		}
	}
	versions, err := b.versions(entries[from:])
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
	turn chan struct{} // holds a token while this process merges
	file *flock.Flock

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
		path := filepath.Join(s.dir, branchesDir, base)
		b = &branch{name: name, path: path + logSuffix, turn: make(chan struct{}, 1),
			file: flock.New(path+lockSuffix, flock.SetPermissions(0o600))}
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

// lock excludes merges of all processes until the returned function is called.
func (b *branch) lock(ctx context.Context) (func(), error) {
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("playbook branch %q: waiting for other merges: %w", b.name, ctx.Err())
	}
	if _, err := b.file.TryLockContext(ctx, lockRetry); err != nil {
		<-b.turn
		return nil, fmt.Errorf("playbook branch %q: lock %s: %w", b.name, b.file.Path(), err)
	}
	return func() {
		_ = b.file.Unlock() // closing the file releases the lock in any case
		<-b.turn
	}, nil
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

// state returns the head, the end of the log and the number of merges.
func (b *branch) state() (head string, size int64, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.head(), b.log.size, len(b.log.entries)
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

// delta returns the entry of a delta and its 1-based number, or 0 if it was not merged.
func (b *branch) delta(id string) (entry, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := b.log.deltas[id]
	if !ok {
		return entry{}, 0
	}
	return b.log.entries[i], i + 1
}

// span returns entries[from:to], limited to existing entries.
func (b *branch) span(from, to int) []entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	to = min(to, len(b.log.entries))
	return slices.Clone(b.log.entries[min(max(from, 0), to):to])
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

func (b *branch) version(e entry) (Version, error) {
	versions, err := b.versions([]entry{e})
	if err != nil {
		return Version{}, err
	}
	return versions[0], nil
}

func (b *branch) describe() Branch {
	b.mu.Lock()
	defer b.mu.Unlock()
	header := b.log.header
	d := Branch{Name: b.name, Start: header.Start, Head: b.log.head(), Versions: len(b.log.entries), At: header.At}
	if d.Versions > 0 {
		d.At = time.Unix(0, b.log.entries[d.Versions-1].at).UTC()
	}
	return d
}
