package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// settle is how long a host is left alone before its idling is measured.
const settle = 5 * time.Second

// idle measures what a host uses that nobody asks anything.
func (b *bench) idle(ctx context.Context) error {
	dir, remove, err := b.fresh("idle")
	if err != nil {
		return err
	}
	defer remove()
	if err := b.idleOn(ctx, dir, "on a new data directory", "idle-new"); err != nil {
		return err
	}
	filled, err := b.ensureFilled(ctx, b.size.list)
	if err != nil {
		return err
	}
	return b.idleOn(ctx, filled, fmt.Sprintf("after %d runs", b.size.list), "idle-filled")
}

func (b *bench) idleOn(ctx context.Context, dir, what, profileAs string) (err error) {
	s, err := b.serve(ctx, dir, profileAs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := wait(ctx, settle); err != nil {
		return err
	}
	before, err := processCPU(s.cmd.Process.Pid)
	if err != nil {
		return err
	}
	length := time.Duration(b.size.idleSecs) * time.Second
	if err := wait(ctx, length); err != nil {
		return err
	}
	after, err := processCPU(s.cmd.Process.Pid)
	if err != nil {
		return err
	}
	b.report.add(row{section: "idle", what: "acescope serve, " + what, unit: "% of a core",
		ours: series{100 * float64(after-before) / float64(length)}})
	return nil
}
