package playbook

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// Branch is one branch as it is now; [ErrNoBranch] where there is none.
func (s *Store) Branch(name string) (Branch, error) {
	b, err := s.branch(name)
	if err == nil {
		err = b.refresh()
	}
	if err != nil {
		return Branch{}, err
	}
	return b.describe(), nil
}

// Page is the merges of a branch from one number to another, 1-based and inclusive, as
// far as there are any, oldest first.
func (s *Store) Page(name string, from, to int) ([]Version, error) {
	b, err := s.branch(name)
	if err == nil {
		err = b.refresh()
	}
	if err != nil {
		return nil, err
	}
	return readVersions(b.path, b.name, b.span(from-1, to))
}

// At is the version of a branch after so many merges; 0 is its start.
func (s *Store) At(name string, seq int) (hash string, err error) {
	d, err := s.Branch(name)
	switch {
	case err != nil:
		return "", err
	case seq < 0 || seq > d.Versions:
		return "", fmt.Errorf("%w: branch %q has the versions 0 to %d, not %d", ErrNotFound, name, d.Versions, seq)
	case seq == 0:
		return d.Start, nil
	}
	b, err := s.branch(name)
	if err != nil {
		return "", err
	}
	entries := b.span(seq-1, seq)
	if len(entries) == 0 {
		return "", fmt.Errorf("%w: branch %q has no version %d any more", ErrNotFound, name, seq)
	}
	return entries[0].hash, nil
}

// Place is the merge that first gave a version: its branch, and its number there. A
// version that is the start of a branch and no merge's result has the number 0; one of no
// branch has no name either.
func (s *Store) Place(hash string) (branch string, seq int, err error) {
	found, err := s.locate(hash)
	if found != nil {
		return found.branch.name, found.entry.index + 1, nil
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

// each gives the merges of a branch after the first from ones up to number to, one after
// another; v is used again for the next. It holds one line at a time.
func (b *branch) each(ctx context.Context, from, to int, fn func(seq int, v *Version)) error {
	entries := b.span(from, to)
	if len(entries) == 0 {
		return nil
	}
	f, err := os.Open(b.path)
	if err != nil {
		return fmt.Errorf("playbook branch %q: %w", b.name, err)
	}
	defer f.Close()
	r := bufio.NewReaderSize(io.NewSectionReader(f, entries[0].offset, 1<<62), 1<<18)
	var line []byte
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if cap(line) < e.length {
			line = make([]byte, 2*e.length)
		}
		line = line[:e.length]
		if _, err := io.ReadFull(r, line); err != nil {
			return fmt.Errorf("playbook branch %q: %w", b.name, err)
		}
		v := Version{}
		if err := json.Unmarshal(line, &v); err != nil || v.Hash != e.hash {
			return fmt.Errorf("%w: %s, line %d is not what it was: %v", ErrCorrupt, b.path, e.index+2, err)
		}
		fn(e.index+1, &v)
	}
	return nil
}
