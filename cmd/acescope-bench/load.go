package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	concurrency = 8
	warmup      = 16 // tasks before the clock starts
	// warmupFrom numbers them apart from those that count.
	warmupFrom = 900_000
)

// runner runs one task to its end.
type runner interface {
	one(ctx context.Context, n int) error
	close() error
}

// mark is a stretch of a load run, a line of its child. CPU is that of the process
// which holds the server, the worker and the starting client.
type mark struct {
	Done    int     `json:"done"` // tasks at its end
	Tasks   int     `json:"tasks"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu"` // seconds
	PeakMB  float64 `json:"peak_mb"`
}

func (m mark) perSecond() float64 { return float64(m.Tasks) / m.Seconds }
func (m mark) cpuMS() float64     { return m.CPU * 1000 / float64(m.Tasks) }

// load runs tasks, so many at a time, and tells of each stretch.
func load(ctx context.Context, s spec) error {
	r, err := openRunner(ctx, s)
	if err != nil {
		return err
	}
	err = many(ctx, r, warmupFrom, warmup, func(int) error { return nil })
	if err == nil {
		err = loadMarked(ctx, s, r)
	}
	return errors.Join(err, r.close())
}

func openRunner(ctx context.Context, s spec) (runner, error) {
	if s.Variant == bare {
		return openBare(ctx, s)
	}
	return openOurs(ctx, s.Dir, &noop{calls: calls, linger: s.linger()})
}

// loadMarked writes a profile of the first stretch and one of the last.
func loadMarked(ctx context.Context, s spec, r runner) error {
	stop, err := profile(s, s.Name+"-first")
	if err != nil {
		return err
	}
	at, cpu := time.Now(), ownCPU()
	err = many(ctx, r, 0, s.Tasks, func(done int) error {
		if done%s.Every != 0 {
			return nil
		}
		stop()
		m := mark{Done: done, Tasks: s.Every, Seconds: time.Since(at).Seconds(), CPU: (ownCPU() - cpu).Seconds()}
		var u syscall.Rusage
		if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
			m.PeakMB = peakMB(&u)
		}
		stop = func() {}
		if done == s.Tasks-s.Every {
			if stop, err = profile(s, s.Name+"-last"); err != nil {
				return err
			}
		}
		at, cpu = time.Now(), ownCPU()
		return tell(m)
	})
	stop()
	return err
}

// many runs count tasks, numbered from the first, and calls fn as each ends, one call
// at a time, with how many have ended.
func many(ctx context.Context, r runner, from, count int, fn func(done int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	done := 0
	for range concurrency {
		wg.Go(func() {
			for n := int(next.Add(1)) - 1; n < count && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				err := r.one(ctx, from+n)
				mu.Lock()
				if done++; err == nil {
					err = fn(done)
				}
				mu.Unlock()
				if err != nil {
					cancel(fmt.Errorf("task %d: %w", from+n, err))
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
