package playbook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"acescope/engine/internal/durable"
	"acescope/engine/internal/lru"
)

// Errors that callers distinguish with [errors.Is].
var (
	ErrNotFound  = errors.New("playbook version not found")
	ErrAmbiguous = errors.New("playbook version is ambiguous")
	ErrCorrupt   = errors.New("playbook store is corrupt")
	ErrNoBranch  = errors.New("playbook branch not found")
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
// The log is authoritative: its last complete line is the head. The store keeps the whole
// playbook at the start of a branch and after every [snapshotEvery] merges; it rebuilds other
// versions from the nearest one and verifies their hash. Any number of stores in any number
// of processes may share a directory.
type Store struct {
	// Hint ends the error about a version that is not there, and says where it may be; "" for nothing to say.
	Hint string

	dir    string
	shared *shared                       // nil for a directory only
	books  *lru.Cache[string, *Playbook] // by hash

	gates gates

	mu      sync.Mutex
	logs    map[string]branchLog       // by path
	waiting map[string][]*mergeRequest // by path of the lock
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
	books := lru.New[string](cachedBooks, func(*Playbook) int { return 1 })
	return &Store{dir: dir, books: books, logs: map[string]branchLog{}}
}

// Put stores a playbook that is not the result of a merge and returns its hash.
func (s *Store) Put(ctx context.Context, book *Playbook) (string, error) {
	if err := book.check(); err != nil {
		return "", fmt.Errorf("put playbook: %w", err)
	}
	content := book.Canonical()
	hash := digest(content)
	err := s.writeBook(hash, content, true)
	if err == nil && s.shared != nil {
		err = s.shared.putBook(ctx, hash, content)
	}
	if err != nil {
		return "", fmt.Errorf("put playbook %s: %w", hash, err)
	}
	return hash, nil
}

// writeBook writes the file of a playbook unless an intact one exists.
func (s *Store) writeBook(hash string, content []byte, sync bool) error {
	if old, err := os.ReadFile(s.bookPath(hash)); err == nil && digest(old) == hash {
		return nil
	}
	if err := durable.Mkdir(filepath.Dir(s.bookPath(hash))); err != nil {
		return err
	}
	return durable.WriteFile(s.bookPath(hash), filepath.Join(s.dir, tmpDir), content, sync)
}

func (s *Store) bookPath(hash string) string {
	return filepath.Join(s.dir, booksDir, hash[:2], hash+".json")
}

// Get returns the playbook with that hash. It is shared: do not change it.
func (s *Store) Get(ctx context.Context, hash string) (*Playbook, error) {
	if !validHash(hash) {
		return nil, fmt.Errorf("%w: %.80q is not a hash", ErrNotFound, hash)
	}
	book, err := s.readCached(hash)
	if errors.Is(err, fs.ErrNotExist) && s.shared != nil {
		if x, n, _ := s.locate(hash); x != nil {
			return s.rebuild(ctx, x, n)
		}
		book, err = s.fetchBook(ctx, hash)
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
		return s.rebuild(ctx, x, n)
	case corrupt:
		return nil, err
	}
	return nil, fmt.Errorf("%w: %s in %s%s", ErrNotFound, hash, s.dir, s.Hint)
}

// readBook returns a playbook that is stored whole. The error is fs.ErrNotExist if it is missing.
func (s *Store) readBook(ctx context.Context, hash string) (*Playbook, error) {
	book, err := s.readCached(hash)
	if errors.Is(err, fs.ErrNotExist) && s.shared != nil {
		return s.fetchBook(ctx, hash)
	}
	return book, err
}

// readCached returns a playbook from memory or from its file. The error is fs.ErrNotExist if it is missing.
func (s *Store) readCached(hash string) (*Playbook, error) {
	if book, ok := s.books.Get(hash); ok {
		return book, nil
	}
	content, err := os.ReadFile(s.bookPath(hash))
	if err != nil {
		return nil, err
	}
	book := &Playbook{}
	if digest(content) != hash || json.Unmarshal(content, book) != nil {
		return nil, fmt.Errorf("%w: the content of %s does not match its name", ErrCorrupt, s.bookPath(hash))
	}
	s.books.Put(hash, book)
	return book, nil
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
	logs, err := s.readLogs()
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
	logs, err := s.readLogs()
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

// cachedBooks is the number of playbooks that a store keeps in memory.
const cachedBooks = 128

// branchFile returns the path of a file of a branch. Of the name, lower-case letters, digits, "-", "_"
// and an inner "." are kept; every other byte becomes %XX, so names that differ only in case
// get different files on every file system. A long name is cut and ends with its SHA-256.
func (s *Store) branchFile(branch, suffix string) (string, error) {
	if branch == "" || len(branch) > maxBranchName || !utf8.ValidString(branch) {
		return "", fmt.Errorf("branch name %.80q: it must be UTF-8 text of 1 to %d bytes", branch,
			maxBranchName)
	}
	var b strings.Builder
	for i, c := range []byte(branch) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' && i > 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	name := b.String()
	if len(name) > maxFileName {
		sum := sha256.Sum256([]byte(branch))
		name = name[:maxFileName-2*sha256.Size-1] + "~" + hex.EncodeToString(sum[:])
	}
	return filepath.Join(s.dir, branchesDir, name+suffix), nil
}
