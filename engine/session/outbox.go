package session

import (
	"slices"

	"acescope/engine/ace"
)

// say gives what comes out its cursor, and drops the oldest where there is no room.
func (s *State) say(o Out) {
	s.Cursor++
	o.Cursor, o.Text = s.Cursor, ace.Cut(o.Text, 8*ace.PreviewBytes)
	s.Out = append(slices.Clone(s.Out), o)
	size := 0
	for i, o := range slices.Backward(s.Out) {
		if size += len(o.Text) + len(o.Args); size > MaxOutBytes || len(s.Out)-i > MaxOut {
			s.Lost += int64(i + 1)
			s.Out = slices.Clone(s.Out[i+1:])
			return
		}
	}
}

func (s *State) ack(cursor int64) {
	cursor = min(cursor, s.Cursor)
	if cursor <= s.Acked {
		return
	}
	s.Acked = cursor
	n := 0
	for n < len(s.Out) && s.Out[n].Cursor <= cursor {
		n++
	}
	s.Out = slices.Clone(s.Out[n:])
}

// After is what came out after a cursor, at most limit of it (0: 100).
func (s *State) After(cursor int64, limit int) Received {
	if limit <= 0 {
		limit = 100
	}
	r := Received{Messages: []Out{}, Next: cursor, Status: s.Status}
	for _, o := range s.Out {
		if o.Cursor <= cursor {
			continue
		}
		if len(r.Messages) == limit {
			break
		}
		if len(r.Messages) == 0 {
			r.Lost = o.Cursor - max(cursor, s.Acked) - 1
		}
		r.Messages, r.Next = append(r.Messages, o), o.Cursor
	}
	return r
}

// newest is the last n of a list, in a list of its own.
func newest[T any](list []T, n int) []T {
	return slices.Clone(list[max(0, len(list)-n):])
}
