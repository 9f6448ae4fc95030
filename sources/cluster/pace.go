package cluster

import (
	"context"
	"sync"
	"time"
)

// Intervals of readers while nothing runs and no key is pressed.
const (
	quietAfter  = 10 * time.Second // without a key
	idleAfter   = time.Minute      // without a key
	quietFactor = 10               // by which a rest grows
	quietRest   = 30 * time.Second // longest rest
)

// pace slows readers down while the console is quiet: nothing runs, and the user has pressed no key for a
// while. Then the list of runs is read less often, and a change there ends the rest of all other readers.
type pace struct {
	mu    sync.Mutex
	used  time.Time     // of the last key
	still chan struct{} // closed when a run or the user stirs; nil while runs are open or change
}

// Used records that the user pressed a key, and ends the rest of all readers. It does not block.
func (p *pace) Used() { p.stir(time.Now()) }

// SetStill records whether all runs have closed and none has changed since the last reading.
func (p *pace) SetStill(still bool) {
	if !still {
		p.stir(time.Time{})
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.still == nil {
		p.still = make(chan struct{})
	}
}

func (p *pace) stir(used time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !used.IsZero() {
		p.used = used
	}
	if p.still != nil {
		close(p.still)
		p.still = nil
	}
}

// Stirred returns a channel that is closed when a run or the user stirs; nil while runs are open or change.
func (p *pace) Stirred() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.still
}

// Unused reports whether the user has pressed no key for a while.
func (p *pace) Unused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.used) >= quietAfter
}

// Quiet reports whether nothing runs and no key was pressed for a while.
func (p *pace) Quiet() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.still != nil && time.Since(p.used) >= quietAfter
}

// ListEvery returns the time between two readings of the list of runs, from that of a busy console.
func (p *pace) ListEvery(busy time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch unused := time.Since(p.used); {
	case p.still == nil || unused < quietAfter:
		return busy
	case unused < idleAfter:
		return 2 * busy
	}
	return 5 * busy
}

// Rest waits between two readings: d, and longer while the console is quiet. It returns the error of ctx if
// that ends first.
func (p *pace) Rest(ctx context.Context, d time.Duration) error {
	more := min(quietFactor*d, quietRest) - d
	if err := Sleep(ctx, d); err != nil || more <= 0 || !p.Unused() {
		return err
	}
	stirred := p.Stirred()
	if stirred == nil {
		return nil
	}
	rest := time.NewTimer(more)
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-stirred:
	case <-rest.C:
	}
	return nil
}
