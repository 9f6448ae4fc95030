package playbook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"acescope/engine/internal/lru"
	"acescope/engine/store/bucket"
	"acescope/engine/store/durable"
)

// cachedBooks is the number of playbooks that a store keeps in memory.
const cachedBooks = 128

// books are the playbooks of a store by hash, in memory, in files, and for a shared store as its objects.
type books struct {
	dir    string // of the store
	memory *lru.Cache[string, *Playbook]
	shared *shared // nil for a directory only
}

// put stores a whole playbook for all machines, or renews it; see [bucket.Renew].
func (k *books) put(ctx context.Context, hash string, content []byte) error {
	write := func() error { return k.write(hash, content, true) }
	if k.shared == nil {
		b, root := bucket.Local(k.dir, tmpDir)
		return bucket.Renew(ctx, b, path.Join(root, booksDir, hash[:2], hash+".json"), write)
	}
	err := write()
	if err == nil {
		err = k.shared.putBook(ctx, hash, content)
	}
	return err
}

// write writes the file of a playbook, or gives an intact one the current time.
func (k *books) write(hash string, content []byte, sync bool) error {
	if old, err := os.ReadFile(k.path(hash)); err == nil && digest(old) == hash {
		err := os.Chtimes(k.path(hash), time.Time{}, time.Now())
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := durable.Mkdir(filepath.Dir(k.path(hash))); err != nil {
		return err
	}
	return durable.WriteFile(k.path(hash), filepath.Join(k.dir, tmpDir), content, sync)
}

func (k *books) path(hash string) string {
	return filepath.Join(k.dir, booksDir, hash[:2], hash+".json")
}

// read returns a playbook that is stored whole. The error is fs.ErrNotExist if it is missing.
func (k *books) read(ctx context.Context, hash string) (*Playbook, error) {
	book, err := k.cached(hash)
	if errors.Is(err, fs.ErrNotExist) && k.shared != nil {
		return k.fetch(ctx, hash)
	}
	return book, err
}

// cached returns a playbook from memory or from its file. The error is fs.ErrNotExist if it is missing.
func (k *books) cached(hash string) (*Playbook, error) {
	if book, ok := k.memory.Get(hash); ok {
		return book, nil
	}
	content, err := os.ReadFile(k.path(hash))
	if err != nil {
		return nil, err
	}
	book := &Playbook{}
	if digest(content) != hash || json.Unmarshal(content, book) != nil {
		return nil, fmt.Errorf("%w: the content of %s does not match its name", ErrCorrupt, k.path(hash))
	}
	k.memory.Put(hash, book)
	return book, nil
}

// fetch returns a playbook of the shared store, and keeps it in the cache. It returns fs.ErrNotExist for
// an unknown hash.
func (k *books) fetch(ctx context.Context, hash string) (*Playbook, error) {
	content, err := bucket.Get(ctx, k.shared, sharedBookKey(hash), maxBook)
	book := &Playbook{}
	switch {
	case errors.Is(err, bucket.ErrNotFound):
		return nil, fs.ErrNotExist
	case err != nil:
		return nil, err
	case digest(content) != hash || json.Unmarshal(content, book) != nil:
		return nil, fmt.Errorf("%w: the content of %s in %s does not match its name",
			ErrCorrupt, sharedBookKey(hash), k.shared)
	}
	k.memory.Put(hash, book)
	k.shared.cache.Added(int64(len(content)))
	return book, k.write(hash, content, false)
}

// rebuild returns the playbook after the first n merges of a branch. It replays the merges since the
// nearest whole playbook.
func (k *books) rebuild(ctx context.Context, x *branchLog, n int) (*Playbook, error) {
	from := n
	var book *Playbook
	for ; from > 0; from-- {
		if x.whole(from) {
			book, _ = k.read(ctx, x.at(from)) // if missing or damaged, use an earlier one
		} else {
			book, _ = k.memory.Get(x.at(from))
		}
		if book != nil {
			break
		}
	}
	if book == nil {
		var err error
		if book, err = k.read(ctx, x.header.Start); err != nil {
			return nil, fmt.Errorf("playbook branch %q: start: %w", x.header.Branch, err)
		}
	}
	if from == n {
		return book, nil
	}
	versions, err := x.versions(from, n)
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		book = replay(book, v.Operations)
	}
	if book.Hash() != x.at(n) {
		return nil, fmt.Errorf("%w: %s, line %d: its operations do not produce version %s",
			ErrCorrupt, x.path, n+1, x.at(n))
	}
	k.memory.Put(x.at(n), book)
	return book, nil
}
