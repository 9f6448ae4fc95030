package runner

import "math/bits"

// places is a set of places in the table of runners.
type places []uint64

func (p places) has(i int) bool { return i>>6 < len(p) && p[i>>6]&(1<<(i&63)) != 0 }

func (p *places) set(i int, on bool) {
	for i>>6 >= len(*p) {
		*p = append(*p, 0)
	}
	if on {
		(*p)[i>>6] |= 1 << (i & 63)
		return
	}
	(*p)[i>>6] &^= 1 << (i & 63)
}

func (p places) count() (n int) {
	for _, w := range p {
		n += bits.OnesCount64(w)
	}
	return n
}

// both calls fn with each place that is in p and in q, in order.
func (p places) both(q places, fn func(int)) {
	for w := range min(len(p), len(q)) {
		for set := p[w] & q[w]; set != 0; set &= set - 1 {
			fn(w<<6 + bits.TrailingZeros64(set))
		}
	}
}

// each calls fn with each place, in order.
func (p places) each(fn func(int)) { p.both(p, fn) }
