package playbook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Errors that callers tell apart with [errors.Is].
var (
	ErrNotFound  = errors.New("playbook version not found")
	ErrAmbiguous = errors.New("playbook version is ambiguous")
	ErrCorrupt   = errors.New("playbook store is corrupt")
	ErrNoBranch  = errors.New("no such playbook branch")
)

// minPrefix is how many digits of a hash name a version at least.
const minPrefix = 6

// Store is a directory of versions:
//
//	books/ab/<hash>.json   whole playbooks in canonical form, so sha256sum gives the name
//	branches/<name>.log    one branch: a line saying where it starts, then a [Version] a line
//	branches/<name>.lock   held by who merges
//	tmp                    what is being written
//
// The log is the truth: its last whole line is the head. A whole book is kept for the
// start and for every [snapshotEvery] merges; the versions between are made again from
// the nearest, and checked against their hash. Any number of stores, in any number of
// processes, may work on one directory.
type Store struct {
	dir   string
	books *bookCache

	mu       sync.Mutex
	branches map[string]*branch // by file name
}

// OpenStore makes the directory where there is none, and removes leftovers of killed
// processes that are older than a day.
func OpenStore(dir string) (*Store, error) {
	for _, sub := range []string{booksDir, branchesDir, tmpDir} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("playbook store %s: %w", dir, err)
		}
	}
	sweep(filepath.Join(dir, tmpDir), time.Now().Add(-sweepAge))
	return &Store{dir: dir, books: newBookCache(), branches: map[string]*branch{}}, nil
}

// LookStore is a store that is only read. It makes no directory: one that is not there is
// an empty store.
func LookStore(dir string) *Store {
	return &Store{dir: dir, books: newBookCache(), branches: map[string]*branch{}}
}

// Put keeps a playbook that is not the result of a merge and gives its hash.
func (s *Store) Put(book *Playbook) (string, error) {
	if err := book.check(); err != nil {
		return "", fmt.Errorf("put playbook: %w", err)
	}
	content := book.Canonical()
	hash := digest(content)
	if err := s.keep(hash, content, true); err != nil {
		return "", fmt.Errorf("put playbook %s: %w", hash, err)
	}
	return hash, nil
}

// keep writes a book's file unless it is there and sound.
func (s *Store) keep(hash string, content []byte, durable bool) error {
	if old, err := os.ReadFile(s.bookPath(hash)); err == nil && digest(old) == hash {
		return nil
	}
	if err := makeDir(filepath.Dir(s.bookPath(hash))); err != nil {
		return err
	}
	return s.writeFile(s.bookPath(hash), content, durable)
}

func (s *Store) bookPath(hash string) string {
	return filepath.Join(s.dir, booksDir, hash[:2], hash+".json")
}

// Get is the playbook of that hash. It is shared: do not change it.
func (s *Store) Get(hash string) (*Playbook, error) {
	if !validHash(hash) {
		return nil, fmt.Errorf("%w: %.80q is no hash", ErrNotFound, hash)
	}
	if book := s.books.get(hash); book != nil {
		return book, nil
	}
	book, err := s.load(hash)
	if err == nil {
		return book, nil
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrCorrupt) {
		return nil, err
	}
	found, ferr := s.locate(hash)
	if ferr != nil {
		return nil, ferr
	}
	if found == nil {
		if errors.Is(err, ErrCorrupt) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %s in %s", ErrNotFound, hash, s.dir)
	}
	return s.rebuild(found.branch, found.entry)
}

// load reads a book's file; fs.ErrNotExist where there is none.
func (s *Store) load(hash string) (*Playbook, error) {
	content, err := os.ReadFile(s.bookPath(hash))
	if err != nil {
		return nil, err
	}
	book := &Playbook{}
	if digest(content) != hash || json.Unmarshal(content, book) != nil {
		return nil, fmt.Errorf("%w: %s does not hold what its name says", ErrCorrupt, s.bookPath(hash))
	}
	s.books.add(hash, book)
	return book, nil
}

// Resolve is the one version whose hash begins with the prefix of six digits or more.
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
		if hash, ok := strings.CutSuffix(e.Name(), ".json"); ok && strings.HasPrefix(hash, prefix) && validHash(hash) {
			found[hash] = true
		}
	}
	all, err := s.all()
	for _, b := range all {
		b.hashes(prefix, found)
	}
	switch len(found) {
	case 0:
		if err != nil {
			return "", err
		}
		return "", fmt.Errorf("%w: %s in %s", ErrNotFound, prefix, s.dir)
	case 1:
		for hash := range found {
			return hash, nil
		}
	}
	some := make([]string, 0, len(found))
	for hash := range found {
		some = append(some, hash[:min(64, len(prefix)+6)])
	}
	slices.Sort(some)
	return "", fmt.Errorf("%w: %s may be %s; give more digits", ErrAmbiguous, prefix, strings.Join(some[:min(5, len(some))], ", "))
}

// Version is the record of how a version came to be: of its first merge where there
// are several.
func (s *Store) Version(hash string) (Version, error) {
	if !validHash(hash) {
		return Version{}, fmt.Errorf("%w: %.80q is no hash", ErrNotFound, hash)
	}
	found, err := s.locate(hash)
	if err != nil {
		return Version{}, err
	}
	if found != nil {
		return found.branch.version(found.entry)
	}
	book, err := s.Get(hash)
	if err != nil {
		return Version{}, err
	}
	info, err := os.Stat(s.bookPath(hash))
	if err != nil {
		return Version{}, fmt.Errorf("playbook %s: %w", hash, err)
	}
	return Version{Hash: hash, At: info.ModTime().UTC(), Bullets: len(book.Bullets)}, nil
}

// place is where a version was merged.
type place struct {
	branch *branch
	entry  entry
}

// locate finds the earliest merge that gave that version, nil where none did. A branch
// that cannot be read matters only where no other has the version.
func (s *Store) locate(hash string) (*place, error) {
	all, err := s.all()
	var found *place
	for _, b := range all {
		if e, ok := b.find(hash); ok && (found == nil || e.at < found.entry.at) {
			found = &place{b, e}
		}
	}
	if found != nil {
		return found, nil
	}
	return nil, err
}
