package playbook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"acescope/engine/ace"
	"acescope/engine/internal/sleep"
	"acescope/engine/store/bucket"

	"golang.org/x/sync/errgroup"
)

// Bounds of the objects of a shared store.
const (
	maxEntry = 16 << 20 // bytes of an entry of a branch
	maxBook  = 64 << 20 // bytes of a playbook
	maxCache = 1 << 30  // bytes of whole playbooks that are kept here
	parallel = 16       // entries that are read at a time
	// listAfter is the number of new entries of a branch that are read one after another. Then its keys are
	// listed, which takes longer the longer the branch is.
	listAfter = 4
)

// shared is a store that several machines share. The directory of a [Store] is then a cache of it:
//
//	playbooks/ab/<hash>.json                  whole playbooks, one for each version
//	branches/<namespace>/<name>/00000000      the header line of a branch
//	branches/<namespace>/<name>/00000001...   its records: one for each merge, or several that were written together
//	branches/<namespace>/<name>/owner         the server whose experiments use the branch
//
// An entry has the number of its first record. It is created only if none has its number, so merges of all
// machines form one sequence.
type shared struct {
	bucket.Bucket
	namespace string
	logs      *logs // the cache of the branches
	cache     *bucket.Cache

	mu     sync.Mutex
	writes map[string]lastWrite // by branch
}

// OpenShared opens dir as the cache of a shared store with the branches of a namespace. The bucket may be
// nil; then the store is the directory.
func OpenShared(dir string, b bucket.Bucket, namespace string) (*Store, error) {
	s, err := OpenStore(dir)
	if err == nil && b != nil {
		s.shared = &shared{Bucket: b, namespace: namespace, logs: &s.logs,
			cache: bucket.NewCache(filepath.Join(dir, booksDir), maxCache), writes: map[string]lastWrite{}}
		s.books.shared = s.shared
	}
	return s, err
}

func (b *shared) branchesKey() string { return "branches/" + ace.FileName(b.namespace) + "/" }

// branchKey returns the key of a branch, whose last part is the name of its log without extension.
func (b *shared) branchKey(name string) (string, error) {
	file, err := b.logs.file(name, "")
	return b.branchesKey() + filepath.Base(file), err
}

func entryKey(branch string, n int) string { return fmt.Sprintf("%s/%08d", branch, n) }

func sharedBookKey(hash string) string { return "playbooks/" + hash[:2] + "/" + hash + ".json" }

// addEntry creates entry n of a branch. The error is [bucket.ErrExists] if the branch has it.
func (b *shared) addEntry(ctx context.Context, name string, n int, content []byte) error {
	branch, err := b.branchKey(name)
	if err != nil {
		return err
	}
	return b.Create(ctx, entryKey(branch, n), bytes.NewReader(content))
}

