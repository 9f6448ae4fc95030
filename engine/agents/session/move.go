package session

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// CheckMove returns why the session cannot be moved now, or nil.
func (s *State) CheckMove(m Move) error {
	switch {
	case !s.Open():
		return fmt.Errorf("the session is %s and cannot be moved; start a new one", s.Status)
	case s.Host == nil:
		return errors.New("no host has claimed the session yet")
	case m.Host.Name == "" || m.Host.Queue == "":
		return errors.New("the host has no name or no task queue")
	case m.WorkingDir != "" && !filepath.IsAbs(m.WorkingDir):
		return fmt.Errorf("working directory %q: use an absolute path", m.WorkingDir)
	}
	return nil
}

// move assigns the session to the requested host, unless a turn is in progress.
func (s *State) move() {
	if s.Move == nil || s.Current != nil || s.Host == nil {
		return
	}
	s.MovedFrom = s.Host.Name
	host := s.Move.Host
	host.Version = "" // unknown, so the first turn checks the agent
	s.Host = &host
	if s.Move.WorkingDir != "" {
		s.Input.WorkingDir = s.Move.WorkingDir
	}
	s.Move, s.Blocked = nil, nil
}

// keepsMessages reports whether messages that the agent did not get stay in the queue. A sender that
// waits for a report gets the failure instead.
func (s *State) keepsMessages() bool {
	waits := func(m Message) bool { return m.ReplyTo != "" }
	return s.Open() && s.Interrupt == nil && !slices.ContainsFunc(s.Current.Messages, waits) &&
		(s.Suspended == nil || !slices.ContainsFunc(s.Suspended.Messages, waits))
}
