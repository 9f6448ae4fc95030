package codec

import "time"

// Advance sets the server's clock forward.
func Advance(s *Server, by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = func() time.Time { return time.Now().Add(by) }
}
