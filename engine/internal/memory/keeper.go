// Package memory tunes the garbage collector of a long-running process: for speed while it works, and for
// little memory while it is idle. Besides package atstart it imports the standard library and
// golang.org/x/sys only, and every package may import it.
package memory

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	_ "acescope/engine/internal/memory/atstart"
)

// With Go's defaults, a working host spends a tenth of its processor time on garbage collection. While it
// works, the collector may use more memory to save time.
const (
	busyGC = 200 // percent
	idleGC = 100
)

// A process works if it allocates at busyRate or more. The rate is measured every interval.
const (
	every        = 2 * time.Second
	busyRate     = 8 << 20          // bytes allocated per second
	idleAfter    = 10 * time.Second // without work
	releaseEvery = 30 * time.Second // between two releases of pages while idle
)

// smallHeap is the size of a live heap, in bytes, below which an idle process collects its garbage and
// returns free memory to the system whenever it has allocated a third of its live heap. The runtime would
// collect later, and keep the memory. Collecting a larger heap costs more time than the memory is worth.
const smallHeap = 28 << 20

// Keeper tunes the garbage collector, and returns memory to the system while the process is idle. The
// environment variables GOGC and GOMEMLIMIT take precedence.
type Keeper struct {
	setGC        func(percent int)
	free         func() // collects garbage and returns free memory
	releasePages func()

	idle      bool
	allocated uint64    // bytes allocated by the process at the last measurement
	collected uint64    // allocated at the last collection while idle
	worked    time.Time // the last measurement at which the process worked
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
	k.setGC(busyGC)
	go k.run()
	return k
}

// Stop ends the keeper. It may be nil or stopped already.
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

// check decides whether the process works. allocated is the number of bytes that it has allocated so far, and
// live the number of live bytes at the last collection.
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
