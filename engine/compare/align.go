package compare

import "sort"

// key is what makes a step, or an element of a list, the same in both. The zero key is the
// same as none.
type key struct {
	what string
	hash uint64
	nth  int
}

// match is two positions that hold the same.
type match struct{ a, b int }

// common matches keys that are the same in an order that is that of both, as many as can
// be. A key must stand once in a list at the most.
func common(a, b []key) []match {
	where := make(map[key]int, len(b))
	for j, k := range b {
		where[k] = j
	}
	var all []match
	for i, k := range a {
		if j, ok := where[k]; ok && k != (key{}) {
			all = append(all, match{i, j})
		}
	}
	return rising(all)
}

// rising is the longest part of matches, which stand by a, in which b rises too.
func rising(all []match) []match {
	tails := make([]int, 0, len(all)) // of the best chain of each length, its last match
	before := make([]int, len(all))
	for i, m := range all {
		at := sort.Search(len(tails), func(t int) bool { return all[tails[t]].b >= m.b })
		before[i] = -1
		if at > 0 {
			before[i] = tails[at-1]
		}
		if at == len(tails) {
			tails = append(tails, i)
		} else {
			tails[at] = i
		}
	}
	out := make([]match, len(tails))
	if len(tails) == 0 {
		return out
	}
	for i, n := tails[len(tails)-1], len(tails)-1; n >= 0; i, n = before[i], n-1 {
		out[n] = all[i]
	}
	return out
}

// align pairs the steps that are the same thing: first those that were given the same, in
// the order of both; between them those of the same name; and in the end those that only
// stand in another place.
func align(as, bs []Step) []Pair {
	ka, kb := given(as), given(bs)
	var pairs []Pair
	i, j := 0, 0
	gap := func(iEnd, jEnd int) {
		from := i
		base := j
		na, nb := named(as[i:iEnd]), named(bs[j:jEnd])
		for _, m := range append(common(na, nb), match{iEnd - from, jEnd - base}) {
			for ; i < from+m.a; i++ {
				pairs = append(pairs, Pair{A: &as[i]})
			}
			for ; j < base+m.b; j++ {
				pairs = append(pairs, Pair{B: &bs[j]})
			}
			if i < iEnd && j < jEnd {
				pairs = append(pairs, Pair{A: &as[i], B: &bs[j]})
				i, j = i+1, j+1
			}
		}
	}
	for _, m := range common(ka, kb) {
		gap(m.a, m.b)
		pairs = append(pairs, Pair{A: &as[i], B: &bs[j]})
		i, j = i+1, j+1
	}
	gap(len(as), len(bs))
	return rejoin(pairs, as, bs)
}

// given are the keys of steps by what they are and what they were given. Those that were
// given nothing and have no name of their own have none.
func given(steps []Step) []key {
	out := make([]key, len(steps))
	seen := map[key]int{}
	for i := range steps {
		s := &steps[i]
		k := key{what: s.ident, hash: s.given}
		switch {
		case s.own: // its own name tells it
			k.hash = 0
		case s.given == 0:
			continue
		}
		n := seen[k]
		seen[k]++
		k.nth = n + 1
		out[i] = k
	}
	return out
}

// named are the keys of steps by what they are, and which of its kind.
func named(steps []Step) []key {
	out := make([]key, len(steps))
	seen := map[string]int{}
	for i := range steps {
		what := steps[i].ident
		seen[what]++
		out[i] = key{what: what, nth: seen[what]}
	}
	return out
}

// rejoin joins steps that both runs have in different places: those with a name of their
// own, those that were given the same, and those that are the only ones of their name.
func rejoin(pairs []Pair, as, bs []Step) []Pair {
	once := map[string]bool{}
	for what, n := range tally(as) {
		once[what] = n == 1
	}
	for what, n := range tally(bs) {
		once[what] = once[what] && n == 1
	}
	keyOf := func(s *Step) key {
		switch {
		case s.own || once[s.ident]:
			return key{what: s.ident, nth: -1}
		case s.given != 0:
			return key{what: s.ident, hash: s.given}
		}
		return key{}
	}
	alone := map[key][]int{}
	for i, p := range pairs {
		if p.A == nil {
			k := keyOf(p.B)
			alone[k] = append(alone[k], i)
		}
	}
	taken := map[int]bool{}
	for i := range pairs {
		p := &pairs[i]
		if p.B != nil {
			continue
		}
		k := keyOf(p.A)
		if list := alone[k]; k != (key{}) && len(list) > 0 {
			p.B, p.Moved = pairs[list[0]].B, true
			taken[list[0]], alone[k] = true, list[1:]
		}
	}
	out := pairs[:0]
	for i, p := range pairs {
		if !taken[i] {
			out = append(out, p)
		}
	}
	return out
}

func tally(steps []Step) map[string]int {
	out := map[string]int{}
	for i := range steps {
		out[steps[i].ident]++
	}
	return out
}
