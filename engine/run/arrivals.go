package run

import "slices"

// arrivals are the facts that came since the last workflow task, and the state before them.
// Workflow code cannot see in which order signals of different names and the ends of its
// activities came between two tasks, so that they are folded in the order of their kinds,
// those of one kind as they came: then the fold of a history is what the workflow knows.
type arrivals struct {
	before *State
	newest *arrival
}

// arrival is one of them, with those before it: what others have of the list stays as it is.
type arrival struct {
	fact   Fact
	before *arrival
}

// Apply folds one fact into the state.
func (s *State) Apply(f Fact) {
	switch {
	case f.Kind == FactTask:
		s.arrived = arrivals{}
	case f.arrives():
		s.arrive(f)
	default:
		s.arrived = arrivals{}
		s.fold(f)
	}
}

func (s *State) arrive(f Fact) {
	all := s.arrived
	if all.before == nil {
		before := *s
		all.before = &before
	}
	inOrder := all.newest == nil || all.newest.fact.Kind <= f.Kind
	if inOrder {
		all.newest = &arrival{f, all.newest}
		s.fold(f)
		s.arrived = all
		return
	}
	list := []Fact{f}
	for a := all.newest; a != nil; a = a.before {
		list = append(list, a.fact)
	}
	slices.Reverse(list)
	slices.SortStableFunc(list, func(a, b Fact) int { return int(a.Kind - b.Kind) })
	*s, all.newest = *all.before, nil
	for _, f := range list {
		all.newest = &arrival{f, all.newest}
		s.fold(f)
	}
	s.arrived = all
}
