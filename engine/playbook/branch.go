package playbook

import (
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

	"github.com/gofrs/flock"
)

// lockRetry is how often a merge asks for a lock that another process holds.
const lockRetry = time.Millisecond

// branch is one branch as this process knows it.
type branch struct {
	name string
	path string
	turn chan struct{} // holds a token while somebody of this process merges
	file *flock.Flock

	mu  sync.Mutex
	log logIndex
}

// branch is the handle of a branch, whether it exists or not.
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

// all lists the branches there are, brought up to date: those that can be read, and an
// error for the others.
func (s *Store) all() ([]*branch, error) {
	logs, err := os.ReadDir(filepath.Join(s.dir, branchesDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("playbook branches: %w", err)
	}
	var all []*branch
	var bad []error
	for _, e := range logs {
		base, ok := strings.CutSuffix(e.Name(), logSuffix)
		if !ok {
			continue
		}
		b, err := s.known(base)
		if err == nil {
			err = b.refresh()
		}
		if err != nil {
			bad = append(bad, err)
			continue
		}
		all = append(all, b)
	}
	return all, errors.Join(bad...)
}

// known is the branch of a log file, whose header has the name.
func (s *Store) known(base string) (*branch, error) {
	s.mu.Lock()
	b, ok := s.branches[base]
	s.mu.Unlock()
	if ok {
		return b, nil
	}
	name, err := branchName(filepath.Join(s.dir, branchesDir, base+logSuffix))
	if err != nil {
		return nil, err
	}
	return s.branch(name)
}

// lock keeps all others from merging until the returned function is called.
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
		_ = b.file.Unlock() // closing the file frees it in any case
		<-b.turn
	}, nil
}

// refresh takes in what others merged; ErrNoBranch where there is no log.
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

// forget drops what is known of the log, after a write failed: a reader may have seen
// the line that was taken back.
func (b *branch) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = logIndex{}
}

// state is the head, the end of the log and the number of merges.
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

// delta is the entry that a delta made, and its place in the log, 1-based; 0 where the
// delta was not merged.
func (b *branch) delta(id string) (entry, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := b.log.deltas[id]
	if !ok {
		return entry{}, 0
	}
	return b.log.entries[i], i + 1
}

// span is the entries from the first to before the last, within what there is.
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
	v, err := readVersions(b.path, b.name, []entry{e})
	if err != nil {
		return Version{}, err
	}
	return v[0], nil
}

func (b *branch) describe() Branch {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := Branch{Name: b.name, Start: b.log.header.Start, Head: b.log.head(), Versions: len(b.log.entries), At: b.log.header.At}
	if d.Versions > 0 {
		d.At = time.Unix(0, b.log.entries[d.Versions-1].at).UTC()
	}
	return d
}
