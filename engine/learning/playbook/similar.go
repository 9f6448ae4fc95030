package playbook

import (
	"cmp"
	"hash/fnv"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
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
// bullet, the leader. A bullet belongs to at most one group: that of the most similar leader.
func NearDuplicates(book *Playbook, share float64) []Near {
	index := map[uint64][]int{} // leaders by shingle
	sizes := make([]int, len(book.Bullets))
	common := make([]int, len(book.Bullets)) // number of shingles shared with each leader
	var leaders []int                        // those with common shingles
	groups := map[int]*Near{}                // by leader
	for i, b := range book.Bullets {
		set := shingles(b.Content)
		sizes[i] = len(set)
		leaders = leaders[:0]
		for _, s := range set {
			for _, j := range index[s] {
				if common[j] == 0 {
					leaders = append(leaders, j)
				}
				common[j]++
			}
		}
		leader, most := -1, 0.0
		for _, j := range leaders {
			similarity := float64(common[j]) / float64(len(set)+sizes[j]-common[j])
			common[j] = 0
			if similarity >= share && (similarity > most || similarity == most && j < leader) {
				leader, most = j, similarity
			}
		}
		if leader < 0 {
			for _, s := range set {
				index[s] = append(index[s], i)
			}
			continue
		}
		g := groups[leader]
		if g == nil {
			g = &Near{IDs: []string{book.Bullets[leader].ID}, Share: 1}
			groups[leader] = g
		}
		g.IDs = append(g.IDs, b.ID)
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

// shingles returns the hashes of the distinct pairs of adjacent terms, or of a single term.
func shingles(content string) []uint64 {
	list := terms.FindAllString(strings.ToLower(content), -1)
	if len(list) == 1 {
		list = append(list, "")
	}
	var out []uint64
	for i := range len(list) - 1 {
		h := fnv.New64a()
		_, _ = io.WriteString(h, list[i]+" "+list[i+1]) // a hash does not fail
		out = append(out, h.Sum64())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

var (
	// words matches a word, a run of white space, or a single other character.
	words = regexp.MustCompile(`[\p{L}\p{Nd}\p{M}_]+|[\s\v\x{85}\p{Z}]+|(?s:.)`)
	// terms matches a word or a mathematical sign.
	terms = regexp.MustCompile(`[\p{L}\p{Nd}\p{M}_]+|[-+*/^=<>%]`)
)
