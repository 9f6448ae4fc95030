package playbook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"acescope/engine/store/bucket"
)

// slowBucket delays every call and counts the calls. It fails those after which n is a multiple of failEvery.
type slowBucket struct {
	bucket.Bucket
	delay     time.Duration
	failEvery int

	mu    sync.Mutex
	calls map[string]int // by kind
	n     int
}

var errAway = fmt.Errorf("%w: away", bucket.ErrUnavailable)

func (b *slowBucket) call(kind string) error {
	time.Sleep(b.delay)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls[kind]++
	if b.n++; b.failEvery > 0 && b.n%b.failEvery == 0 {
		return errAway
	}
	return nil
}

func (b *slowBucket) Create(ctx context.Context, key string, content io.Reader) error {
	failed := b.call("create")
	err := b.Bucket.Create(ctx, key, content)
	if err == nil && failed != nil {
		return failed // it was created, but the answer is lost
	}
	if errors.Is(err, bucket.ErrExists) {
		b.mu.Lock()
		b.calls["refused"]++
		b.mu.Unlock()
	}
	return err
}

func (b *slowBucket) Put(ctx context.Context, key string, content io.Reader) error {
	if err := b.call("put"); err != nil {
		return err
	}
	return b.Bucket.Put(ctx, key, content)
}

func (b *slowBucket) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := b.call("open"); err != nil {
		return nil, err
	}
	return b.Bucket.Open(ctx, key)
}

// slowMachines returns the stores of two machines that share a bucket, and the bucket as each of them sees
// it.
func slowMachines(t *testing.T, delay time.Duration) (stores []*Store, buckets []*slowBucket) {
	t.Helper()
	dir := t.TempDir()
	for range 2 {
		b, err := bucket.Make(t.Context(), "file://"+dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		slow := &slowBucket{Bucket: b, delay: delay, calls: map[string]int{}}
		s, err := OpenShared(t.TempDir(), slow, "team")
		if err != nil {
			t.Fatal(err)
		}
		stores, buckets = append(stores, s), append(buckets, slow)
	}
	return stores, buckets
}

// Merges of two machines, eight at a time on each, into a store with a second per call and lost answers: each
// delta is merged once, however often it is repeated, and none waits longer than for those before it.
func TestSlowStore(t *testing.T) {
	const each, delay = 8, time.Second
	synctest.Test(t, func(t *testing.T) {
		stores, buckets := slowMachines(t, delay)
		start(t, stores[0], "b", &Playbook{})
		if err := stores[1].Sync(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for _, b := range buckets {
			b.failEvery = 5
		}
		var all sync.WaitGroup
		for m, s := range stores {
			for i := range each {
				all.Go(func() {
					for {
						_, err := s.Merge(t.Context(), request("b", m*each+i))
						if err == nil {
							return
						}
						if !errors.Is(err, bucket.ErrUnavailable) {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		all.Wait()
		took := time.Since(began)
		var want []string
		for _, b := range buckets {
			b.failEvery = 0
		}
		for m, s := range stores {
			if err := s.Sync(t.Context(), "b"); err != nil {
				t.Fatal(err)
			}
			page, err := s.Page("b", 1, 1000)
			if err != nil || len(page) != 2*each {
				t.Fatalf("machine %d has %d merges, %v", m, len(page), err)
			}
			var hashes, tasks []string
			for _, v := range page {
				hashes, tasks = append(hashes, v.Hash), append(tasks, v.TaskID)
				if book, err := stores[1-m].books.fetch(t.Context(), v.Hash); err != nil ||
					book.Hash() != v.Hash {
					t.Errorf("the whole version %d: %v", v.Seq, err)
				}
			}
			if want == nil {
				want = hashes
			}
			slices.Sort(tasks)
			if !slices.Equal(hashes, want) || len(slices.Compact(tasks)) != 2*each {
				t.Errorf("machine %d: %q", m, tasks)
			}
		}
		if calls := took / delay; calls > 8*2*each {
			t.Errorf("the merges took the time of %d calls, one after the other", calls)
		}
	})
}

// TestCallsOfMerges states how many calls to the store a merge costs.
func TestCallsOfMerges(t *testing.T) {
	stores, buckets := slowMachines(t, 0)
	start(t, stores[0], "b", &Playbook{})
	if err := stores[1].Sync(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	next := 0
	calls := func(m int, merges int) string {
		t.Helper()
		clear(buckets[m].calls)
		for range merges {
			next++
			merge(t, stores[m], request("b", next))
		}
		return strings.TrimPrefix(fmt.Sprint(buckets[m].calls), "map")
	}
	for _, step := range []struct {
		machine, merges int
		want            string
	}{
		{0, 1, "[create:2]"},
		{0, 1, "[create:2]"},
		{1, 1, "[create:4 open:4 refused:2]"}, // it lacks two records, and the playbook at the start
		{0, 1, "[create:3 open:1 refused:1]"},
		{1, 1, "[create:2 open:2]"}, // it expects two again, and there is one
		{0, 1, "[create:2 open:1]"},
		{1, 1, "[create:2 open:1]"}, // in turns
		{0, 1, "[create:2 open:1]"},
		{0, 1, "[create:2 open:1]"}, // it expects one, and finds no record
		{0, 1, "[create:2]"},
		{0, 20, "[create:40]"},
	} {
		if got := calls(step.machine, step.merges); got != step.want {
			t.Errorf("%d merges of machine %d: %s, want %s", step.merges, step.machine, got, step.want)
		}
	}
	// A machine that is far behind reads the records together, after a list.
	if got, want := calls(1, 1), "[create:5 open:23 refused:3]"; got != want {
		t.Errorf("far behind: %s, want %s", got, want)
	}
	v := request("b", next)
	clear(buckets[1].calls)
	v.Operations = nil
	_, err := stores[1].Merge(t.Context(), v) // it only renews the playbook
	if got := fmt.Sprint(buckets[1].calls); err != nil || got != "map[create:1 open:3 put:1 refused:1]" {
		t.Errorf("a repeated merge: %s, %v", got, err)
	}
}
