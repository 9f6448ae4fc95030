package garbage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/store/artifact"
	"acescope/engine/store/bucket"
)

// race runs writers and collections whose requests to the store wait for their turn. It is used in a bubble,
// whose clock is the clock of the store.
type race struct {
	*testing.T
	bucket  bucket.Bucket
	mu      sync.Mutex      // guards waiting and running
	waiting []chan struct{} // of requests, in the order of the actors
	running int
	plan    []int // the first choices
	choices []int // of the requests that had their turn
	options []int // how many requests waited at each choice
	random  *rand.Rand
}

// actor is a client of the store: a writer on one machine, or a collection.
type actor struct {
	bucket.Bucket
	race *race
	i    int
}

func (r *race) start(do func(b bucket.Bucket)) {
	a := actor{r.bucket, r, len(r.waiting)}
	r.waiting = append(r.waiting, nil)
	r.running++
	go func() {
		a.wait(artifactsPrefix)
		do(a)
		r.mu.Lock()
		r.running--
		r.mu.Unlock()
	}()
	synctest.Wait() // before the next actor extends waiting
}

// wait waits for the turn of a request for an object that a writer writes, or for the mark of a deletion.
// Other requests belong to the turn before.
func (a actor) wait(key string) {
	if strings.HasPrefix(key, artifactsPrefix) || strings.HasPrefix(key, booksPrefix) {
		turn := make(chan struct{})
		a.race.mu.Lock()
		a.race.waiting[a.i] = turn
		a.race.mu.Unlock()
		<-turn
	}
}

// run gives turns until all actors have ended: first those of the plan, then the first or a random one.
func (r *race) run() {
	for synctest.Wait(); ; synctest.Wait() {
		r.mu.Lock()
		running := r.running
		var may []int
		for i, turn := range r.waiting {
			if turn != nil {
				may = append(may, i)
			}
		}
		r.mu.Unlock()
		if running == 0 {
			return
		}
		if len(may) == 0 { // a writer waits for the end of a deletion
			time.Sleep(time.Second)
			continue
		}
		choice, n := 0, len(r.options)
		if r.random != nil {
			choice = r.random.IntN(len(may))
		} else if n < len(r.plan) {
			choice = r.plan[n]
		}
		r.choices, r.options = append(r.choices, choice), append(r.options, len(may))
		r.mu.Lock()
		turn := r.waiting[may[choice]]
		r.waiting[may[choice]] = nil
		r.mu.Unlock()
		close(turn)
	}
}

// next returns the plan of the next interleaving, and false after the last.
func (r *race) next() (plan []int, ok bool) {
	for n := len(r.choices) - 1; n >= 0; n-- {
		if r.choices[n]+1 < r.options[n] {
			return append(slices.Clone(r.choices[:n]), r.choices[n]+1), true
		}
	}
	return nil, false
}

func (a actor) Create(ctx context.Context, key string, content io.Reader) error {
	a.wait(key)
	return a.Bucket.Create(ctx, key, content)
}

func (a actor) Put(ctx context.Context, key string, content io.Reader) error {
	a.wait(key)
	return a.Bucket.Put(ctx, key, content)
}

func (a actor) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	a.wait(key)
	return a.Bucket.Open(ctx, key)
}

func (a actor) List(ctx context.Context, prefix string) iter.Seq2[bucket.Object, error] {
	a.wait(prefix)
	return a.Bucket.List(ctx, prefix)
}

func (a actor) Delete(ctx context.Context, key string) error {
	a.wait(key)
	return a.Bucket.Delete(ctx, key)
}

// memory is a shared store.
type memory map[string]*stored

type stored struct {
	content []byte
	written time.Time
}

func (m memory) Create(ctx context.Context, key string, content io.Reader) error {
	if m[key] != nil {
		return bucket.ErrExists
	}
	return m.Put(ctx, key, content)
}

func (m memory) Put(_ context.Context, key string, r io.Reader) error {
	content, err := io.ReadAll(r)
	m[key] = &stored{content, time.Now()}
	return err
}

func (m memory) Open(_ context.Context, key string) (io.ReadCloser, error) {
	if m[key] == nil {
		return nil, bucket.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(m[key].content)), nil
}

func (m memory) List(_ context.Context, prefix string) iter.Seq2[bucket.Object, error] {
	return func(yield func(bucket.Object, error) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			o := m[key]
			if strings.HasPrefix(key, prefix) && !yield(bucket.Object{Key: key, Size: int64(len(o.content)),
				Written: o.written}, nil) {
				return
			}
		}
	}
}

func (m memory) Delete(_ context.Context, key string) error {
	delete(m, key)
	return nil
}

func (memory) String() string { return "memory" }
func (memory) Close() error   { return nil }

// clocked is a directory with the clock of the bubble, which sets the times of renewed files. New files have
// the time of the file system, which is later.
type clocked struct{ bucket.Bucket }

