package main

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
)

// firstTimes are wall-clock times of a child that starts a server and one task.
type firstTimes struct {
	Main    time.Time `json:"main"`    // the program runs
	Ready   time.Time `json:"ready"`   // the server answers and the worker polls
	Started time.Time `json:"started"` // the start of the task was acknowledged
	Began   time.Time `json:"began"`   // its first activity runs
}

// first starts a server on an empty data directory and one task there.
func first(ctx context.Context, s spec) error {
	t := firstTimes{Main: time.Now()}
	began := make(chan time.Time, 1)
	var once sync.Once
	note := func() { once.Do(func() { began <- time.Now() }) }
	start, closeAll, err := firstOf(ctx, s, note)
	if err != nil {
		return err
	}
	t.Ready = time.Now()
	if err := start(); err != nil {
		return errors.Join(err, closeAll())
	}
	t.Started = time.Now()
	select {
	case t.Began = <-began:
	case <-ctx.Done():
		return errors.Join(ctx.Err(), closeAll())
	}
	return errors.Join(tell(t), closeAll())
}

func firstOf(ctx context.Context, s spec, note func()) (start, closeAll func() error, err error) {
	if s.Variant == ours {
		r, err := openOurs(ctx, s.Dir, &noop{calls: calls, began: note})
		if err != nil {
			return nil, nil, err
		}
		return func() error { _, err := r.e.StartTask(ctx, taskInput(0)); return err }, r.close, nil
	}
	// The SDK would else compute the checksum of the whole program, some 300 ms: a
	// cost that acescope avoids and that would flatter it here.
	sdkworker.SetBinaryChecksum("bench")
	srv, err := startPlain(filepath.Join(s.Dir, "temporal.db"))
	if err != nil {
		return nil, nil, err
	}
	c, err := client.DialContext(ctx, client.Options{HostPort: srv.address, Namespace: plainNamespace, Logger: quietLog{}})
	if err != nil {
		return nil, nil, err
	}
	w, err := startBareWorker(c, note)
	if err != nil {
		return nil, nil, err
	}
	return func() error {
			_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "bare", TaskQueue: bareQueue}, bareWorkflow, bareTask{Steps: bareSteps})
			return err
		}, func() error {
			w.Stop()
			c.Close()
			return srv.stop()
		}, nil
}

// quietLog drops what the SDK says.
type quietLog struct{}

func (quietLog) Debug(string, ...any) {}
func (quietLog) Info(string, ...any)  {}
func (quietLog) Warn(string, ...any)  {}
func (quietLog) Error(string, ...any) {}
