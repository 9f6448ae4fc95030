package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"acescope/engine/ace"
	"acescope/engine/internal/sleep"
)

const (
	// guardInterval is how often a host checks its lock and its files: some ten system calls. It is
	// well below [pauseSize].
	guardInterval = time.Second
	// probeInterval is the pause between two calls by which a host checks that its server answers.
	probeInterval = 5 * time.Second
	// probeFailures is how many calls in a row must fail until the server counts as broken.
	probeFailures = 3
)

// identify records the files at the paths for [host.check].
func (h *host) identify(paths ...string) error {
	h.files = map[string]fs.FileInfo{}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return dirError(h.dir, err)
		}
		h.files[path] = info
	}
	return nil
}

// check returns an error if the server cannot continue.
func (h *host) check() error {
	if why := h.log.why(); why != "" {
		if err := storageError(h.dir, why); err != nil {
			return err
		}
		return failf(ErrBroken, nil, "the embedded Temporal server stopped working: %s (log: %s)",
			why, h.log.path())
	}
	for path, was := range h.files {
		if err := sameFile(path, was); err != nil && path == h.dir {
			return movedError(h.dir, err)
		} else if err != nil {
			return failf(ErrMoved, err, "%s was moved, deleted or replaced while this process was the host "+
				"of its server: %v; the server has stopped",
				path, err)
		}
	}
	return nil
}

var errOtherFile = errors.New("another file is there")

// sameFile returns an error if another file or no file is at the path.
func sameFile(path string, was fs.FileInfo) error {
	now, err := os.Stat(path)
	if err == nil && !os.SameFile(was, now) {
		return errOtherFile
	}
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func movedError(dir string, err error) error {
	return failf(ErrMoved, err, "data directory %s was moved, deleted or unmounted while this process "+
		"used it; start acescope again with the new --data-dir", dir)
}

// keepFiles writes the files that other processes need to find and reach this host again if they were changed
// or removed.
func (h *host) keepFiles() error {
	err := keepToken(h.dir, h.token)
	if have, ok := Lookup(h.dir); !ok || have != h.endpoint {
		err = errors.Join(err, writeJSON(h.dir, endpointFile, h.endpoint))
	}
	return errors.Join(err, stamp(h.dir, h.endpoint.Version))
}

// probe calls the server until ctx ends. It reports the server as broken when the calls fail.
func (h *host) probe(ctx context.Context) {
	failures := 0
	for sleep.For(ctx, probeInterval) == nil {
		err := h.call(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			failures = 0
			h.log.disk.Store("")
		default:
			failures++
		}
		if failures == probeFailures {
			h.log.report(strings.TrimSpace(fmt.Sprintf("it did not answer %d calls in a row: %v %s", failures,
				err, h.log.disk.Load())))
			return
		}
	}
}

// call asks for a run that does not exist, which needs the frontend, the history service and the database.
func (h *host) call(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(h.authorize(ctx), probeInterval)
	defer cancel()
	_, err := workflowservice.NewWorkflowServiceClient(h.conn).DescribeWorkflowExecution(ctx,
		&workflowservice.DescribeWorkflowExecutionRequest{
			Namespace: ace.DefaultNamespace,
			Execution: &common.WorkflowExecution{WorkflowId: "acescope-probe"},
		})
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return err
}

// guard checks a host every second and when its server breaks. It returns nil when ctx ends or when
// another process has the lock, and otherwise the reason why this process cannot host.
func (n *Node) guard(ctx context.Context, h *host) error {
	probing, stop := context.WithCancel(ctx)
	probed := make(chan struct{})
	go func() {
		defer close(probed)
		h.probe(probing)
	}()
	defer func() {
		stop()
		<-probed
	}()
	tick := time.NewTicker(guardInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.log.broken:
		case <-tick.C:
		}
		if err := h.check(); err != nil {
			return err
		}
		kept, err := n.lock.keep()
		if err == nil && !kept {
			n.opts.Logger.Error("another process locked host.lock, which was removed or replaced: this "+
				"process gives up hosting",
				"file", filepath.Join(n.dir, lockFile))
			return nil
		}
		n.noticeClock(h)
		h.clock.reloadQueues()
		if err = errors.Join(err, h.keepFiles()); err != nil {
			n.opts.Logger.Error("the host cannot repair its files; trying again", "error", err)
		}
	}
}

// noticeClock publishes a step of the clock.
func (n *Node) noticeClock(h *host) {
	step := h.clock.step()
	n.lock.writeTime(h.clock.Now())
	n.mu.Lock()
	changed := h.endpoint.Clock != step
	h.endpoint.Clock = step
	n.endpoint = h.endpoint
	n.mu.Unlock()
	if changed {
		if text := step.Warning(); text != "" {
			n.opts.Logger.Warn(text)
		}
		n.notify()
	}
}
