// Package feed connects every screen with its data: the view sets an ask, a reader function publishes
// immutable values for it, and the shell is woken.
//
// A feed runs at most one reader at a time, in the goroutine that calls Run. A new ask, Again and Look(false)
// cancel the reader; the next one starts after it has returned. A value published by a canceled reader is
// dropped. Only the newest value is kept. A Cell is the same for a reader that always runs and asks for
// nothing.
package feed

import (
	"context"
	"sync"
	"time"
)

// Reader publishes values for an ask until it is done or ctx ends. It may publish from several goroutines as
// long as they end before it returns. Published values must not be changed afterwards.
type Reader[Ask, Value any] func(ctx context.Context, ask Ask, publish func(Value))

// Feed connects a view with a reader. All methods but Run return at once and may be called from any
// goroutine.
type Feed[Ask comparable, Value any] struct {
	// Rest is how long a new ask must stay the same before it is read, so that a cursor that passes many rows
	// starts one reader. Set it before Run; the first ask does not wait.
	Rest time.Duration

	read Reader[Ask, Value]
	wake func()
	turn chan struct{} // one slot: the ask, Look or Again changed

	mu      sync.Mutex
	ask     Ask
	asked   bool
	looking bool
	number  uint64 // of the newest reader wanted
	done    bool   // it returned by itself: there is nothing more to read
	cancel  context.CancelFunc
	value   Value
}

// New returns a feed that reads nothing until it has an ask and is looked at. wake is called after each new
// value; it must not block.
func New[Ask comparable, Value any](wake func(), read Reader[Ask, Value]) *Feed[Ask, Value] {
	return &Feed[Ask, Value]{read: read, wake: wake, turn: make(chan struct{}, 1)}
}

// Want sets the ask, clears the value and returns true. The same ask as before changes nothing.
func (f *Feed[Ask, Value]) Want(ask Ask) (changed bool) {
	f.mu.Lock()
	if changed = f.setAsk(ask); changed {
		var none Value
		f.value = none
	}
	f.mu.Unlock()
	if changed {
		f.wake()
	}
	return changed
}

// Refine sets the ask and keeps the value of the old one until the reader publishes. The same ask changes
// nothing.
func (f *Feed[Ask, Value]) Refine(ask Ask) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.setAsk(ask)
}

// setAsk reports whether the ask is new. The lock is held.
func (f *Feed[Ask, Value]) setAsk(ask Ask) bool {
	if f.asked && f.ask == ask {
		return false
	}
	f.ask = ask
	f.asked = true
	f.restart()
	return true
}

// Look starts reading, or stops it. The last value stays, and a reader that returned by itself is not started
// again.
func (f *Feed[Ask, Value]) Look(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.looking == on {
		return
	}
	f.looking = on
	if !f.done {
		f.restart()
	}
}

// Again reads for the same ask once more. The last value stays until there is a newer one.
func (f *Feed[Ask, Value]) Again() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.restart()
}

// Value returns the newest value, or the zero value. After Want it belongs to the newest ask.
func (f *Feed[Ask, Value]) Value() Value {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.value
}

// restart cancels the reader and lets Run start the next. The lock is held.
func (f *Feed[Ask, Value]) restart() {
	f.number++
	f.done = false
	if f.cancel != nil {
		f.cancel()
	}
	select {
	case f.turn <- struct{}{}:
	default:
	}
}

// Run reads until ctx ends. It returns after the last reader has returned.
func (f *Feed[Ask, Value]) Run(ctx context.Context) {
	for ctx.Err() == nil {
		f.mu.Lock()
		number, ask, wanted := f.number, f.ask, f.asked && f.looking
		reading, cancel := context.WithCancel(ctx)
		f.cancel = cancel
		f.mu.Unlock()
		if wanted {
			f.read(reading, ask, func(v Value) { f.publish(number, v) })
			f.mu.Lock()
			f.done = number == f.number
			f.mu.Unlock()
		}
		cancel()
		for ctx.Err() == nil && f.newest() == number {
			select {
			case <-ctx.Done():
			case <-f.turn:
			}
		}
		if wanted {
			f.settle(ctx)
		}
	}
}

// settle waits until nothing has changed for Rest.
func (f *Feed[Ask, Value]) settle(ctx context.Context) {
	for f.Rest > 0 {
		rest := time.NewTimer(f.Rest)
		select {
		case <-f.turn:
			rest.Stop()
			continue
		case <-ctx.Done():
		case <-rest.C:
		}
		rest.Stop()
		return
	}
}

func (f *Feed[Ask, Value]) newest() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.number
}

func (f *Feed[Ask, Value]) publish(number uint64, v Value) {
	f.mu.Lock()
	current := number == f.number
	if current {
		f.value = v
	}
	f.mu.Unlock()
	if current {
		f.wake()
	}
}
