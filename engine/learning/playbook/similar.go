package playbook

import (
	"cmp"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
)

// NearShare is the Jaccard similarity of the shingles of two bullets from which they are
// near-duplicates. A shingle is a pair of adjacent words or mathematical signs, so that
// "a / b" differs from "b / a".
const NearShare = 0.55

// Near is a group of bullets that say nearly the same as the first one. Share is the lowest
// and Most the highest similarity.
type Near struct {
	IDs   []string `json:"bullet_ids"` // the earliest first
	Share float64  `json:"share"`
	Most  float64  `json:"most"`
}

// NearDuplicates groups similar bullets. All bullets of a group are similar to its first
// bullet, the leader. A bullet belongs to at most one group.
//
// Only leaders are indexed, and only by their rarest shingles: two sets with so high a
// similarity must share one of these (prefix filtering).
func NearDuplicates(book *Playbook, share float64) []Near {
	sets := shingleSets(book)
	index := map[uint32][]int{} // leaders by their rare shingles
	groups := map[int]*Near{}   // by leader
	seen := make([]int, len(sets))
	for i, set := range sets {
		if len(set) == 0 {
			continue
		}
		rare := set[:len(set)-ceil(share*float64(len(set)))+1]
		leader, most := -1, 0.0
		for _, s := range rare {
			for _, j := range index[s] {
				if seen[j] == i+1 {
					continue // already compared with bullet i
				}
				seen[j] = i + 1
				if similarity := jaccard(set, sets[j], share); similarity >= share && similarity > most {
					leader, most = j, similarity
				}
			}
			if most == 1 {
				break
			}
		}
		if leader < 0 {
			for _, s := range rare {
				index[s] = append(index[s], i)
			}
			continue
		}
		g := groups[leader]
		if g == nil {
			g = &Near{IDs: []string{book.Bullets[leader].ID}, Share: 1}
			groups[leader] = g
		}
		g.IDs = append(g.IDs, book.Bullets[i].ID)
		g.Share = min(g.Share, most)
		g.Most = max(g.Most, most)
	}
	list := make([]Near, 0, len(groups))
	for _, leader := range slices.Sorted(maps.Keys(groups)) {
		list = append(list, *groups[leader])
	}
	slices.SortStableFunc(list, func(a, b Near) int { return cmp.Compare(b.Most, a.Most) })
	return list
}

func ceil(f float64) int { return max(1, int(math.Ceil(f-1e-9))) }

// shingleSets returns the distinct shingles of each bullet as numbers, rarest first. Rarer
// shingles have smaller numbers, so the sets are sorted.
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
	order := make([]uint32, len(count))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Or(count[a]-count[b], cmp.Compare(a, b)) })
	rank := make([]uint32, len(count))
	for r, n := range order {
		rank[n] = uint32(r)
	}
	for _, set := range sets {
		for j, n := range set {
			set[j] = rank[n]
		}
		slices.Sort(set)
	}
	return sets
}

// shingles returns the hashes of the distinct pairs of adjacent terms, or of a single term.
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

// jaccard returns the Jaccard similarity of two sorted sets, or 0 if their sizes show that it
// is less than least.
func jaccard(a, b []uint32, least float64) float64 {
	if float64(min(len(a), len(b))) < least*float64(max(len(a), len(b))) {
		return 0
	}
	both := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			both++
			i++
			j++
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	return float64(both) / float64(len(a)+len(b)-both)
}

type runeClass uint8

const (
	otherClass runeClass = iota
	wordClass
	spaceClass
)

func classOf(r rune) runeClass {
	switch {
	case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '_':
		return wordClass
	case unicode.IsSpace(r):
		return spaceClass
	}
	return otherClass
}

// words splits a text into words, runs of white space, and single other characters. Their
// concatenation is the text.
func words(s string) []string {
	var out []string
	from, last := 0, otherClass
	for i, r := range s {
		c := classOf(r)
		if i > from && (c != last || c == otherClass) {
			out = append(out, s[from:i])
			from = i
		}
		last = c
	}
	if from < len(s) {
		out = append(out, s[from:])
	}
	return out
}

// terms returns the lower-case words and the mathematical signs of a text in order.
func terms(s string) []string {
	var out []string
	for _, w := range words(strings.ToLower(s)) {
		r := []rune(w)[0]
		if classOf(r) == wordClass || strings.ContainsRune("+-*/^=<>%", r) {
			out = append(out, w)
		}
	}
	return out
}
