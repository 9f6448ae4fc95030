package dataset

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"acescope/engine/ace"
	"acescope/engine/artifact"
)

// maxBatch bounds the prompts of one answer of [Loader.Load], in bytes, well under
// Temporal's limit of 2 MB for a payload.
const maxBatch = 512 << 10

// Loader reads ranges of stored data sets. It keeps the offset of every
// [stride]th task of each set it has read, so that a range is found without reading all
// that comes before it. It is safe for concurrent use.
type Loader struct {
	store *artifact.Store
	mu    sync.Mutex
	sets  map[string][]int64
}

const stride = 64

// NewLoader makes a loader on a store.
func NewLoader(store *artifact.Store) *Loader {
	return &Loader{store: store, sets: map[string][]int64{}}
}

// Load reads at most count tasks from the 0-based index from; fewer where their prompts
// would make a payload too large, but at least one. A long prompt is stored as an
// artifact and comes as its reference.
func (l *Loader) Load(ctx context.Context, set ace.Ref, from, count int) ([]ace.Task, error) {
	offsets, err := l.offsets(set)
	if err != nil {
		return nil, err
	}
	if from < 0 || count < 1 || from/stride >= len(offsets) {
		return nil, fmt.Errorf("data set %.12s has no task %d", set.SHA256, from+1)
	}
	f, err := l.store.Open(set)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := skip(f, offsets[from/stride]); err != nil {
		return nil, err
	}
	return l.read(ctx, f, set, from, count)
}

func (l *Loader) read(ctx context.Context, f io.Reader, set ace.Ref, from, count int) ([]ace.Task, error) {
	tasks := make([]ace.Task, 0, count)
	size := 0
	err := Scan(f, set.SHA256, func(t ace.Task, _ []byte) (bool, error) {
		t.Index += from - from%stride
		if t.Index < from {
			return true, nil
		}
		if len(t.Prompt) > ace.InlineBytes {
			ref, err := l.store.PutBytes(ctx, []byte(t.Prompt), "text/plain; charset=utf-8")
			if err != nil {
				return false, err
			}
			t.Prompt, t.PromptRef = "", &ref
		}
		if size += len(t.Prompt); size > maxBatch && len(tasks) > 0 {
			return false, nil
		}
		tasks = append(tasks, t)
		return len(tasks) < count, nil
	})
	return tasks, err
}

func skip(f io.Reader, n int64) error {
	if s, ok := f.(io.Seeker); ok {
		_, err := s.Seek(n, io.SeekStart)
		return err
	}
	_, err := io.CopyN(io.Discard, f, n)
	return err
}

func (l *Loader) offsets(set ace.Ref) ([]int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o, ok := l.sets[set.SHA256]; ok {
		return o, nil
	}
	f, err := l.store.Open(set)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var offsets []int64
	in := bufio.NewReaderSize(f, 1<<16)
	var at int64
	for n := 0; ; n++ {
		raw, err := readLine(in)
		if len(raw) > 0 && n%stride == 0 {
			offsets = append(offsets, at)
		}
		at += int64(len(raw))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	l.sets[set.SHA256] = offsets
	return offsets, nil
}
