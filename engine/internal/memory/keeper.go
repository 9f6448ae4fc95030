// Package memory tunes a process that lasts: for load while it works, and for little memory while it does
// not. It imports the standard library and golang.org/x/sys only, and every package may import it.
package memory

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// A process that works allocates a lot; with Go's defaults a host spends a tenth of its load on garbage
// collection. While it works, memory is traded for load, up to a limit.
const (
	busyGC = 200 // percent
	idleGC = 100
	limit  = 1 << 30
)

// What counts as work, and how often it is measured.
const (
	every        = 2 * time.Second
	busyRate     = 8 << 20          // bytes allocated per second
	idleAfter    = 10 * time.Second // without work
	releaseEvery = 6 * time.Second  // between two releases of pages while idle
)

// An idle process whose heap is small collects its garbage, and returns what is free, once it has allocated a
// third of its live heap: before the collector of the runtime would, which keeps the memory. A collection of
// a larger heap costs more load than the memory is worth.
const smallHeap = 28 << 20

// Keeper sets the garbage collector, and returns memory to the system when the work is over. Settings of the
// environment ($GOGC, $GOMEMLIMIT) outrank it.
type Keeper struct {
	setGC        func(percent int)
	free         func() // collects garbage and returns free memory
	releasePages func()

	idle      bool
	allocated uint64    // by the process, when it was measured last
	collected uint64    // allocated at the last collection of an idle process
	worked    time.Time // the last time
	released  time.Time

	stop        sync.Once
	done, ended chan struct{}
}

// Keep starts a keeper.
func Keep() *Keeper {
	k := &Keeper{setGC: func(percent int) { debug.SetGCPercent(percent) }, free: debug.FreeOSMemory,
		releasePages: releasePages, worked: time.Now(), done: make(chan struct{}), ended: make(chan struct{})}
	if os.Getenv("GOGC") != "" {
		k.setGC = func(int) {}
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
	k.setGC(busyGC)
	go k.run()
	return k
}

// Stop ends the keeper, which may be nil or ended already.
func (k *Keeper) Stop() {
	if k != nil {
		k.stop.Do(func() { close(k.done) })
		<-k.ended
	}
}

func (k *Keeper) run() {
	defer close(k.ended)
	tick := time.NewTicker(every)
	defer tick.Stop()
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	for {
		select {
		case <-k.done:
			return
		case now := <-tick.C:
			metrics.Read(sample)
			k.check(now, sample[0].Value.Uint64(), sample[1].Value.Uint64())
		}
	}
}

// check takes the number of bytes that the process has allocated so far, and that were live at the last
// collection.
func (k *Keeper) check(now time.Time, allocated, live uint64) {
	busy := allocated-k.allocated > busyRate*uint64(every/time.Second)
	k.allocated = allocated
	switch {
	case busy:
		k.worked = now
		if k.idle {
			k.idle = false
			k.setGC(busyGC)
		}
	case !k.idle && now.Sub(k.worked) >= idleAfter:
		k.idle = true
		k.setGC(idleGC)
		k.release(now, true)
	case k.idle && now.Sub(k.released) >= releaseEvery:
		k.release(now, live < smallHeap && allocated-k.collected > live/3)
	}
}

func (k *Keeper) release(now time.Time, collect bool) {
	k.released = now
	if collect {
		k.collected = k.allocated
		k.free()
	}
	k.releasePages()
}
