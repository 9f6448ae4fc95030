package host

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"acescope/engine/internal/sleep"
)

// slots are the sessions in this process. They end the processes of agents that are idle.
type slots struct {
	maxWarm int
	maxIdle time.Duration
	log     *slog.Logger

	mu   sync.Mutex // guards byID, and agent, attempt and used of each slot
	byID map[string]*slot
}

// slot is the state of one session in this process.
type slot struct {
	id    string
	start sync.Mutex // held while a turn starts or the process is ended

	// Guarded by slots.mu:
	agent   *agent
	attempt *attempt // the newest turn, in progress or ended
	used    time.Time
}

func (l *slots) of(id string) *slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.byID[id]
	if s == nil {
		s = &slot{id: id, used: time.Now()}
		l.byID[id] = s
	}
	return s
}

// retireInterval is how often retireIdle looks for idle processes.
const retireInterval = 5 * time.Second

// retireIdle ends the processes that were idle for maxIdle, and those that were idle longest while
// more than maxWarm are idle. A session's next turn starts another process.
func (l *slots) retireIdle(life context.Context) {
	sleep.Every(life, min(retireInterval, l.maxIdle), func() {
		for s := l.excess(); s != nil; s = l.excess() {
			s.start.Lock()
			if l.excess() == s {
				l.endProcess(s)
			}
			s.start.Unlock()
		}
	})
}

// excess returns a session whose idle process is to be ended, or nil.
func (l *slots) excess() (oldest *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	idle := 0
	for _, s := range l.byID {
		if s.agent == nil || s.attempt != nil && !s.attempt.ended() {
			continue
		}
		idle++
		if oldest == nil || s.used.Before(oldest.used) {
			oldest = s
		}
	}
	if idle > l.maxWarm || idle > 0 && time.Since(oldest.used) > l.maxIdle {
		return oldest
	}
	return nil
}

// endProcess ends the process of a session, if there is one. It is called with slot.start held.
func (l *slots) endProcess(s *slot) {
	l.mu.Lock()
	a := s.agent
	l.mu.Unlock()
	if a == nil {
		return
	}
	l.log.Info("ending the agent's process", "session", s.id, "pid", a.p.Pid())
	a.close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.agent == a {
		s.agent = nil
	}
}

// warm returns the session's process if it can take the next turn, or nil.
func (l *slots) warm(s *slot) *agent {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.agent != nil && s.agent.alive() {
		return s.agent
	}
	return nil
}

func (l *slots) setAgent(s *slot, a *agent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.agent = a
}

// idle marks a session whose turn has ended, and forgets its process if that has ended too.
func (l *slots) idle(s *slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.used = time.Now()
	if s.agent != nil && !s.agent.alive() {
		s.agent = nil
	}
}

// newest returns the newest turn of a session, in progress or ended, or nil.
func (l *slots) newest(s *slot) *attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.attempt
}

// remove forgets a session that is closed.
func (l *slots) remove(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, id)
}