func (b clocked) List(ctx context.Context, prefix string) iter.Seq2[bucket.Object, error] {
	return func(yield func(bucket.Object, error) bool) {
		for o, err := range b.Bucket.List(ctx, prefix) {
			if o.Key == "clock" {
				o.Written = time.Now()
			}
			if !yield(o, err) {
				return
			}
		}
	}
}

const (
	raceLimit = 48 * time.Hour
	raceAge   = 10 * 24 * time.Hour // of everything that was stored before
)

func (r *race) collect(b bucket.Bucket) {
	if _, err := Collect(r.Context(), b, NewRoots(), Options{OlderThan: raceLimit}); err != nil {
		r.Errorf("collect: %v", err)
	}
}

func (r *race) check(err error) {
	if err != nil {
		r.Error(err)
	}
}

// machine returns a machine that stores an artifact or a playbook, and reads it. A new one has an empty
// cache.
type machine interface {
	put(b bucket.Bucket) error
	read(b bucket.Bucket) error
}

type artifactMachine struct{ dir string }

const content = `{"some":"content"}`

func (m artifactMachine) open(b bucket.Bucket) (*artifact.Store, error) {
	return artifact.OpenShared(filepath.Join(m.dir, "artifacts"), b)
}

func (m artifactMachine) put(b bucket.Bucket) error {
	s, err := m.open(b)
	if err == nil {
		_, err = s.PutBytes(context.Background(), []byte(content), "")
	}
	return err
}

func (m artifactMachine) read(b bucket.Bucket) error {
	s, err := m.open(b)
	if err == nil {
		_, err = s.Get(context.Background(), ace.Ref{SHA256: fmt.Sprintf("%x",
			sha256.Sum256([]byte(content))),
			Size: int64(len(content))}, 1000)
	}
	return err
}

type bookMachine struct{ dir string }

func (m bookMachine) put(b bucket.Bucket) error {
	s, err := playbook.OpenShared(filepath.Join(m.dir, "playbooks"), b, "ns")
	if err == nil {
		_, err = s.Put(context.Background(), &playbook.Playbook{})
	}
	return err
}

func (m bookMachine) read(b bucket.Bucket) error {
	s, err := playbook.OpenShared(filepath.Join(m.dir, "playbooks"), b, "ns")
	if err == nil {
		_, err = s.Get(context.Background(), new(playbook.Playbook).Hash())
	}
	return err
}

func eachFile(dir string, do func(path string) error) error {
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			err = do(path)
		}
		return err
	})
}

// TestWritersAndCollections runs writers that store existing content again, and collections, in all
// interleavings of their requests, or in random ones if there are several of a kind. Each writer must find
// its content when it has stored it and when all collections have ended.
func TestWritersAndCollections(t *testing.T) {
	kinds := map[string]func(dir string) machine{
		"artifact": func(dir string) machine { return artifactMachine{dir} },
		"playbook": func(dir string) machine { return bookMachine{dir} },
	}
	for kind, newMachine := range kinds {
		for _, shared := range []bool{false, true} {
			for _, n := range []int{1, 2} {
				t.Run(fmt.Sprintf("%s, shared %t, %d of each", kind, shared, n), func(t *testing.T) {
					t.Parallel()
					var plan []int
					count, dir := 0, t.TempDir()
					for more := true; more && !t.Failed(); count++ {
						var random *rand.Rand
						if n > 1 {
							random = rand.New(rand.NewPCG(uint64(count), 0))
						}
						synctest.Test(t, func(t *testing.T) {
							r := &race{T: t, plan: plan, random: random}
							r.writersAndCollections(n, shared, dir, newMachine)
							if plan, more = r.next(); n > 1 {
								more = count < 40
							}
							if t.Failed() {
								t.Logf("turns %v", r.choices)
							}
						})
						if err := eachFile(dir, os.Remove); err != nil {
							t.Fatal(err)
						}
					}
					t.Logf("%d interleavings", count)
				})
			}
		}
	}
}

func (r *race) writersAndCollections(n int, shared bool, dir string, newMachine func(dir string) machine) {
	old := time.Now().Add(-raceAge)
	place := func(i int) string { return dir }
	in := func(bucket.Bucket) bucket.Bucket { return nil }
	if shared {
		m := memory{}
		r.bucket = m
		place = func(i int) string { return filepath.Join(dir, fmt.Sprint(i)) }
		in = func(b bucket.Bucket) bucket.Bucket { return b }
		r.check(newMachine(place(-1)).put(m))
		for _, o := range m {
			o.written = old
		}
	} else {
		r.check(newMachine(dir).put(nil))
		b, err := bucket.Make(r.Context(), "file://"+dir, nil)
		r.check(err)
		r.bucket = clocked{b}
		r.check(eachFile(dir, func(path string) error { return os.Chtimes(path, time.Time{}, old) }))
	}
	for i := range n {
		r.check(os.MkdirAll(place(i), 0o700))
		r.start(func(b bucket.Bucket) {
			r.check(newMachine(place(i)).put(in(b)))
			r.check(newMachine(place(n + i)).read(in(r.bucket)))
		})
		r.start(r.collect)
	}
	r.run()
	r.check(newMachine(place(2 * n)).read(in(r.bucket)))
}
