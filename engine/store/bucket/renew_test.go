package bucket

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slow is a store that needs three seconds to delete an object.
type slow struct{ Bucket }

func (b slow) Delete(ctx context.Context, key string) error {
	time.Sleep(3 * time.Second)
	return b.Bucket.Delete(ctx, key)
}

// deleteAll deletes objects and returns the names of those that were kept.
func deleteAll(t *testing.T, b Bucket) (kept string) {
	t.Helper()
	var list []Object
	for o, err := range b.List(t.Context(), "a/") {
		if err != nil {
			t.Fatal(err)
		}
		if o.Key != "a/deleting" {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(a, b Object) int { return strings.Compare(a.Key, b.Key) })
	err := DeleteOld(t.Context(), b, list, time.Now().Add(time.Hour), func(Object) {},
		func(o Object) { t.Errorf("%s was renewed", o.Key) })
	if err != nil {
		t.Fatal(err)
	}
	for o := range b.List(t.Context(), "") {
		kept += o.Key + " "
	}
	return kept
}

// A deletion that takes longer than writers wait has several batches, and ends with the last object.
func TestDeleteInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "mem://")
		for i := range maxDeleting + 3 {
			if err := b.Put(t.Context(), fmt.Sprintf("a/%03d", i), strings.NewReader("x")); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Put(t.Context(), "b/0", strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if kept := deleteAll(t, slow{b}); kept != "b/0 " {
			t.Errorf("kept %s", kept)
		}
		const batches = (maxDeleting + 3 + 6) / 7 // seven begin within 20 s
		if want := 3 * time.Second * (maxDeleting + 3 + batches); time.Since(start) != want {
			t.Errorf("%s, want %s", time.Since(start), want)
		}
	})
}

// Neither a writer nor a deletion waits for a process that was killed while it deleted a batch.
func TestKilledDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "mem://")
		store := func(key string) time.Duration {
			t.Helper()
			start := time.Now()
			if err := Store(t.Context(), b, key, strings.NewReader("x")); err != nil {
				t.Fatal(err)
			}
			return time.Since(start)
		}
		store("a/1")
		store("a/2")
		if err := b.Create(t.Context(), "a/deleting", strings.NewReader("id\n1\n3")); err != nil {
			t.Fatal(err)
		}
		for key, wait := range map[string]bool{"a/1": true, "a/2": false, "a/3": false} { // a/3 is created
			if took := store(key); took > deletingOver != wait {
				t.Errorf("%s: %s", key, took)
			}
		}
		if kept := deleteAll(t, b); kept != "" {
			t.Errorf("kept %s", kept)
		}
	})
}
