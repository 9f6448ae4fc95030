package playbook

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// snapshotEvery is after how many merges a whole book is kept.
const snapshotEvery = 32

// Head is the newest version of a branch; false where there is no such branch.
func (s *Store) Head(name string) (hash string, ok bool, err error) {
	b, err := s.branch(name)
	if err == nil {
		err = b.refresh()
	}
	if errors.Is(err, ErrNoBranch) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	hash, _, _ = b.state()
	return hash, true, nil
}

// Start makes a branch that begins at a version, "" being the empty playbook, and gives
// its head. A branch that exists is left as it is, wherever it started.
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
	if err := b.refresh(); err == nil {
		head, _, _ = b.state()
		return head, nil
	} else if !errors.Is(err, ErrNoBranch) {
		return "", err
	}
	book := &Playbook{}
	if hash != "" {
		if book, err = s.Get(hash); err != nil {
			return "", fmt.Errorf("start playbook branch %q: %w", name, err)
		}
	}
	if hash, err = s.Put(book); err != nil {
		return "", fmt.Errorf("start playbook branch %q: %w", name, err)
	}
	line, err := encodeLine(logHeader{Format: logFormat, Branch: name, Start: hash, At: time.Now().UTC()})
	if err == nil {
		err = s.writeFile(b.path, line, true)
	}
	if err != nil {
		return "", fmt.Errorf("start playbook branch %q: %w", name, err)
	}
	return hash, b.refresh()
}

// Merge applies a delta to the newest head of a branch and makes the result the head.
// A delta that was merged before is not applied again: its first result is given. One
// with no operations leaves no record.
func (s *Store) Merge(ctx context.Context, req MergeRequest) (Merged, error) {
	if req.DeltaID == "" {
		return Merged{}, errors.New("merge playbook: the delta has no id")
	}
	b, err := s.branch(req.Branch)
	if err != nil {
		return Merged{}, err
	}
	unlock, err := b.lock(ctx)
	if err != nil {
		return Merged{}, err
	}
	defer unlock()
	if err := b.refresh(); err != nil {
		return Merged{}, err
	}
	if e, seq := b.delta(req.DeltaID); seq > 0 {
		v, err := b.version(e)
		return v.merged(seq), err
	}
	return s.merge(b, req)
}

// merge is called with the branch locked and up to date.
func (s *Store) merge(b *branch, req MergeRequest) (Merged, error) {
	before, size, n := b.state()
	book, err := s.head(b)
	if err != nil {
		return Merged{}, err
	}
	if len(req.Operations) == 0 {
		return Merged{Before: before, After: before, Bullets: len(book.Bullets), Seq: n}, nil
	}
	after, done := Apply(book, req.Operations)
	content := after.Canonical()
	v := Version{Hash: digest(content), Parent: before, DeltaID: req.DeltaID, At: req.At.UTC(), TaskID: req.TaskID,
		WorkflowID: req.WorkflowID, RunID: req.RunID, Rationale: strings.ToValidUTF8(cut(req.Rationale, maxRationale), "�"),
		Bullets: len(after.Bullets), Operations: done}
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
		return Merged{}, fmt.Errorf("merge into playbook branch %q: %w", b.name, err)
	}
	if v.Hash != before {
		s.books.add(v.Hash, after)
	}
	if (n+1)%snapshotEvery == 0 {
		// The merge is done. Without this file the book is made from an earlier one.
		_ = s.keep(v.Hash, content, false)
	}
	return v.merged(n + 1), b.refresh()
}

// head is the book at the head of a branch.
func (s *Store) head(b *branch) (*Playbook, error) {
	hash, _, n := b.state()
	if book := s.books.get(hash); book != nil {
		return book, nil
	}
	if n == 0 {
		return s.Get(hash)
	}
	return s.rebuild(b, b.span(n-1, n)[0])
}

// rebuild makes a version from the nearest whole book before it.
func (s *Store) rebuild(b *branch, e entry) (*Playbook, error) {
	from := e.index // the first merge to do again
	var book *Playbook
	entries := b.span(0, e.index+1)
	for ; from > 0; from-- {
		prior := entries[from-1].hash
		if book = s.books.get(prior); book == nil && from%snapshotEvery == 0 {
			book, _ = s.load(prior) // missing or damaged: an earlier one will do
		}
		if book != nil {
			break
		}
	}
	if book == nil {
		var err error
		if book, err = s.load(b.describe().Start); err != nil {
			return nil, fmt.Errorf("playbook branch %q: its start: %w", b.name, err)
		}
	}
	versions, err := readVersions(b.path, b.name, entries[from:])
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		book = replay(book, v.Operations)
	}
	if book.Hash() != e.hash {
		return nil, fmt.Errorf("%w: %s, line %d: its operations do not give version %s", ErrCorrupt, b.path, e.index+2, e.hash)
	}
	s.books.add(e.hash, book)
	return book, nil
}

// Log lists the merges into a branch, newest first, at most limit of them; all where
// limit is 0.
func (s *Store) Log(name string, limit int) ([]Version, error) {
	b, err := s.branch(name)
	if err == nil {
		err = b.refresh()
	}
	if err != nil {
		return nil, err
	}
	_, _, n := b.state()
	from := 0
	if limit > 0 {
		from = n - limit
	}
	versions, err := readVersions(b.path, b.name, b.span(from, n))
	slices.Reverse(versions)
	return versions, err
}

// Branches lists the branches by name. Those that can be read come with an error that
// says which cannot.
func (s *Store) Branches() ([]Branch, error) {
	all, err := s.all()
	list := make([]Branch, len(all))
	for i, b := range all {
		list[i] = b.describe()
	}
	slices.SortFunc(list, func(a, b Branch) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// branchName reads the name that the header of a log holds.
func branchName(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("playbook branch: %w", err)
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, 16<<10)).ReadBytes('\n')
	var h logHeader
	if err == nil {
		err = json.Unmarshal(line, &h)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s, line 1: %v", ErrCorrupt, path, err)
	}
	return h.Branch, nil
}
