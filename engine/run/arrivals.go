package run

import "slices"

// maxOfKind bounds the facts of one kind that are folded between two workflow tasks. Who
// signals more is forging: the rest counts as ignored.
const maxOfKind = 64

// arrivals are the facts that came since the last workflow task, and the state before them.
// Workflow code cannot see in which order signals of different names and the ends of its
// activities came between two tasks, so that they are folded in the order of their kinds,
// those of one kind as they came: then the fold of a history is what the workflow knows.
type arrivals struct {
	before *State
	newest *arrival
	of     [FactCancelRequested + 1]uint8 // how many of each kind
	// skipped counts those that only count, whenever they came.
	skipped int
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
	switch {
	case f.Kind == FactUnread || all.of[f.Kind] == maxOfKind:
		all.skipped++
		s.Ignored++
	case all.newest == nil || all.newest.fact.Kind <= f.Kind:
		if all.before == nil {
			before := *s
			before.Ignored -= all.skipped
			all.before = &before
		}
		all.add(f)
		s.fold(f)
	default:
		list := all.with(f)
		*s, all.newest = *all.before, nil
		s.Ignored += all.skipped
		all.of[f.Kind]++
		for _, f := range list {
			all.newest = &arrival{f, all.newest}
			s.fold(f)
		}
	}
	s.arrived = all
}

func (a *arrivals) add(f Fact) {
	a.of[f.Kind]++
	a.newest = &arrival{f, a.newest}
}

// with are the facts with one more, in the order in which they are folded.
func (a *arrivals) with(f Fact) []Fact {
	list := []Fact{f}
	for b := a.newest; b != nil; b = b.before {
		list = append(list, b.fact)
	}
	slices.Reverse(list)
	slices.SortStableFunc(list, func(a, b Fact) int { return int(a.Kind - b.Kind) })
	return list
}
