package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
)

// DefaultFrame is the shortest time between two snapshots that reach the screen.
const DefaultFrame = time.Second / 30

type snapshotMsg struct{ snapshot *sources.Snapshot }

// mailbox paces snapshots. Only one wait may be under way at a time: the one that
// [Model] arms when it starts and again after each snapshot. That one command is the
// only user of next.
type mailbox struct {
	ctx   context.Context
	store SnapshotSource
	frame time.Duration
	next  time.Time // before which no snapshot may be delivered
}

// wait returns the command that delivers the next snapshot.
func (m *mailbox) wait() tea.Cmd {
	return func() tea.Msg {
		select {
		case <-m.ctx.Done():
			return nil
		case _, open := <-m.store.Changed():
			if !open {
				return nil
			}
		}
		if !m.sleep(time.Until(m.next)) {
			return nil
		}
		m.next = time.Now().Add(m.frame)
		return snapshotMsg{m.store.Snapshot()}
	}
}

// sleep waits for d and tells whether it did, rather than being stopped.
func (m *mailbox) sleep(d time.Duration) bool {
	if d <= 0 {
		return m.ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-m.ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
