package observe

import (
	"encoding/json"
	"sync"
	"sync/atomic"

	"acescope/engine/observe/spool"
)

// Buffered is the observer that writes what it is told to a spool, for a [Forwarder] in
// this or another process to deliver when Temporal is there. Several processes may write
// to one spool.
type Buffered struct {
	teller
	dir     string
	queue   chan Told
	dropped atomic.Int64
	done    sync.WaitGroup
	closing sync.Once
}

// NewBuffered makes an observer that writes to the spool in dir until it is closed.
func NewBuffered(dir string, redact Redact) *Buffered {
	b := &Buffered{dir: dir, queue: make(chan Told, MaxWaiting)}
	b.teller = teller{tell: b.take, redact: redact}
	b.done.Go(b.write)
	return b
}

// take is called with the teller's lock held, so that the order is kept.
func (b *Buffered) take(t Told) {
	defer func() {
		if recover() != nil { // it was closed
			b.dropped.Add(1)
		}
	}()
	select {
	case b.queue <- t:
	default:
		b.dropped.Add(1)
	}
}

// write takes what waits to the disk.
func (b *Buffered) write() {
	for t := range b.queue {
		data, err := json.Marshal(t)
		if err == nil {
			err = spool.Append(b.dir, spool.Event, data)
		}
		if err != nil {
			b.dropped.Add(1)
		}
	}
}

// Dropped is how many events were not kept: the disk was full, or too slow for too long.
func (b *Buffered) Dropped() int64 { return b.dropped.Load() }

// Close writes what waits and ends the observer.
func (b *Buffered) Close() {
	b.closing.Do(func() { close(b.queue) })
	b.done.Wait()
}
