package main

import (
	"context"
	"fmt"
	"time"
)

// start measures from exec to the console's first frame, and to the first task.
func (b *bench) start(ctx context.Context) error {
	if err := b.firstFrame(ctx); err != nil {
		return err
	}
	return b.firstTask(ctx)
}

// startAttempts: starts are quick and vary, so there are more of them.
func (b *bench) startAttempts() int { return 4*b.size.runs + 1 }

func (b *bench) firstFrame(ctx context.Context) error {
	wall := row{section: "start", what: "console, exec to first frame", unit: "ms", target: below(150)}
	cpu := row{section: "start", what: "console, CPU until the first frame", unit: "ms"}
	for range b.startAttempts() {
		dir, remove, err := b.fresh("console")
		if err != nil {
			return err
		}
		f, err := paint(ctx, b.acescope, "--data-dir", dir)
		remove()
		if err != nil {
			return err
		}
		wall.ours = append(wall.ours, millis(f.wall))
		if f.cpu > 0 {
			cpu.ours = append(cpu.ours, millis(f.cpu))
		}
	}
	b.report.add(wall)
	if len(cpu.ours) > 0 {
		b.report.add(cpu)
	}
	return nil
}

func (b *bench) firstTask(ctx context.Context) error {
	acknowledged := row{section: "start", what: "exec to first task started, against a plain embedded server", unit: "ms", target: atMost(1.3)}
	running := row{section: "start", what: "exec to first activity running", unit: "ms"}
	for range b.startAttempts() {
		for _, variant := range []string{ours, bare} {
			exec, t, err := b.firstOnce(ctx, variant)
			if err != nil {
				return fmt.Errorf("%s: %w", variant, err)
			}
			to, of := &acknowledged.ours, &running.ours
			if variant == bare {
				to, of = &acknowledged.peer, &running.peer
			}
			*to, *of = append(*to, millis(t.Started.Sub(exec))), append(*of, millis(t.Began.Sub(exec)))
		}
	}
	b.report.add(acknowledged, running)
	return nil
}

func (b *bench) firstOnce(ctx context.Context, variant string) (exec time.Time, t firstTimes, err error) {
	dir, remove, err := b.fresh("first")
	if err != nil {
		return exec, t, err
	}
	defer remove()
	exec = time.Now()
	err = ask(ctx, spec{Kind: kindFirst, Variant: variant, Dir: dir}, func(got firstTimes) error { t = got; return nil })
	return exec, t, err
}

// frame is how long a program took to paint.
type frame struct {
	wall time.Duration
	cpu  time.Duration // of all its threads, 0 where the system does not tell
}
