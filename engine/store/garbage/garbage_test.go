package garbage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"acescope/engine/store/bucket"
)

func put(t *testing.T, b bucket.Bucket, key, content string) {
	t.Helper()
	if err := b.Put(t.Context(), key, strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
}

// skewed is a bucket whose clock differs from that of this machine, and that sets the times of some objects.
type skewed struct {
	bucket.Bucket
	by  time.Duration
	age map[string]time.Duration // by key, by the clock of the store
}

func (b skewed) List(ctx context.Context, prefix string) iter.Seq2[bucket.Object, error] {
	return func(yield func(bucket.Object, error) bool) {
		for o, err := range b.Bucket.List(ctx, prefix) {
			o.Written = o.Written.Add(b.by - b.age[o.Key])
			if !yield(o, err) {
				return
			}
		}
	}
}

// Ages are those of the store's clock, and times in the future are no age.
func TestClocksDiffer(t *testing.T) {
	const limit, margin, step = 48 * time.Hour, 10 * time.Minute, time.Minute
	for _, by := range []time.Duration{-margin, 0, margin} {
		b, err := bucket.Make(t.Context(), "file://"+t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		store := skewed{b, by, map[string]time.Duration{}}
		// the first by a clock ahead
		for i, age := range []time.Duration{-margin, 0, limit - step, limit + step} {
			digest := strings.Repeat(fmt.Sprint(i), 64)
			key := "artifacts/" + digest[:2] + "/" + digest
			put(t, b, key, "x")
			store.age[key] = age
		}
		var deleted []string
		r, err := Collect(t.Context(), store, NewRoots(), Options{OlderThan: limit,
			Deleted: func(o bucket.Object) { deleted = append(deleted, o.Key[len(o.Key)-1:]) }})
		if err != nil || r.Recent.Objects != 3 || !slices.Equal(deleted, []string{"3"}) {
			t.Errorf("the store's clock differs by %s: deleted %q, %+v, %v", by, deleted, r, err)
		}
		for o := range b.List(t.Context(), "clock") {
			t.Errorf("left %s", o.Key)
		}
	}
}

func TestCollect(t *testing.T) {
	b, err := bucket.Make(t.Context(), "file://"+t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	artifact := func(content string) (digest string) {
		sum := sha256.Sum256([]byte(content))
		digest = hex.EncodeToString(sum[:])
		put(t, b, "artifacts/"+digest[:2]+"/"+digest, content)
		return digest
	}
	behind := artifact("the prompt")
	root := artifact(`{"result":{"prompt_ref":{"sha256":"` + behind + `"}}}`)
	unused := artifact("unused")
	book := strings.Repeat("b0", 32)
	put(t, b, "playbooks/b0/"+book+".json", "{}")
	put(t, b, "playbooks/c0/"+strings.Repeat("c0", 32)+".json", "{}")
	put(t, b, "branches/ns/x/00000000", "never deleted")
	put(t, b, "acescope.json", "{}")
	put(t, b, "logs/runs/w/r1/a-1-1.jsonl/m-000000000000", "kept")
	put(t, b, "logs/runs/w/r2/a-1-1.jsonl/m-000000000000", "not kept")
	put(t, b, "transcripts/w/claude/s.jsonl/m-000000000000-4", "kept")
	put(t, b, "transcripts/gone/claude/s.jsonl/m-000000000000-8", "not kept")

	roots := NewRoots()
	roots.Add([]byte("\x0a\x40" + root + "\x12, branch " + book + ", too long " + unused + "0"))
	roots.AddLogs("logs/runs/w/r1")
	var keys []string
	collect := func(olderThan time.Duration, dry bool) Report {
		t.Helper()
		keys = nil
		r, err := Collect(t.Context(), b, roots, Options{OlderThan: olderThan, DryRun: dry,
			Deleted: func(o bucket.Object) { keys = append(keys, o.Key) }})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	const all = -time.Hour
	if r := collect(time.Hour, false); r.Deleted.Objects != 0 || r.Recent.Objects != 4 ||
		r.Kept.Objects != 5 {
		t.Errorf("recent objects: %+v", r)
	}
	want := []string{"artifacts/" + unused[:2] + "/" + unused, "logs/runs/w/r2/a-1-1.jsonl/m-000000000000",
		"playbooks/c0/" + strings.Repeat("c0", 32) + ".json",
		"transcripts/gone/claude/s.jsonl/m-000000000000-8"}
	for _, dry := range []bool{true, false} {
		r := collect(all, dry)
		if slices.Sort(keys); !slices.Equal(keys, want) || r.Deleted != (Count{4, 24}) {
			t.Errorf("dry run %t: %q, %+v", dry, keys, r)
		}
	}
	if r := collect(all, false); r.Deleted.Objects != 0 || r.Kept.Objects != 5 {
		t.Errorf("the second time: %+v", r)
	}
	if got := fmt.Sprint(slices.Sorted(func(yield func(string) bool) {
		for o := range b.List(t.Context(), "") {
			if !yield(o.Key) {
				return
			}
		}
	})); !strings.Contains(got, "branches/ns/x/00000000") || !strings.Contains(got, "acescope.json") {
		t.Error(got)
	}
}

// Objects that are not needed, but kept for their age, keep those to which they refer.
func TestRecentObjectsKeepOthers(t *testing.T) {
	b, err := bucket.Make(t.Context(), "file://"+t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	store := skewed{b, 0, map[string]time.Duration{}}
	object := func(digit, content string, age time.Duration) (digest string) {
		digest = strings.Repeat(digit, 64)
		key := "artifacts/" + digest[:2] + "/" + digest
		put(t, b, key, content)
		store.age[key] = age
		return digest
	}
	const day = 24 * time.Hour
	record := object("2", `{"sha256":"`+object("1", "text", 10*day)+`"}`, 10*day)
	object("3", `{"sha256":"`+record+`"}`, day) // of a run that has not started yet
	object("4", "unused", 10*day)
	put(t, b, "logs/runs/w/r/a-1-1.jsonl/m-000000000000-4", "old\n") // of a run that is not listed yet
	store.age["logs/runs/w/r/a-1-1.jsonl/m-000000000000-4"] = 10 * day
	put(t, b, "logs/runs/w/r/a-1-1.jsonl/m-000000000004-4", "new\n")
	r, err := Collect(t.Context(), store, NewRoots(), Options{OlderThan: 2 * day})
	if err != nil || r.Deleted.Objects != 1 || r.Kept.Objects != 2 || r.Recent.Objects != 3 {
		t.Errorf("%+v, %v", r, err)
	}
}
