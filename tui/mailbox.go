package tui

import (
	"context"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// DefaultFrame is the minimum time between two changes that reach the screen.
const DefaultFrame = time.Second / 30

// changedMsg reports that the console's data has changed.
type changedMsg struct{ status *Status }

// mailbox paces changes. Only one wait may run at a time: [Model] starts it at the
// beginning and again after each change. That command is the only user of next.
type mailbox struct {
	ctx    context.Context
	source Source
	frame  time.Duration
	next   time.Time // no change is delivered before
}

// wait returns the command that delivers the next change.
func (m *mailbox) wait() tea.Cmd {
	return func() tea.Msg {
		select {
		case <-m.ctx.Done():
			return nil
		case _, open := <-m.source.Changed():
			if !open {
				return nil
			}
		}
		select {
		case <-m.ctx.Done():
			return nil
		case <-time.After(time.Until(m.next)):
		}
		m.next = time.Now().Add(m.frame)
		return changedMsg{m.source.Status()}
	}
}

// rateSeconds is how many whole seconds the frame rate covers.
const rateSeconds = 10

// Frames counts the frames that the console draws. It is safe for concurrent use; the zero
// value is ready to use, and methods of a nil Frames do nothing.
type Frames struct {
	mu      sync.Mutex
	now     func() time.Time // nil for time.Now
	seconds [rateSeconds + 1]frameSecond
	count   Rate
	seq     uint64 // of the newest change
}

type frameSecond struct {
	at     int64
	frames int
	worst  time.Duration
}

// drawn counts a frame and how long drawing it lasted.
func (f *Frames) drawn(d time.Duration) {
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
	s.worst = max(s.worst, d)
}

// received counts a change, and the changes that it replaced before they were shown.
func (f *Frames) received(s *Status) {
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

// Rate returns the counts. The rate and the slowest frame cover the last ten whole seconds.
func (f *Frames) Rate() Rate {
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
