package playbook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"acescope/engine/store/bucket"
)

// Import copies a branch of another store, which is a directory, to a shared store. It returns the number of
// copied versions. A branch that began in the same way is continued; otherwise the error is [ErrDiffers].
func (s *Store) Import(ctx context.Context, from *Store, name string) (versions int, err error) {
	if s.shared == nil {
		return 0, errors.New("import playbook branch: there is no shared store")
	}
	branch, err := s.shared.branchKey(name)
	if err != nil {
		return 0, err
	}
	source, err := from.logs.of(name)
	if err != nil {
		return 0, err
	}
	if err := s.shared.pullLocked(ctx, branch); err != nil {
		return 0, err
	}
	content, err := os.ReadFile(source.path)
	if err != nil {
		return 0, err
	}
	have, err := os.ReadFile(s.logs.cached(branch, logSuffix))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	content = content[:source.size]
	if bytes.HasPrefix(have, content) {
		return 0, nil
	}
	rest, same := bytes.CutPrefix(content, have)
	if !same {
		return 0, fmt.Errorf("%w: %q", ErrDiffers, name)
	}
	if err := s.importBooks(ctx, from, source); err != nil {
		return 0, err
	}
	number := bytes.Count(have, []byte("\n"))
	for entry := range writes(rest) {
		err := s.shared.Create(ctx, entryKey(branch, number), bytes.NewReader(entry))
		if errors.Is(err, bucket.ErrExists) {
			err = fmt.Errorf("%w: %q, because another machine is adding to it", ErrDiffers, name)
		}
		if err != nil {
			return versions, err
		}
		lines := bytes.Count(entry, []byte("\n"))
		if number += lines; number > 1 {
			versions += lines
		}
	}
	return versions, s.shared.pullLocked(ctx, branch)
}

// writes yields the lines of a log, those together that were written together.
func writes(content []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		start, end := 0, 0
		for line := range bytes.Lines(content) {
			end += len(line)
			var v struct{ Batch [2]int }
			if json.Unmarshal(line, &v) == nil && v.Batch[0] < v.Batch[1] {
				continue
			}
			if !yield(content[start:end]) {
				return
			}
			start = end
		}
	}
}

// ImportBooks copies the whole playbooks of another store, which is a directory, also those on no branch. It
// returns how many of them this store lacked. It skips damaged playbooks; the error names them.
func (s *Store) ImportBooks(ctx context.Context, from *Store) (copied int, err error) {
	if s.shared == nil {
		return 0, errors.New("import playbooks: there is no shared store")
	}
	var damaged []error
	err = filepath.WalkDir(filepath.Join(from.dir, booksDir), func(file string, e fs.DirEntry, err error) error {
		hash := strings.TrimSuffix(filepath.Base(file), ".json")
		if err != nil || e.IsDir() || !validHash(hash) {
			return err
		}
		book, err := from.Get(ctx, hash)
		if err != nil {
			damaged = append(damaged, err)
			return ctx.Err()
		}
		err = s.shared.Create(ctx, sharedBookKey(hash), bytes.NewReader(book.Canonical()))
		if err == nil {
			copied++
		} else if errors.Is(err, bucket.ErrExists) {
			err = s.shared.putBook(ctx, hash, book.Canonical())
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return copied, errors.Join(append(damaged, err)...)
}

// importBooks copies the whole playbooks from which the versions of a branch are made, and the newest.
func (s *Store) importBooks(ctx context.Context, from *Store, x *branchLog) error {
	for n := range len(x.entries) + 1 {
		if !x.whole(n) && n != len(x.entries) {
			continue
		}
		book, err := from.Get(ctx, x.at(n))
		if err != nil {
			return err
		}
		if err := s.shared.putBook(ctx, x.at(n), book.Canonical()); err != nil {
			return err
		}
	}
	return nil
}
