package activities

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"acescope/engine/internal/sleep"
	"acescope/engine/tasks/runner"
)

// Bounds of one signal to the dispatcher.
const (
	maxSignalNotices = 500
	maxSignalBytes   = 512 << 10
	signalTimeout    = 5 * time.Second
)

// collectFor is the time for which the first notice of a signal waits for others. It is long enough for the
// notices of one workflow task. While a signal is sent, the next batch collects notices anyway.
const collectFor = 2 * time.Millisecond

// noticeBatcher combines the notices of many workflows of this process into few signals to the
// dispatcher. Signals are sent one after the other, so that repeated notices of a workflow arrive
// in order.
type noticeBatcher struct {
	send    func(context.Context, runner.Notices) error
	window  time.Duration
	running sync.WaitGroup

	mu      sync.Mutex
	waiting []*noticeSet
	busy    bool
}

// noticeSet holds the notices of one workflow.
type noticeSet struct {
	ctx     context.Context
	notices runner.Notices
	bytes   int
	done    chan error
}

func newNoticeBatcher(send func(context.Context, runner.Notices) error, window time.Duration) *noticeBatcher {
	return &noticeBatcher{send: send, window: window}
}

// deliver returns after the dispatcher received the notices.
func (b *noticeBatcher) deliver(ctx context.Context, notices runner.Notices) error {
	data, err := json.Marshal(notices)
	if err != nil {
		return permanent(err)
	}
	s := &noticeSet{ctx: ctx, notices: notices, bytes: len(data), done: make(chan error, 1)}
	b.mu.Lock()
	b.waiting = append(b.waiting, s)
	if !b.busy {
		b.busy = true
		b.running.Go(b.run)
	}
	b.mu.Unlock()
	select {
	case err := <-s.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run sends batches until no notice is waiting.
func (b *noticeBatcher) run() {
	for {
		time.Sleep(b.window)
		batch := b.next()
		if batch == nil {
			return
		}
		var all runner.Notices
		for _, s := range batch {
			all = append(all, s.notices...)
		}
		var err error
		if len(all) > 0 {
			ctx, cancel := context.WithTimeout(context.Background(), signalTimeout)
			err = b.send(ctx, all)
			cancel()
		}
		for _, s := range batch {
			s.done <- err
		}
	}
}

// next returns the next batch, or nil if no notice is waiting. It drops the notices of workflows
// that no longer wait, because these will repeat them.
func (b *noticeBatcher) next() []*noticeSet {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		b.busy = false
		return nil
	}
	n, notices, bytes := 0, 0, 0
	for n < len(b.waiting) {
		s := b.waiting[n]
		if s.ctx.Err() != nil {
			s.notices, s.bytes = nil, 0
		}
		notices, bytes = notices+len(s.notices), bytes+s.bytes
		if n > 0 && (notices > maxSignalNotices || bytes > maxSignalBytes) {
			break
		}
		n++
	}
	batch := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	return batch
}

// Bounds of notices in the background.
const (
	backgroundMost  = 200
	backgroundFor   = 5 * time.Minute
	backgroundRetry = time.Second
	backgroundClose = 2 * time.Second // wait at the end of the process
)

// background notifies the dispatcher of the ends of runs, so that no run waits for it. If a notice
// is lost with the process, the dispatcher's periodic check finds the end.
type background struct {
	send   func(context.Context, runner.Notices) error
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	all    errgroup.Group
}

func newBackground(send func(context.Context, runner.Notices) error, log *slog.Logger) *background {
	b := &background{send: send, log: log}
	b.all.SetLimit(backgroundMost)
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// add accepts notices. It returns false if there are too many or the process is ending.
func (b *background) add(notices runner.Notices) bool {
	return b.ctx.Err() == nil && b.all.TryGo(func() error {
		b.deliver(notices)
		return nil
	})
}

// deliver retries until the dispatcher received the notices.
func (b *background) deliver(notices runner.Notices) {
	ctx, cancel := context.WithTimeout(b.ctx, backgroundFor)
	defer cancel()
	for {
		err := b.send(ctx, notices)
		if err == nil {
			return
		}
		if sleep.For(ctx, backgroundRetry) != nil {
			b.log.Warn("dispatcher was not notified of the end of a run; its next check will find it",
				"run", notices[0].Run, "error", err)
			return
		}
	}
}

// close waits until everything is delivered, but gives up after the given time.
func (b *background) close(most time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = b.all.Wait()
	}()
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
	b.cancel()
	<-done
}
