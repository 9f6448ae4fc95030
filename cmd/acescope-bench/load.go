package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	concurrency = 8
	// waiting is the concurrency of tasks that mostly wait: with 8 the wait itself would
	// bound the throughput.
	waiting = 24
	warmup  = 16 // tasks before the clock starts
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

// add joins two stretches of one child.
func (m mark) add(next mark) mark {
	return mark{Done: next.Done, Tasks: m.Tasks + next.Tasks, Seconds: m.Seconds + next.Seconds, CPU: m.CPU + next.CPU, PeakMB: next.PeakMB}
}

func (m mark) perSecond() float64 { return float64(m.Tasks) / m.Seconds }
func (m mark) cpuMS() float64     { return m.CPU * 1000 / float64(m.Tasks) }

// load runs tasks, so many at a time, and tells of each stretch.
func load(ctx context.Context, s spec) error {
	r, err := openRunner(ctx, s)
	if err != nil {
		return err
	}
	err = many(ctx, r, s.atOnce(), warmupFrom, warmup)
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

// loadMarked runs the tasks in stretches. A child that takes turns begins each when it
// reads a line. Profiles are of the first stretch and the last, and of the heap at the end.
func loadMarked(ctx context.Context, s spec, r runner) error {
	turns := bufio.NewReader(os.Stdin)
	for from := 0; from < s.Tasks; from += s.Every {
		if s.Turns && from >= s.Alone {
			if _, err := turns.ReadString('\n'); err != nil {
				return err
			}
		}
		stop, err := profileStretch(s, from)
		if err != nil {
			return err
		}
		at, cpu := time.Now(), ownCPU()
		err = many(ctx, r, s.atOnce(), from, s.Every)
		m := mark{Done: from + s.Every, Tasks: s.Every, Seconds: time.Since(at).Seconds(), CPU: (ownCPU() - cpu).Seconds(), PeakMB: ownPeakMB()}
		stop()
		if err == nil {
			err = tell(m)
		}
		if err != nil {
			return err
		}
	}
	return heapProfile(s, s.Name)
}

func profileStretch(s spec, from int) (stop func(), err error) {
	switch from {
	case 0:
		return profile(s, s.Name+"-first")
	case s.Tasks - s.Every:
		return profile(s, s.Name+"-last")
	}
	return func() {}, nil
}

func (s spec) atOnce() int {
	if s.LingerMS > 0 {
		return waiting
	}
	return concurrency
}

// many runs count tasks, numbered from the first, so many at a time.
func many(ctx context.Context, r runner, atOnce, from, count int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for n := int(next.Add(1)) - 1; n < count && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				if err := r.one(ctx, from+n); err != nil {
					cancel(fmt.Errorf("task %d: %w", from+n, err))
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
