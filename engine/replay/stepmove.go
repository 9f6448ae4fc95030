package replay

import "sort"

// By is what a step goes by.
type By int

// Steps go by event, by change of phase, by event that tells of a tool call, or by event
// that tells of an error.
const (
	ByEvent By = iota
	ByPhase
	ByTool
	ByError
)

// Move is the next position after pos, or with forward false the one before it, to which
// a step goes; false where there is none.
func (s *Stepper) Move(pos int, by By, forward bool) (int, bool) {
	var list []int
	switch by {
	case ByPhase:
		list = s.phases
	case ByTool:
		list = s.tools
	case ByError:
		list = s.errors
	default:
		if forward {
			return min(pos+1, len(s.events)), pos < len(s.events)
		}
		return max(pos-1, 1), pos > 1
	}
	return beside(list, pos, forward)
}

// Marks lists the positions to which steps go, ascending; nil for ByEvent. The list must
// not be changed.
func (s *Stepper) Marks(by By) []int {
	switch by {
	case ByPhase:
		return s.phases
	case ByTool:
		return s.tools
	case ByError:
		return s.errors
	}
	return nil
}

// beside is the next of an ascending list after pos, or the one before it.
func beside(list []int, pos int, forward bool) (int, bool) {
	if forward {
		if i := sort.SearchInts(list, pos+1); i < len(list) {
			return list[i], true
		}
		return pos, false
	}
	if i := sort.SearchInts(list, pos) - 1; i >= 0 {
		return list[i], true
	}
	return pos, false
}
