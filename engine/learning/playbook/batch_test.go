package playbook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"acescope/engine/store/bucket"
)

// mergeAtOnce merges deltas that all wait while the branch is locked, and returns their records.
func mergeAtOnce(t *testing.T, s *Store, first, n int) []Version {
	t.Helper()
	unlock, err := s.logs.lock(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	records := make([]Version, n)
	var all sync.WaitGroup
	for i := range records {
		all.Go(func() { records[i] = merge(t, s, request("b", first+i)) })
	}
	synctest.Wait()
	unlock()
	all.Wait()
	return records
}

// Deltas that wait for the same branch are written together, and each gets a record of its own. A batch that
// a crash cut anywhere did not happen.
func TestBatch(t *testing.T) {
	const n = snapshotEvery + 8
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := openStore(t, dir)
		start(t, s, "b", largePlaybook(16))
		alone := merge(t, s, request("b", n))
		before, err := os.ReadFile(logPath(dir, "b"))
		if err != nil {
			t.Fatal(err)
		}
		seen := map[int]bool{}
		for i, v := range mergeAtOnce(t, s, 0, n) {
			seen[v.Seq] = true
			if v.DeltaID != fmt.Sprint("delta ", i) || v.Hash == v.Parent || v.Seq < 2 || v.Seq > n+1 {
				t.Errorf("%+v", v)
			}
		}
		if log := wholeLog(t, dir, "b"); len(log) != n+1 || len(seen) != n {
			t.Errorf("%d merges, %d numbers", len(log), len(seen))
		}
		after, err := os.ReadFile(logPath(dir, "b"))
		if err != nil || !bytes.Contains(after, fmt.Appendf(nil, `"batch":[%d,%d]`, n, n)) {
			t.Fatalf("the merges were not written together: %v", err)
		}
		for end := len(before); end < len(after)-1; end += 97 {
			whole := append(bytes.Clone(after[:end]), make([]byte, 60)...)
			whole = append(whole, after[min(end+60, len(after)):]...)
			for _, torn := range [][]byte{after[:end], whole} {
				if err := os.WriteFile(logPath(dir, "b"), torn, 0o600); err != nil {
					t.Fatal(err)
				}
				if got := head(t, openStore(t, dir), "b"); got != alone.Hash {
					t.Fatalf("cut at %d: head %s, want %s", end, got, alone.Hash)
				}
			}
		}
		s = openStore(t, dir)
		if mergeAtOnce(t, s, 0, n); len(wholeLog(t, dir, "b")) != n+1 {
			t.Error("not all of the deltas were merged again")
		}
	})
}

// Damage before the last write is an error, also in a batch.
func TestDamageBeforeBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := openStore(t, dir)
		start(t, s, "b", &Playbook{})
		mergeAtOnce(t, s, 0, 3)
		merge(t, s, request("b", 3))
		log, err := os.ReadFile(logPath(dir, "b"))
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitAfter(log, []byte("\n"))
		for i := 1; i < 4; i++ {
			damaged := append(bytes.Join(lines[:i], nil),
				append(make([]byte, 8), bytes.Join(lines[i:], nil)[8:]...)...)
			if err := os.WriteFile(logPath(dir, "b"), damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if got, _, err := openStore(t, dir).Head("b"); err == nil {
				t.Errorf("line %d: head %s", i+1, got)
			}
		}
		swapped := bytes.Join([][]byte{lines[0], lines[2], lines[1], lines[3], lines[4]}, nil)
		if err := os.WriteFile(logPath(dir, "b"), swapped, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _, err := openStore(t, dir).Head("b"); err == nil {
			t.Errorf("swapped: head %s", got)
		}
	})
}

// interrupting cancels the first request that writes.
type interrupting struct {
	bucket.Bucket
	once   sync.Once
	cancel context.CancelFunc
}

func (b *interrupting) Create(ctx context.Context, key string, content io.Reader) error {
	b.once.Do(b.cancel)
	if err := ctx.Err(); err != nil {
		return err
	}
	return b.Bucket.Create(ctx, key, content)
}

// If the request that writes a batch is canceled, the others of the batch are merged nevertheless.
func TestInterruptedBatch(t *testing.T) {
	const n = 5
	synctest.Test(t, func(t *testing.T) {
		stores, _ := machines(t, 1)
		s := stores[0]
		start(t, s, "b", &Playbook{})
		unlock, err := s.logs.lock(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		s.shared.Bucket = &interrupting{Bucket: s.shared.Bucket, cancel: cancel}
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := s.Merge(ctx, request("b", 0)); err == nil {
				t.Error("the canceled request was merged")
			}
		})
		synctest.Wait() // it is the first in the queue for the lock
		for i := range n {
			all.Go(func() { merge(t, s, request("b", i+1)) })
		}
		synctest.Wait()
		gone, leave := context.WithCancel(t.Context())
		all.Go(func() {
			if _, err := s.Merge(gone, request("b", n+1)); err == nil {
				t.Error("a request that no longer waits was merged")
			}
		})
		synctest.Wait()
		leave()
		synctest.Wait()
		unlock()
		all.Wait()
		if page, err := s.Page("b", 1, 100); err != nil || len(page) != n {
			t.Errorf("%d merges, %v", len(page), err)
		}
	})
}

// Machines, among them one with an empty cache, read the batches of others; a branch with batches can be
// imported.
func TestBatchesOfMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := openStore(t, t.TempDir())
		start(t, local, "b", largePlaybook(16))
		mergeAtOnce(t, local, 0, 3)
		stores, _ := machines(t, 3)
		if n, err := stores[0].Import(t.Context(), local, "b"); err != nil || n != 3 {
			t.Fatalf("%d versions, %v", n, err)
		}
		for round := range 4 {
			for m, s := range stores[:2] {
				if err := s.Sync(t.Context()); err != nil {
					t.Fatal(err)
				}
				mergeAtOnce(t, s, 100*round+10*m+10, 4)
			}
		}
		for m, s := range stores {
			if err := s.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			page, err := s.Page("b", 1, 1000)
			if err != nil || len(page) != 3+4*2*4 {
				t.Fatalf("machine %d has %d merges, %v", m, len(page), err)
			}
			for _, v := range page {
				if book, err := s.Get(t.Context(), v.Hash); err != nil || book.Hash() != v.Hash {
					t.Errorf("version %d: %v", v.Seq, err)
				}
			}
		}
	})
}

// TestCallsOfContention states how many calls a merge costs if two machines merge 16 deltas at a time each.
func TestCallsOfContention(t *testing.T) {
	const rounds, atOnce = 20, 16
	synctest.Test(t, func(t *testing.T) {
		stores, buckets := slowMachines(t, 5*time.Millisecond)
		start(t, stores[0], "b", &Playbook{})
		if err := stores[1].Sync(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		for _, b := range buckets {
			clear(b.calls)
		}
		var all sync.WaitGroup
		for m, s := range stores {
			for i := range atOnce {
				all.Go(func() {
					for round := range rounds {
						time.Sleep(time.Duration(200+i) * time.Millisecond) // the other steps of a task
						merge(t, s, request("b", (m*atOnce+i)*rounds+round))
					}
				})
			}
		}
		all.Wait()
		total := 0
		for _, b := range buckets {
			for kind, n := range b.calls {
				if kind != "refused" { // it is a create
					total += n
				}
			}
		}
		if perMerge := float64(total) / (2 * atOnce * rounds); perMerge > 2 {
			t.Errorf("%.2f calls for each merge: %v, %v", perMerge, buckets[0].calls, buckets[1].calls)
		}
	})
}
