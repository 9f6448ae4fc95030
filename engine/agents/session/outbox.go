package session

import (
	"slices"

	"acescope/engine/ace"
)

// Outbox is the part of a [State] with the outgoing messages.
type Outbox struct {
	Out    []Out `json:"out,omitempty"` // not acknowledged
	Cursor int64 `json:"cursor"`        // of the newest message
	Acked  int64 `json:"acked"`
	Lost   int64 `json:"lost,omitempty"` // messages dropped before they were acknowledged
}

// emit appends a message with the next cursor and drops the oldest ones beyond the bounds.
func (b *Outbox) emit(o Out) {
	b.Cursor++
	o.Cursor = b.Cursor
	o.Text = ace.Cut(o.Text, 8*ace.PreviewBytes)
	b.Out = append(slices.Clone(b.Out), o)
	size := 0
	for i, o := range slices.Backward(b.Out) {
		if size += len(o.Text) + len(o.Args); size > MaxOutBytes || len(b.Out)-i > MaxOut {
			b.Lost += int64(i + 1)
			b.Out = slices.Clone(b.Out[i+1:])
			return
		}
	}
}

func (b *Outbox) ack(cursor int64) {
	cursor = min(cursor, b.Cursor)
	if cursor <= b.Acked {
		return
	}
	b.Acked = cursor
	b.Out = slices.DeleteFunc(slices.Clone(b.Out), func(o Out) bool { return o.Cursor <= cursor })
}

// After returns at most limit messages after a cursor (0: 100).
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
		r.Messages = append(r.Messages, o)
		r.Next = o.Cursor
	}
	return r
}

// newest returns a copy of the last n elements of a list.
func newest[T any](list []T, n int) []T {
	return slices.Clone(list[max(0, len(list)-n):])
}

// without returns a copy of a list without element i.
func without[T any](list []T, i int) []T {
	return slices.Delete(slices.Clone(list), i, i+1)
}
