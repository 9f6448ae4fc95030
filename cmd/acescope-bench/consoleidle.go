package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"
)

// watchedTerminal is a program in a terminal of its own, of which is known how much it
// writes.
type watchedTerminal struct {
	cmd   *exec.Cmd
	file  io.Closer
	bytes atomic.Int64
	cpu   func() time.Duration // of all its threads so far
}

// stop asks the program to end and waits.
func (w *watchedTerminal) stop() error {
	err := (&server{cmd: w.cmd}).stop()
	return errors.Join(err, w.file.Close())
}

// console measures what a console uses that is attached to a quiet host and that nobody
// touches.
func (b *bench) console(ctx context.Context) error {
	dir, remove, err := b.fresh("console")
	if err != nil {
		return err
	}
	defer remove()
	if err := b.consoleOn(ctx, dir, "on a new data directory"); err != nil {
		return err
	}
	filled, err := b.ensureFilled(ctx, b.size.list)
	if err != nil {
		return err
	}
	return b.consoleOn(ctx, filled, fmt.Sprintf("on %d runs", b.size.list))
}

func (b *bench) consoleOn(ctx context.Context, dir, what string) (err error) {
	s, err := b.serve(ctx, dir, "console-server")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	w, err := watchTerminal(ctx, frameWidth, frameHeight, b.acescope, "--data-dir", dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	if err := wait(ctx, settle); err != nil {
		return err
	}
	length := time.Duration(b.size.consoleSecs) * time.Second
	cpu, written := w.cpu(), w.bytes.Load()
	if err := wait(ctx, length); err != nil {
		return err
	}
	cpu, written = w.cpu()-cpu, w.bytes.Load()-written
	if err := w.cmd.Process.Signal(syscall.Signal(0)); err != nil {
		return fmt.Errorf("the console ended: %w", err)
	}
	b.report.add(row{section: "console", what: "attached and idle for " + length.String() + ", 200×50, " + what, unit: "% of a core", target: below(1),
		ours: series{100 * float64(cpu) / float64(length)}},
		row{section: "console", what: "the same, to the terminal", unit: "bytes/s", ours: series{float64(written) / length.Seconds()}})
	return nil
}
