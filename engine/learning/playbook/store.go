package playbook

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/internal/lru"
	"acescope/engine/store/durable"
)

// Errors that callers distinguish with [errors.Is].
var (
	ErrNotFound  = errors.New("playbook version not found")
	ErrAmbiguous = errors.New("playbook version is ambiguous")
	ErrCorrupt   = errors.New("playbook store is corrupt")
	ErrNoBranch  = ace.NotFound{Kind: "playbook branch", Hint: "start it first"}
	ErrDiffers   = errors.New("the branch exists with other versions")
)

const (
	booksDir    = "books"
	branchesDir = "branches"
	tmpDir      = "tmp"
	logSuffix   = ".log"
	lockSuffix  = ".lock"

	maxBranchName = 1024
	maxFileName   = 150

	// minPrefix is the minimum number of digits in an abbreviated hash.
	minPrefix = 6
)

// Store is a directory of versions:
//
//	books/ab/<hash>.json   whole playbooks in canonical form, so sha256sum returns the name
//	branches/<name>.log    a branch: a header line, then one [Version] per line
//	branches/<name>.lock   locked during a merge
//	tmp                    files being written
//
// The log is authoritative: its last complete line is the head. It is one file, and not an object of a bucket
// for each merge as in a shared store, because a line costs one sync instead of two, and because every command
// reads all branches of the directory. The store keeps the whole playbook at the start of a branch and after
// every [snapshotEvery] merges; it rebuilds other versions from the nearest one and verifies their hash. Any
// number of stores in any number of processes may share a directory.
type Store struct {
	// Hint, if not "", ends the error about a missing version and says where the version may be.
	Hint string

	dir     string
	books   books
	logs    logs
	shared  *shared // nil for a directory only
	waiting queue
}

// OpenStore opens a directory, which it creates if necessary. It removes temporary files of
// killed processes that are older than a day.
func OpenStore(dir string) (*Store, error) {
	for _, sub := range []string{booksDir, branchesDir, tmpDir} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("playbook store %s: %w", dir, err)
		}
	}
	durable.Sweep(filepath.Join(dir, tmpDir))
	return OpenStoreReadOnly(dir), nil
}

// OpenStoreReadOnly opens a directory for reading. A directory that does not exist is an empty store.
func OpenStoreReadOnly(dir string) *Store {
	memory := lru.New[string](cachedBooks, func(*Playbook) int { return 1 })
	return &Store{dir: dir, books: books{dir: dir, memory: memory},
		logs: logs{dir: dir, byPath: map[string]branchLog{}}}
}

// Put stores a playbook that is not the result of a merge and returns its hash.
func (s *Store) Put(ctx context.Context, book *Playbook) (string, error) {
	if err := book.check(); err != nil {
		return "", fmt.Errorf("put playbook: %w", err)
	}
	content := book.Canonical()
	hash := digest(content)
	if err := s.books.put(ctx, hash, content); err != nil {
		return "", fmt.Errorf("put playbook %s: %w", hash, err)
	}
	return hash, nil
}

// Get returns the playbook with that hash. It is shared: do not change it.
func (s *Store) Get(ctx context.Context, hash string) (*Playbook, error) {
	if !validHash(hash) {
		return nil, fmt.Errorf("%w: %.80q is not a hash", ErrNotFound, hash)
	}
	book, err := s.books.cached(hash)
	if errors.Is(err, fs.ErrNotExist) && s.shared != nil {
		if x, n, _ := s.locate(hash); x != nil {
			return s.books.rebuild(ctx, x, n)
		}
		book, err = s.books.fetch(ctx, hash)
	}
	if err == nil {
		return book, nil
	}
	corrupt := errors.Is(err, ErrCorrupt)
	if !corrupt && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	x, n, locateErr := s.locate(hash)
	if x == nil && s.shared != nil {
		// A machine that was killed during a merge may have stored the record only.
		if err := s.Sync(ctx); err != nil {
			return nil, err
		}
		x, n, locateErr = s.locate(hash)
	}
	switch {
	case locateErr != nil:
		return nil, locateErr
	case x != nil:
		return s.books.rebuild(ctx, x, n)
	case corrupt:
		return nil, err
	}
	return nil, fmt.Errorf("%w: %s in %s%s", ErrNotFound, hash, s.dir, s.Hint)
}

// Renew keeps a version for [bucket.MinAge]. Call it before you refer to a version that no branch may have.
func (s *Store) Renew(ctx context.Context, hash string) error {
	book, err := s.Get(ctx, hash)
	if err == nil {
		_, err = s.Put(ctx, book)
	}
	return err
}

// Resolve returns the only hash that begins with the prefix of six digits or more.
func (s *Store) Resolve(prefix string) (string, error) {
	prefix = strings.ToLower(prefix)
	if len(prefix) < minPrefix || len(prefix) > 64 || !isHex(prefix) {
		return "", fmt.Errorf("%w: %.80q is not %d to 64 hexadecimal digits", ErrNotFound, prefix, minPrefix)
	}
	found := map[string]bool{}
	entries, err := os.ReadDir(filepath.Join(s.dir, booksDir, prefix[:2]))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("resolve %s: %w", prefix, err)
	}
	for _, e := range entries {
		hash, ok := strings.CutSuffix(e.Name(), ".json")
		if ok && strings.HasPrefix(hash, prefix) && validHash(hash) {
			found[hash] = true
		}
	}
	logs, err := s.logs.all()
	for _, x := range logs {
		for n := range len(x.entries) + 1 {
			if hash := x.at(n); strings.HasPrefix(hash, prefix) {
				found[hash] = true
			}
		}
	}
	hashes := slices.Sorted(maps.Keys(found))
	switch {
	case len(hashes) == 1:
		return hashes[0], nil
	case len(hashes) == 0 && err != nil:
		return "", err
	case len(hashes) == 0:
		return "", fmt.Errorf("%w: %s in %s", ErrNotFound, prefix, s.dir)
	}
	hashes = hashes[:min(5, len(hashes))]
	for i, hash := range hashes {
		hashes[i] = hash[:min(64, len(prefix)+6)]
	}
	candidates := strings.Join(hashes, ", ")
	return "", fmt.Errorf("%w: %s matches %s; give more digits", ErrAmbiguous, prefix, candidates)
}

// Place returns the branch and number of the first merge that produced a version. The number
// is 0 for a version that only starts a branch. The branch is "" if no branch has the version.
func (s *Store) Place(hash string) (branch string, seq int, err error) {
	x, n, err := s.locate(hash)
	if x != nil {
		return x.header.Branch, n, nil
	}
	if err != nil {
		return "", 0, err
	}
	all, err := s.Branches()
	for _, d := range all {
		if d.Start == hash {
			return d.Name, 0, nil
		}
	}
	return "", 0, err
}

// locate returns the branch and number of the earliest merge that produced the version, or nil. It
// reports unreadable branches only if no other branch has the version.
func (s *Store) locate(hash string) (found *branchLog, seq int, err error) {
	logs, err := s.logs.all()
	for _, x := range logs {
		n := x.made(hash)
		if n > 0 && (found == nil || x.entries[n-1].time.Before(found.entries[seq-1].time)) {
			found, seq = x, n
		}
	}
	if found != nil {
		return found, seq, nil
	}
	return nil, 0, err
}
