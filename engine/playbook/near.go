package playbook

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// NearShare is how much two bullets must have in common to be called near-duplicates: the
// part of all their shingles that both have (Jaccard). A shingle is two words or
// mathematical signs that stand side by side, so that "a / b" is not "b / a".
const NearShare = 0.55

// Near is bullets that say nearly what an earlier one says. Share is that of the least
// like, Most that of the most like.
type Near struct {
	IDs   []string `json:"bullet_ids"` // the earliest first
	Share float64  `json:"share"`
	Most  float64  `json:"most"`
}

// NearDuplicates groups bullets that are alike. Each group stands around its earliest
// bullet, to which all others of it are alike; a bullet stands in one group at most.
//
// Only bullets that begin a group are looked up, and only by their rarest shingles: two
// sets that share so large a part must share one of these (prefix filtering).
func NearDuplicates(book *Playbook, share float64) []Near {
	sets := shingleSets(book)
	index := map[uint32][]int{} // leaders by their rare shingles
	followers := map[int][]int{}
	likeness := map[int][]float64{}
	seen := make([]int, len(sets)) // by leader: the bullet it was last compared with, plus one
	var leaders []int
	for i, set := range sets {
		if len(set) == 0 {
			continue
		}
		prefix := set[:len(set)-ceil(share*float64(len(set)))+1]
		best, most := -1, 0.0
		for _, s := range prefix {
			for _, j := range index[s] {
				if seen[j] == i+1 {
					continue
				}
				seen[j] = i + 1
				if like := jaccard(set, sets[j], share); like >= share && like > most {
					best, most = j, like
				}
			}
			if most == 1 {
				break
			}
		}
		if best >= 0 {
			if followers[best] == nil {
				leaders = append(leaders, best)
			}
			followers[best] = append(followers[best], i)
			likeness[best] = append(likeness[best], most)
			continue
		}
		for _, s := range prefix {
			index[s] = append(index[s], i)
		}
	}
	groups := make([]Near, 0, len(leaders))
	for _, l := range leaders {
		g := Near{IDs: []string{book.Bullets[l].ID}, Share: slices.Min(likeness[l]), Most: slices.Max(likeness[l])}
		for _, i := range followers[l] {
			g.IDs = append(g.IDs, book.Bullets[i].ID)
		}
		groups = append(groups, g)
	}
	slices.SortStableFunc(groups, func(a, b Near) int { return cmp.Compare(b.Most, a.Most) })
	return groups
}

func ceil(f float64) int {
	n := int(f)
	if float64(n) < f-1e-9 {
		n++
	}
	return max(n, 1)
}

// shingleSets is the shingles of each bullet as numbers, the rarest in the book first, each
// once.
func shingleSets(book *Playbook) [][]uint32 {
	numbers := map[uint64]uint32{}
	var count []int
	sets := make([][]uint32, len(book.Bullets))
	for i := range book.Bullets {
		for _, s := range shingles(book.Bullets[i].Content) {
			n, ok := numbers[s]
			if !ok {
				n = uint32(len(count))
				numbers[s] = n
				count = append(count, 0)
			}
			count[n]++
			sets[i] = append(sets[i], n)
		}
	}
	for _, set := range sets {
		slices.SortFunc(set, func(a, b uint32) int { return cmp.Or(count[a]-count[b], cmp.Compare(a, b)) })
	}
	// Numbers by rarity keep the sets sorted, so that they can be merged.
	rank := make([]uint32, len(count))
	order := make([]uint32, len(count))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Or(count[a]-count[b], cmp.Compare(a, b)) })
	for r, n := range order {
		rank[n] = uint32(r)
	}
	for _, set := range sets {
		for j, n := range set {
			set[j] = rank[n]
		}
	}
	return sets
}

// shingles is the pairs of neighbouring terms, each once; of a single term, that.
func shingles(content string) []uint64 {
	list := terms(content)
	var out []uint64
	for i := range list {
		if i+1 == len(list) && len(list) > 1 {
			break
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(list[i])) // a hash does not fail
		if i+1 < len(list) {
			_, _ = h.Write([]byte{' '})
			_, _ = h.Write([]byte(list[i+1]))
		}
		out = append(out, h.Sum64())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// jaccard is the part of all members that two sorted sets both have; 0 as soon as it
// cannot be as much as least.
func jaccard(a, b []uint32, least float64) float64 {
	if float64(min(len(a), len(b))) < least*float64(max(len(a), len(b))) {
		return 0
	}
	both := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			both++
			i, j = i+1, j+1
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	return float64(both) / float64(len(a)+len(b)-both)
}
