package stepper

import (
	"slices"

	"acescope/engine/kind"
)

// Hashes returns the hashes of the versions in a run's [kind.Books]; "" if the run has no such version.
func (s *Stepper) Hashes() (given, before string) {
	if end := s.State(s.Len()); end != nil {
		return end.Input.PlaybookHash, end.Delta.PlaybookBefore
	}
	return "", ""
}

// Sections describes the state at a position. Items that the event changed are marked. The result is not nil.
func (s *Stepper) Sections(pos int, b kind.Books) []kind.Section {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, changed := slices.BinarySearch(s.facts, pos)
	if !changed {
		return append([]kind.Section{}, s.seek(pos).Sections(b, nil)...)
	}
	before := s.seek(pos-1).Sections(b, nil)
	after := s.seek(pos)
	known := map[string]bool{}
	for _, section := range before {
		for _, i := range section.Items {
			known[section.Title+i.Key()] = true
		}
	}
	whole := append([]kind.Section{}, after.Sections(b, s.events[pos-1])...)
	for n, section := range after.Sections(b, nil) { // like before, with previews of payloads
		for at, i := range section.Items {
			whole[n].Items[at].Changed = !known[section.Title+i.Key()]
		}
	}
	return whole
}
