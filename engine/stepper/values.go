package stepper

import (
	"encoding/json"

	"acescope/engine/kind"
)

// Change is a value that an event changed. Before is nil for a new value and After for a
// removed one.
type Change struct {
	Path   string          `json:"path"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// Text returns the change in one line.
func (c Change) Text() string {
	switch {
	case c.Before == nil:
		return c.Path + " = " + kind.Plain(c.After)
	case c.After == nil:
		return c.Path + " removed, was " + kind.Plain(c.Before)
	}
	return c.Path + ": " + kind.Plain(c.Before) + " → " + kind.Plain(c.After)
}

// diffValues lists how two lists of values differ, in the order of the second.
func diffValues(before, after []kind.Value) []Change {
	old := make(map[string]any, len(before))
	for _, v := range before {
		old[v.Path] = v.V
	}
	var list []Change
	for _, v := range after {
		was, known := old[v.Path]
		delete(old, v.Path)
		switch {
		case !known:
			list = append(list, Change{Path: v.Path, After: kind.RawOf(v.V)})
		case was != v.V:
			list = append(list, Change{Path: v.Path, Before: kind.RawOf(was), After: kind.RawOf(v.V)})
		}
	}
	for _, v := range before {
		if _, gone := old[v.Path]; gone {
			list = append(list, Change{Path: v.Path, Before: kind.RawOf(v.V)})
		}
	}
	return list
}

// Values lists all values at a position, as changes from nothing.
func (s *Stepper) Values(pos int) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return diffValues(nil, s.seek(pos).Values())
}