// Sync brings the cache of a shared store up to date, with all branches or those with the names. With all it
// lists every entry of the namespace.
func (s *Store) Sync(ctx context.Context, names ...string) error {
	if s.shared == nil {
		return nil
	}
	for _, name := range names {
		key, err := s.shared.branchKey(name)
		if err == nil {
			err = s.shared.pullLocked(ctx, key)
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
		if x, err := s.logs.read(s.logs.cached(branch, logSuffix)); err == nil && len(x.entries) >= n {
			continue
		}
		if err := s.shared.pullLocked(ctx, branch); err != nil {
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

func (b *shared) pullLocked(ctx context.Context, branch string) error {
	unlock, err := b.logs.lockFile(ctx, b.logs.cached(branch, lockSuffix))
	if err != nil {
		return err
	}
	defer unlock()
	_, err = b.pull(ctx, branch, 0)
	return err
}

// pull appends the entries of a branch that the cache lacks: at most limit, or all of them for 0. It returns
// their number. The branch must be locked. A branch that does not exist is not an error.
func (b *shared) pull(ctx context.Context, branch string, limit int) (read int, err error) {
	have := 0
	x, err := b.logs.read(b.logs.cached(branch, logSuffix))
	switch {
	case err == nil:
		have = len(x.entries) + 1
	case !errors.Is(err, fs.ErrNotExist):
		return 0, err
	}
	var entries [][]byte
	for len(entries) < listAfter {
		content, err := bucket.Get(ctx, b, entryKey(branch, have), maxEntry)
		if errors.Is(err, bucket.ErrNotFound) {
			return len(entries), b.keep(x, branch, entries)
		}
		if err != nil {
			return 0, err
		}
		entries = append(entries, content)
		have += max(bytes.Count(content, []byte("\n")), 1)
		if len(entries) == limit {
			return limit, b.keep(x, branch, entries)
		}
	}
	rest, err := b.entriesFrom(ctx, branch, have)
	if err != nil {
		return 0, err
	}
	entries = append(entries, rest...)
	return len(entries), b.keep(x, branch, entries)
}

// entriesFrom reads the entries of a branch from a number on.
func (b *shared) entriesFrom(ctx context.Context, branch string, first int) ([][]byte, error) {
	var numbers []int
	for object, err := range b.List(ctx, branch+"/") {
		if err != nil {
			return nil, err
		}
		if _, n, ok := parseEntry(object.Key); ok && n >= first {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	entries := make([][]byte, len(numbers))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, n := range numbers {
		group.Go(func() (err error) {
			entries[i], err = bucket.Get(ctx, b, entryKey(branch, n), maxEntry)
			return err
		})
	}
	return entries, group.Wait()
}

// keep appends entries to the cached log x of a branch, or to a new one if x is nil.
func (b *shared) keep(x *branchLog, branch string, entries [][]byte) error {
	if len(entries) == 0 {
		return nil
	}
	grown := branchLog{}
	if x != nil {
		grown = *x
		grown.entries = slices.Clip(x.entries) // others append to the array
	}
	for _, content := range entries {
		number := len(grown.entries)
		if grown.size > 0 {
			number++
		}
		if err := grown.addAll(content); err != nil {
			return fmt.Errorf("%w: %s in %s: %v", ErrCorrupt, entryKey(branch, number), b, err)
		}
	}
	content := bytes.Join(entries, nil)
	if x == nil {
		return b.logs.write(b.logs.cached(branch, logSuffix), content, false)
	}
	return appendLine(x.path, x.size, content)
}

// addAll adds the lines that were written together.
func (x *branchLog) addAll(content []byte) error {
	n := 0
	for line := range bytes.Lines(content) {
		if n++; n > 1 && x.batch[0] == x.batch[1] || !bytes.HasSuffix(line, []byte("\n")) {
			return errors.New("the entry has several writes or an incomplete line")
		}
		if err := x.add(line); err != nil {
			return err
		}
		x.size += int64(len(line))
	}
	if n == 0 || x.batch[0] != x.batch[1] {
		return errors.New("the entry is incomplete")
	}
	return nil
}

// expected returns the log of a branch for a merge, and the number of writes of other machines that it has
// read. If other machines merge as well, it reads as many as at the last merge: that costs fewer calls than a
// refused one. The branch must be locked.
func (s *Store) expected(ctx context.Context, name string) (x *branchLog, read int, err error) {
	x, err = s.logs.of(name)
	if errors.Is(err, ErrNoBranch) {
		x, err = s.current(ctx, name)
		return x, 0, err
	}
	if err != nil || s.shared == nil {
		return x, 0, err
	}
	if others := s.shared.last(name).others; others > 0 {
		return s.currentWithin(ctx, name, min(others, listAfter-1))
	}
	return x, 0, nil
}

// lastWrite is what this machine knows of its last write to a branch.
type lastWrite struct {
	number int           // of the write, among those to the branch in this process
	others int           // writes of other machines between the previous write and this one
	met    int           // number of the last write with others
	pause  time.Duration // before the next write
}

// contended reports whether other machines have written to the branch too, before one of the last writes.
func (w lastWrite) contended() bool { return w.met > 0 && w.number-w.met < tryGather }

func (b *shared) last(branch string) lastWrite {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.writes[branch]
}

// wrote records a write to a branch: how many records it had, and how many writes of other machines preceded
// it. The next pause is longer after several records, and shorter after a single one, because a pause in
// which no request arrives only delays the merge. After every tryGather writes it is long nevertheless,
// because more requests may arrive now.
func (b *shared) wrote(branch string, records, others int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.writes[branch]
	switch {
	case w.number%tryGather == 0 || records > 1:
		w.pause = gather
	case w.contended():
		w.pause /= 2
	}
	w.number, w.others = w.number+1, others
	if others > 0 {
		w.met = w.number
	}
	b.writes[branch] = w
}

// pause waits before a write to a branch that other machines write to as well.
func (b *shared) pause(ctx context.Context, branch string) {
	last := b.last(branch)
	if !last.contended() {
		return
	}
	_ = sleep.For(ctx, last.pause)
}

func (b *shared) putBook(ctx context.Context, hash string, content []byte) error {
	return bucket.Store(ctx, b, sharedBookKey(hash), bytes.NewReader(content))
}

// own reserves a branch in the shared store. It returns the server that has it.
func (b *shared) own(ctx context.Context, name, server string) (owner string, err error) {
	branch, err := b.branchKey(name)
	if err != nil {
		return "", err
	}
	key := branch + "/owner"
	err = b.Create(ctx, key, strings.NewReader(server+"\n"))
	if !errors.Is(err, bucket.ErrExists) {
		return server, err
	}
	content, err := bucket.Get(ctx, b, key, 4096)
	return strings.TrimSpace(string(content)), err
}

// Hashes calls yield with the version hashes of all branches. The branches of a shared store are those of the
// cache.
func (s *Store) Hashes(yield func(hash string)) error {
	logs, err := s.logs.all()
	for _, x := range logs {
		for n := range len(x.entries) + 1 {
			yield(x.at(n))
		}
	}
	return err
}
