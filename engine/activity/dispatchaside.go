package activity

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"acescope/engine/runner"
)

// Bounds of what the dispatcher is told beside the workflow that says so: how much at a time,
// how long and how often it is tried, and how long the end of the process waits for it.
const (
	asideMost  = 200
	asideFor   = 5 * time.Minute
	asideEvery = time.Second
	asideClose = 2 * time.Second
)

// aside tells the dispatcher that runs have ended, while they end. What is lost of that with
// the process, the dispatcher finds out by itself: it looks after every run that holds a
// runner for more than ten seconds. So no run waits for it.
type aside struct {
	tell func(context.Context, runner.Notices) error
	log  *slog.Logger
	life context.Context
	end  context.CancelFunc
	free chan struct{}
	all  sync.WaitGroup
}

func newAside(tell func(context.Context, runner.Notices) error, log *slog.Logger) *aside {
	a := &aside{tell: tell, log: log, free: make(chan struct{}, asideMost)}
	a.life, a.end = context.WithCancel(context.Background())
	return a
}

// take takes notices over; false where there is no room, or the process ends.
func (a *aside) take(notices runner.Notices) bool {
	if a.life.Err() != nil {
		return false
	}
	select {
	case a.free <- struct{}{}:
	default:
		return false
	}
	a.all.Go(func() {
		defer func() { <-a.free }()
		a.try(notices)
	})
	return true
}

// try tells the dispatcher until it has heard.
func (a *aside) try(notices runner.Notices) {
	ctx, cancel := context.WithTimeout(a.life, asideFor)
	defer cancel()
	for {
		err := a.tell(ctx, notices)
		if err == nil {
			return
		}
		select {
		case <-time.After(asideEvery):
		case <-ctx.Done():
			a.log.Warn("the dispatcher was not told that a run has ended: it will find out", "run", notices[0].Run, "error", err)
			return
		}
	}
}

// close waits until everything is told, but not longer than so.
func (a *aside) close(most time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.all.Wait()
	}()
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
	a.end()
}
