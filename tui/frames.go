package tui

import (
	"sync"
	"time"

	"acescope/sources"
)

// rateSeconds is how many whole seconds a rate of frames looks back.
const rateSeconds = 10

// Frames counts what the console draws, so that somebody else can tell. It is safe for
// concurrent use; the zero value has counted nothing.
type Frames struct {
	mu      sync.Mutex
	now     func() time.Time // nil for time.Now
	seconds [rateSeconds + 1]frameSecond
	count   sources.Screen
	seq     uint64 // of the newest snapshot
}

type frameSecond struct {
	at     int64
	frames int
	worst  time.Duration
}

// drew counts a frame that took so long.
func (f *Frames) drew(took time.Duration) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count.Frames++
	at := f.clock().Unix()
	s := &f.seconds[at%int64(len(f.seconds))]
	if s.at != at {
		*s = frameSecond{at: at}
	}
	s.frames++
	s.worst = max(s.worst, took)
}

// got counts a snapshot, and those that it replaced before they were shown.
func (f *Frames) got(s *sources.Snapshot) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.Seq > f.seq {
		f.count.Shown++
		f.count.Skipped += s.Seq - f.seq - 1
		f.seq = s.Seq
	}
}

// Screen is what was counted: the rate and the slowest frame are of the last whole ten
// seconds.
func (f *Frames) Screen() sources.Screen {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, now, frames := f.count, f.clock().Unix(), 0
	for _, s := range f.seconds {
		if age := now - s.at; age >= 1 && age <= rateSeconds {
			frames += s.frames
			c.Slowest = max(c.Slowest, s.worst)
		}
	}
	c.PerSecond = float64(frames) / rateSeconds
	return c
}

func (f *Frames) clock() time.Time {
	if f.now != nil {
		return f.now()
	}
	return time.Now()
}
