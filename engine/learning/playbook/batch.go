package playbook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/store/bucket"
)

// Bounds of the records that are written together.
const (
	maxBatch      = 64      // records
	maxBatchBytes = 1 << 20 // after which the next record starts another batch
	// gather is the longest pause before a write to a branch that other machines also write to. During the
	// pause more records arrive, which saves calls to the store on every machine. After tryGather writes, the
	// longest pause is tried again.
	gather    = 500 * time.Millisecond
	tryGather = 16
)

// errInterrupted is the error of a request if the caller of the goroutine that was merging it canceled.
var errInterrupted = errors.New("the merge was interrupted")

// mergeTogether merges a request with all others that wait for the same branch in this process: the goroutine
// that locks the branch merges all of them with one write.
func (s *Store) mergeTogether(ctx context.Context, r *mergeRequest) error {
	path, err := s.logs.file(r.Branch, lockSuffix)
	if err != nil {
		return err
	}
	for r.err = errInterrupted; errors.Is(r.err, errInterrupted); {
		r.done = make(chan struct{})
		s.waiting.enqueue(path, r)
		unlock, err := s.logs.lockUnless(ctx, path, r.done)
		switch {
		case err != nil && s.waiting.withdraw(path, r):
			return err
		case unlock != nil:
			s.mergeWaiting(ctx, path, r.Branch)
			unlock()
		}
		<-r.done
	}
	return r.err
}

// mergeWaiting merges the requests that wait for a branch, which must be locked.
func (s *Store) mergeWaiting(ctx context.Context, path, branch string) {
	if s.shared != nil {
		s.shared.pause(ctx, branch)
	}
	for all := s.waiting.take(path); len(all) > 0; {
		n, err := s.mergeFirst(ctx, branch, all)
		for i, r := range all[:n] {
			if r.err = err; err != nil && ctx.Err() != nil && i > 0 {
				r.err = errInterrupted
			}
			close(r.done)
		}
		all = all[n:]
	}
}

// mergeFirst merges the first requests of a list. It returns their number, which is positive.
func (s *Store) mergeFirst(ctx context.Context, branch string, all []*mergeRequest) (n int, err error) {
	x, others, err := s.expected(ctx, branch)
	for refused := 0; err == nil; refused++ {
		b := batch{store: s, log: x}
		n, err = b.merge(ctx, all)
		if err == nil {
			err = b.write(ctx)
		}
		if err == nil && s.shared != nil && len(b.records) > 0 {
			s.shared.wrote(branch, len(b.records), others)
		}
		if !errors.Is(err, bucket.ErrExists) {
			return n, err
		}
		// Another machine was first. Usually it has written once; after several refusals read all its writes.
		limit := 1 << refused
		if limit >= listAfter {
			limit = 0
		}
		var read int
		x, read, err = s.currentWithin(ctx, branch, limit)
		others += read
	}
	return len(all), err
}

// batch is a sequence of merges that are written together.
type batch struct {
	store   *Store
	log     *branchLog
	head    *Playbook
	records []*mergeRequest
	size    int
}

// merge merges the first requests of a list, as many as may be written together, and returns their number,
// which is positive.
func (b *batch) merge(ctx context.Context, all []*mergeRequest) (n int, err error) {
	for _, r := range all[:min(len(all), maxBatch)] {
		if b.size > maxBatchBytes {
			break
		}
		if err = b.add(ctx, r); err != nil {
			break
		}
		n++
	}
	if n > 0 {
		return n, nil // the request that failed is the first of the next batch
	}
	return 1, err
}

// add merges a request onto the newest version.
func (b *batch) add(ctx context.Context, r *mergeRequest) (err error) {
	same := func(e entry) bool { return e.deltaID == r.DeltaID }
	if i := slices.IndexFunc(b.log.entries, same); i >= 0 {
		r.record, r.content, err = b.merged(ctx, i)
		return err
	}
	for _, earlier := range b.records {
		if earlier.DeltaID == r.DeltaID {
			r.record, r.content = earlier.record, earlier.content
			return nil
		}
	}
	if b.head == nil {
		if b.head, err = b.store.books.rebuild(ctx, b.log, len(b.log.entries)); err != nil {
			return err
		}
	}
	v, head := r.Version, b.log.head()
	if n := len(b.records); n > 0 {
		head = b.records[n-1].record.Hash
	}
	v.Hash, v.Parent, v.Bullets, v.Seq = head, head, len(b.head.Bullets), len(b.log.entries)+len(b.records)
	r.record, r.content = v, nil
	if len(v.Operations) == 0 {
		return nil
	}
	var done []ace.Operation
	b.head, done = ApplyWithin(b.head, v.Operations, v.Tokens)
	r.content = b.head.Canonical()
	v.Hash, v.Bullets, v.Operations = digest(r.content), len(b.head.Bullets), done
	v.Rationale = strings.ToValidUTF8(ace.Head(v.Rationale, maxRationale), "�")
	if v.At.IsZero() {
		v.At = time.Now()
	}
	v.At = v.At.UTC()
	v.count()
	v.Seq++
	r.record = v
	b.records = append(b.records, r)
	b.store.books.memory.Put(v.Hash, b.head)
	for _, op := range v.Operations {
		b.size += len(op.Content)
	}
	b.size += len(v.Rationale)
	return nil
}

// write appends the records to the branch. It returns [bucket.ErrExists] if the log is not up to date.
func (b *batch) write(ctx context.Context) error {
	if len(b.records) == 0 {
		return nil
	}
	content, err := b.encode()
	s, x := b.store, b.log
	if err == nil && s.shared != nil {
		err = s.shared.addEntry(ctx, x.header.Branch, len(x.entries)+1, content)
	}
	if err == nil {
		err = appendLine(x.path, x.size, content)
	}
	if err != nil {
		s.logs.forget(x)
		return err
	}
	for _, r := range b.records {
		v := r.record
		if v.Seq%snapshotEvery == 0 {
			// The merge is done. If this fails, the version is rebuilt from an earlier one.
			_ = s.books.write(v.Hash, r.content, false)
		}
		if v.Hash == v.Parent {
			r.content = nil // the store has it
		}
	}
	return nil
}

// encode returns the lines of the records.
func (b *batch) encode() ([]byte, error) {
	var content []byte
	for i, r := range b.records {
		stored := storedVersion{Version: r.record}
		stored.Branch, stored.Seq = "", 0
		if n := len(b.records); n > 1 {
			stored.Batch = [2]int{i + 1, n}
		}
		line, err := encodeLine(stored)
		if err != nil {
			return nil, fmt.Errorf("record of %s: %w", r.DeltaID, err)
		}
		content = append(content, line...)
	}
	return content, nil
}

// merged returns the record of a merge, and its playbook if the store is shared: a machine that was killed
// during the merge may have stored the record only.
func (b *batch) merged(ctx context.Context, i int) (v Version, content []byte, err error) {
	versions, err := b.log.versions(i, i+1)
	if err != nil {
		return Version{}, nil, err
	}
	if b.store.shared != nil {
		var book *Playbook
		if book, err = b.store.books.rebuild(ctx, b.log, i+1); err == nil {
			content = book.Canonical()
		}
	}
	return versions[0], content, err
}
