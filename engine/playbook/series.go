package playbook

import (
	"slices"
	"sort"
	"time"

	"acescope/engine/ace"
)

// Bounds of a series. Points that stand closer than the part of the whole that they are
// worth are left out; a series that is full gives up every other of its points.
const (
	maxCounts = 64
	maxSizes  = 1024
)

// Count is the counters of a bullet from one merge on.
type Count struct {
	Seq     int `json:"seq"`
	Helpful int `json:"helpful"`
	Harmful int `json:"harmful"`
}

// Counts is the counters of a bullet over the merges of a branch, oldest first. It holds
// the changes, at most maxCounts of them: older ones are thinned out. What was handed out
// is never changed.
type Counts []Count

func (c Counts) put(now Count) Counts {
	n := len(c)
	if n > 0 && c[n-1].Seq == now.Seq || n > 1 && now.Seq-c[n-2].Seq < (now.Seq-c[0].Seq)/maxCounts {
		c = slices.Clone(c[:n-1]) // the newest takes the place of the last
	}
	if len(c) >= maxCounts {
		c = thin(c)
	}
	return append(c, now)
}

// restart is the counters at the start of a branch.
func (c Counts) restart(b Bullet) Counts { return Counts{{0, b.Helpful, b.Harmful}} }

// thin is every other element, the first and the last among them, in a slice of its own.
func thin[T any](all []T) []T {
	kept := make([]T, 0, len(all))
	for i := 0; i < len(all)-1; i += 2 {
		kept = append(kept, all[i])
	}
	return append(kept, all[len(all)-1])
}

// At is the counters after a merge; zero before the first.
func (c Counts) At(seq int) Count {
	i := sort.Search(len(c), func(i int) bool { return c[i].Seq > seq })
	if i == 0 {
		return Count{Seq: seq}
	}
	return c[i-1]
}

// Sample is the counters at n merges evenly from the first on to the given one.
func (c Counts) Sample(to, n int) (helpful, harmful []float64) {
	if len(c) == 0 || n < 1 {
		return nil, nil
	}
	from := c[0].Seq
	for i := range n {
		at := c.At(from + (to-from)*(i+1)/n)
		helpful, harmful = append(helpful, float64(at.Helpful)), append(harmful, float64(at.Harmful))
	}
	return helpful, harmful
}

// Size is how large a playbook was after a merge: its bullets, the bytes of their
// contents, and the sums of their counters.
type Size struct {
	Seq     int       `json:"seq"`
	At      time.Time `json:"at"`
	Bullets int       `json:"bullets"`
	Bytes   int       `json:"bytes"`
	Helpful int       `json:"helpful"`
	Harmful int       `json:"harmful"`
}

// Sizes is the size of a playbook over the merges of a branch, oldest first: at most
// maxSizes points, the start and the newest always among them. What was handed out is
// never changed.
type Sizes []Size

// before is the size at a time: that of the last merge which was not later.
func (s Sizes) before(at time.Time) Size {
	i := sort.Search(len(s), func(i int) bool { return s[i].At.After(at) })
	return s[max(i-1, 0)]
}

type sizes struct {
	now Size
	all Sizes // without the newest, where that stands too close to the last
}

// list is the sizes up to the newest.
func (s *sizes) list() Sizes {
	if n := len(s.all); n == 0 || s.all[n-1].Seq == s.now.Seq {
		return s.all
	}
	return append(slices.Clip(s.all), s.now)
}

func (s *sizes) begin(at time.Time, lives map[string]*Life) {
	s.now = Size{At: at}
	for _, l := range lives {
		if !l.Gone {
			s.more(&l.Bullet, ace.OpAdd)
		}
	}
	s.all = Sizes{s.now}
}

// less takes a bullet out of the sums before an operation, more puts it back afterwards.
func (s *sizes) less(b *Bullet, op ace.OperationType) {
	if op != ace.OpAdd {
		s.sum(b, -1)
	}
}

func (s *sizes) more(b *Bullet, op ace.OperationType) {
	if op != ace.OpRemove {
		s.sum(b, 1)
	}
}

func (s *sizes) sum(b *Bullet, sign int) {
	s.now.Bullets += sign
	s.now.Bytes += sign * len(b.Content)
	s.now.Helpful += sign * b.Helpful
	s.now.Harmful += sign * b.Harmful
}

func (s *sizes) note(seq int, at time.Time) {
	s.now.Seq, s.now.At = seq, at
	if seq-s.all[len(s.all)-1].Seq < seq/maxSizes {
		return
	}
	if len(s.all) >= maxSizes {
		s.all = thin(s.all)
	}
	s.all = append(s.all, s.now)
}
