package transcript

import "hash/maphash"

// seed is the same for all folds of a process, so that ids can be compared among them.
var seed = maphash.MakeSeed()

// idHash is a number for an id; two different ids have the same once in 2^64.
func idHash(id []byte) uint64 { return maphash.Bytes(seed, id) }

// maxSeen bounds the ids that a set remembers: at least so many of the newest.
const maxSeen = 32 << 10

// seen remembers the newest ids in two generations: when the younger is full, the older is
// forgotten.
type seen struct {
	young, old map[uint64]struct{}
}

// add tells whether the id is new.
func (s *seen) add(id uint64) bool {
	if s.has(id) {
		return false
	}
	if s.young == nil {
		s.young = map[uint64]struct{}{}
	}
	if len(s.young) >= maxSeen {
		s.old, s.young = s.young, make(map[uint64]struct{}, maxSeen)
	}
	s.young[id] = struct{}{}
	return true
}

func (s *seen) has(id uint64) bool {
	if _, ok := s.young[id]; ok {
		return true
	}
	_, ok := s.old[id]
	return ok
}
