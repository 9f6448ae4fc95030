package playbook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"acescope/engine/ace"
	"acescope/engine/internal/durable"
	"acescope/engine/store/bucket"
)

// Bounds of the objects of a shared store.
const (
	maxEntry = 16 << 20 // bytes of an entry of a branch
	maxBook  = 64 << 20 // bytes of a playbook
	maxCache = 1 << 30  // bytes of whole playbooks that are kept here
	parallel = 16       // entries that are read at a time
	// listAfter is the number of new entries of a branch that are read one after another. Then its keys are listed,
	// which takes longer the longer the branch is.
	listAfter = 4
)

// shared is a store that several machines share. The directory of a [Store] is then a cache of it:
//
//	playbooks/ab/<hash>.json                  whole playbooks, one for each version
//	branches/<namespace>/<name>/00000000      the header line of a branch
//	branches/<namespace>/<name>/00000001...   its records, one for each merge
//	branches/<namespace>/<name>/owner         the server whose experiments use the branch
//
// An entry is created only if none has its number, so merges of all machines form one sequence.
type shared struct {
	bucket.Bucket
	namespace string
	cache     *bucket.Cache
	others    map[string]int // by branch: records of other machines before the last merge; Store.mu guards it
}

// OpenShared opens dir as the cache of a shared store with the branches of a namespace. The bucket may be
// nil; then the store is the directory.
func OpenShared(dir string, b bucket.Bucket, namespace string) (*Store, error) {
	s, err := OpenStore(dir)
	if err == nil && b != nil {
		s.shared = &shared{b, namespace, bucket.NewCache(filepath.Join(dir, booksDir), maxCache),
			map[string]int{}}
	}
	return s, err
}

func (b *shared) branchesKey() string { return "branches/" + ace.FileName(b.namespace) + "/" }

// branchKey returns the key of a branch, whose last part is the name of its log without extension.
func (s *Store) branchKey(name string) (string, error) {
	file, err := s.branchFile(name, "")
	return s.shared.branchesKey() + filepath.Base(file), err
}

func entryKey(branch string, n int) string { return fmt.Sprintf("%s/%08d", branch, n) }

func sharedBookKey(hash string) string { return "playbooks/" + hash[:2] + "/" + hash + ".json" }

// Sync brings the cache of a shared store up to date, with all branches or those with the names. With all it
// lists every entry of the namespace.
func (s *Store) Sync(ctx context.Context, names ...string) error {
	if s.shared == nil {
		return nil
	}
	for _, name := range names {
		key, err := s.branchKey(name)
		if err == nil {
			err = s.pullLocked(ctx, key)
		}
		if err != nil {
			return err
		}
	}
	if len(names) > 0 {
		return nil
	}
	newest := map[string]int{} // entry by branch
	for object, err := range s.shared.List(ctx, s.shared.branchesKey()) {
		if err != nil {
			return err
		}
		if branch, n, ok := parseEntry(object.Key); ok {
			newest[branch] = max(newest[branch], n)
		}
	}
	for branch, n := range newest {
		if x, err := s.readLog(s.cached(branch, logSuffix)); err == nil && len(x.entries) >= n {
			continue
		}
		if err := s.pullLocked(ctx, branch); err != nil {
			return err
		}
	}
	return nil
}

// parseEntry returns the branch and number of an entry, and false for other objects.
func parseEntry(key string) (branch string, n int, ok bool) {
	branch, number := path.Split(key)
	n, err := strconv.Atoi(number)
	branch = strings.TrimSuffix(branch, "/")
	return branch, n, err == nil && key == entryKey(branch, n)
}

func (s *Store) pullLocked(ctx context.Context, branch string) error {
	unlock, err := s.lockFile(ctx, s.cached(branch, lockSuffix))
	if err != nil {
		return err
	}
	defer unlock()
	return s.pull(ctx, branch, 0)
}

// cached returns the path of a file of a branch in the cache.
func (s *Store) cached(branch, suffix string) string {
	return filepath.Join(s.dir, branchesDir, path.Base(branch)+suffix)
}

