package compare

import (
	"cmp"
	"slices"
)

// key identifies a step, or an element of a list, in both runs. The zero key matches nothing.
type key struct {
	what string
	hash uint64
	nth  int
}

type match struct{ a, b int }

// common returns the longest common subsequence of two lists of unique keys.
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

// rising returns the longest subsequence of matches, which are ordered by a, with ascending b.
func rising(all []match) []match {
	tails := make([]int, 0, len(all)) // last match of the best subsequence of each length
	before := make([]int, len(all))
	for i, m := range all {
		at, _ := slices.BinarySearchFunc(tails, m.b, func(t, b int) int { return cmp.Compare(all[t].b, b) })
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

// align pairs corresponding steps: first those with the same input, in the order of both runs;
// between them those of the same name; and finally those that moved.
func align(as, bs []Step) []Pair {
	var pairs []Pair
	i, j := 0, 0
	gap := func(iEnd, jEnd int) {
		fromA, fromB := i, j
		named := common(keys(as[i:iEnd], byName), keys(bs[j:jEnd], byName))
		for _, m := range append(named, match{iEnd - fromA, jEnd - fromB}) {
			for ; i < fromA+m.a; i++ {
				pairs = append(pairs, Pair{A: &as[i]})
			}
			for ; j < fromB+m.b; j++ {
				pairs = append(pairs, Pair{B: &bs[j]})
			}
			if i < iEnd && j < jEnd {
				pairs = append(pairs, Pair{A: &as[i], B: &bs[j]})
				i, j = i+1, j+1
			}
		}
	}
	for _, m := range common(keys(as, byInput), keys(bs, byInput)) {
		gap(m.a, m.b)
		pairs = append(pairs, Pair{A: &as[i], B: &bs[j]})
		i, j = i+1, j+1
	}
	gap(len(as), len(bs))
	return rejoin(pairs, as, bs)
}

// byInput identifies a step by its ID or its input. A step without either has no key.
func byInput(s *Step) key {
	switch {
	case s.hasID:
		return key{what: s.ident}
	case s.inputHash != 0:
		return key{what: s.ident, hash: s.inputHash}
	}
	return key{}
}

func byName(s *Step) key { return key{what: s.ident} }

// keys returns the keys of steps, numbered among equal ones.
func keys(steps []Step, of func(*Step) key) []key {
	out := make([]key, len(steps))
	seen := map[key]int{}
	for i := range steps {
		if k := of(&steps[i]); k != (key{}) {
			seen[k]++
			out[i] = key{k.what, k.hash, seen[k]}
		}
	}
	return out
}

// rejoin pairs steps that moved: those with an ID, those with the same input, and those that
// are unique by name in both runs.
func rejoin(pairs []Pair, as, bs []Step) []Pair {
	once := map[string]bool{}
	for what, n := range tally(as) {
		once[what] = n == 1
	}
	for what, n := range tally(bs) {
		once[what] = once[what] && n == 1
	}
	keyOf := func(s *Step) key {
		if once[s.ident] {
			return byName(s)
		}
		return byInput(s)
	}
	alone := map[key][]int{}
	for i, p := range pairs {
		if p.A == nil {
			k := keyOf(p.B)
			alone[k] = append(alone[k], i)
		}
	}
	paired := map[int]bool{}
	for i := range pairs {
		p := &pairs[i]
		if p.B != nil {
			continue
		}
		k := keyOf(p.A)
		if list := alone[k]; k != (key{}) && len(list) > 0 {
			p.B = pairs[list[0]].B
			p.Moved = true
			paired[list[0]] = true
			alone[k] = list[1:]
		}
	}
	out := pairs[:0]
	for i, p := range pairs {
		if !paired[i] {
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
