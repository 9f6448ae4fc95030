package codec

import "time"

// Status is how a codec server does.
type Status struct {
	OK       bool
	Reason   string    // why not, in one line; also while only some payloads fail
	Since    time.Time // of the last change of OK or Reason, zero before the first request
	Next     time.Time // when it is asked again, zero while it is not left alone
	Requests int64
	Decoded  int64 // payloads
	Failed   int64 // payloads that stayed as they are, each time that they were read
}

// Status is how the server does now.
func (s *Server) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Changes holds one token while there is a change of OK or Reason that nobody has taken.
func (s *Server) Changes() <-chan struct{} { return s.changed }

// Name is the endpoint as it can be shown: without a password.
func (s *Server) Name() string { return s.name }

func (s *Server) count(fn func(*Status)) {
	s.mu.Lock()
	fn(&s.status)
	s.mu.Unlock()
}

// settle notes how the server does. A reason that is known already is no change.
func (s *Server) settle(ok bool, reason string) {
	s.mu.Lock()
	same := !s.status.Since.IsZero() && s.status.OK == ok && s.status.Reason == reason
	first := s.status.Since.IsZero() && ok && reason == ""
	if !same {
		s.status.OK, s.status.Reason, s.status.Since = ok, reason, s.now()
	}
	s.mu.Unlock()
	if !same && !first {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
}

// Retry forgets what failed, so that it is tried again at once when it is read.
func (s *Server) Retry() {
	s.mu.Lock()
	s.failed, s.pause, s.status.Next = map[digest]failure{}, 0, time.Time{}
	if s.status.OK {
		s.status.Reason = ""
	}
	s.mu.Unlock()
}
