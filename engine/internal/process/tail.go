package process

import (
	"fmt"
	"slices"
	"sync"
)

// Tail is a writer that keeps the first and the last bytes. It may be read while it is written.
type Tail struct {
	mu    sync.Mutex
	first []byte
	last  []byte // at most twice as many bytes as are kept
	size  int64
	head  int
	tail  int
}

// NewTail returns a Tail that keeps head bytes of the start and tail bytes of the end.
func NewTail(head, tail int) *Tail { return &Tail{head: max(0, head), tail: max(0, tail)} }

// Write implements [io.Writer]. It never fails.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	t.size += int64(n)
	room := min(t.head-len(t.first), len(b))
	t.first = append(t.first, b[:room]...)
	b = b[room:]
	t.last = append(t.last, newest(b, t.tail)...)
	if len(t.last) > 2*t.tail {
		t.last = append(t.last[:0], newest(t.last, t.tail)...)
	}
	return n, nil
}

// newest returns the last bytes, at most the given number.
func newest(b []byte, most int) []byte { return b[max(0, len(b)-most):] }

// Size returns how many bytes were written.
func (t *Tail) Size() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size
}

func (t *Tail) dropped() int64 { return t.size - int64(len(t.first)+min(len(t.last), t.tail)) }

// Bytes returns the kept bytes. If bytes were dropped, a line in between gives their number.
func (t *Tail) Bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	var gap []byte
	if n := t.dropped(); n > 0 {
		gap = fmt.Appendf(nil, "\n… bytes left out: %d …\n", n)
	}
	return slices.Concat(t.first, gap, newest(t.last, t.tail))
}

func (t *Tail) String() string { return string(t.Bytes()) }