// pull appends the entries of a branch that the cache lacks: at most limit, or all of them if it is 0. The branch must
// be locked. A branch that does not exist is not an error.
func (s *Store) pull(ctx context.Context, branch string, limit int) error {
	have := 0
	x, err := s.readLog(s.cached(branch, logSuffix))
	switch {
	case err == nil:
		have = len(x.entries) + 1
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	first, err := bucket.Get(ctx, s.shared, entryKey(branch, have), maxEntry)
	if errors.Is(err, bucket.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	lines := [][]byte{first}
	for len(lines) < listAfter {
		if len(lines) == limit {
			return s.cache(x, branch, lines)
		}
		line, err := bucket.Get(ctx, s.shared, entryKey(branch, have+len(lines)), maxEntry)
		if errors.Is(err, bucket.ErrNotFound) {
			return s.cache(x, branch, lines)
		}
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	rest, err := s.entriesAfter(ctx, branch, have+len(lines)-1)
	if err != nil {
		return err
	}
	return s.cache(x, branch, append(lines, rest...))
}

// entriesAfter reads the entries of a branch after a number.
func (s *Store) entriesAfter(ctx context.Context, branch string, number int) ([][]byte, error) {
	last := number
	for object, err := range s.shared.List(ctx, branch+"/") {
		if err != nil {
			return nil, err
		}
		if _, n, ok := parseEntry(object.Key); ok {
			last = max(last, n)
		}
	}
	lines, errs := make([][]byte, last-number), make([]error, last-number)
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i := range lines {
		slots <- struct{}{}
		wg.Go(func() {
			lines[i], errs[i] = bucket.Get(ctx, s.shared, entryKey(branch, number+1+i), maxEntry)
			<-slots
		})
	}
	wg.Wait()
	return lines, errors.Join(errs...)
}

// cache appends entries to the cached log x of a branch, or to a new one if x is nil.
func (s *Store) cache(x *branchLog, branch string, lines [][]byte) error {
	grown := branchLog{}
	if x != nil {
		grown = *x
		grown.entries = slices.Clip(x.entries) // others append to the array
	}
	for _, line := range lines {
		err := errors.New("it is not one line")
		if len(line) > 0 && bytes.IndexByte(line, '\n') == len(line)-1 {
			err = grown.add(line)
		}
		if err != nil {
			number := len(grown.entries)
			if grown.size > 0 {
				number++
			}
			return fmt.Errorf("%w: %s in %s: %v", ErrCorrupt, entryKey(branch, number), s.shared, err)
		}
		grown.size += int64(len(line))
	}
	content := bytes.Join(lines, nil)
	if x == nil {
		return durable.WriteFile(s.cached(branch, logSuffix), filepath.Join(s.dir, tmpDir), content, false)
	}
	return appendLine(x.path, x.size, content)
}

// expected returns the log of a branch for a merge, and its number of merges here. If other machines merge as well, it
// reads as many of their records as at the last merge: that costs fewer calls than a refused one. The branch must be
// locked.
func (s *Store) expected(ctx context.Context, name string) (x *branchLog, before int, err error) {
	x, err = s.log(name)
	if errors.Is(err, ErrNoBranch) {
		x, err = s.current(ctx, name, 0)
		if err != nil {
			return nil, 0, err
		}
		return x, len(x.entries), nil
	}
	if err != nil || s.shared == nil {
		return x, 0, err
	}
	before = len(x.entries)
	s.mu.Lock()
	others := s.shared.others[name]
	s.mu.Unlock()
	if others > 0 {
		x, err = s.current(ctx, name, min(others, listAfter-1))
	}
	return x, before, err
}

// expectOthers says how many records other machines had added to a branch since the last merge here.
func (s *Store) expectOthers(name string, others int) {
	if s.shared == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.shared.others, name)
	if others > 0 {
		s.shared.others[name] = others
	}
}

func (b *shared) putBook(ctx context.Context, hash string, content []byte) error {
	return b.Put(ctx, sharedBookKey(hash), bytes.NewReader(content))
}

// fetchBook returns a playbook of the shared store and keeps it in the cache. The error is fs.ErrNotExist if there is
// none.
func (s *Store) fetchBook(ctx context.Context, hash string) (*Playbook, error) {
	content, err := bucket.Get(ctx, s.shared, sharedBookKey(hash), maxBook)
	book := &Playbook{}
	switch {
	case errors.Is(err, bucket.ErrNotFound):
		return nil, fs.ErrNotExist
	case err != nil:
		return nil, err
	case digest(content) != hash || json.Unmarshal(content, book) != nil:
		return nil, fmt.Errorf("%w: the content of %s in %s does not match its name",
			ErrCorrupt, sharedBookKey(hash), s.shared)
	}
	s.books.Put(hash, book)
	s.shared.cache.Added(int64(len(content)))
	return book, s.writeBook(hash, content, false)
}

// own reserves a branch in the shared store. It returns the server that has it.
func (s *Store) own(ctx context.Context, name, server string) (owner string, err error) {
	branch, err := s.branchKey(name)
	if err != nil {
		return "", err
	}
	key := branch + "/owner"
	err = s.shared.Create(ctx, key, strings.NewReader(server+"\n"))
	if !errors.Is(err, bucket.ErrExists) {
		return server, err
	}
	content, err := bucket.Get(ctx, s.shared, key, 4096)
	return strings.TrimSpace(string(content)), err
}

// Hashes calls yield with the version hashes of all branches. The branches of a shared store are those of the cache.
func (s *Store) Hashes(yield func(hash string)) error {
	logs, err := s.readLogs()
	for _, x := range logs {
		for n := range len(x.entries) + 1 {
			yield(x.at(n))
		}
	}
	return err
}
