package playbook

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"gonum.org/v1/gonum/floats"

	"acescope/engine/ace"
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
	groups := nearGroups{}
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
		groups.add(book, leader, i, most)
	}
	return groups.list()
}

// NearVectors is like [NearDuplicates], but the similarity of two bullets is the cosine of their vectors,
// which have the length 1.
func NearVectors(book *Playbook, vectors [][]float64, share float64) []Near {
	groups := nearGroups{}
	var leaders []int
	for i, v := range vectors {
		leader, most := -1, 0.0
		for _, j := range leaders {
			if similarity := min(floats.Dot(v, vectors[j]), 1); similarity >= share && similarity > most {
				leader, most = j, similarity
			}
		}
		if leader < 0 {
			leaders = append(leaders, i)
			continue
		}
		groups.add(book, leader, i, most)
	}
	return groups.list()
}

// nearGroups holds groups by the positions of their leaders.
type nearGroups map[int]*Near

func (n nearGroups) add(book *Playbook, leader, i int, similarity float64) {
	g := n[leader]
	if g == nil {
		g = &Near{IDs: []string{book.Bullets[leader].ID}, Share: 1}
		n[leader] = g
	}
	g.IDs = append(g.IDs, book.Bullets[i].ID)
	g.Share = min(g.Share, similarity)
	g.Most = max(g.Most, similarity)
}

// list returns the groups, the most similar first.
func (n nearGroups) list() []Near {
	list := make([]Near, 0, len(n))
	for _, leader := range slices.Sorted(maps.Keys(n)) {
		list = append(list, *n[leader])
	}
	slices.SortStableFunc(list, func(a, b Near) int { return cmp.Compare(b.Most, a.Most) })
	return list
}

// Deduplicate returns the operations without the additions to a playbook that are near-duplicates, which are
// rejected, and with merges of the near-duplicates that the playbook has. near finds the groups; their first
// bullets remain. measure says what was compared.
func Deduplicate(
	p *Playbook, ops []ace.Operation, measure string, near func(*Playbook) ([]Near, error),
) (kept, repeated []ace.Operation, err error) {
	after, done := Apply(p, ops)
	added := map[string]int{} // operation by the ID of its bullet
	for i, op := range done {
		if op.Type == ace.OpAdd && op.Outcome == ace.OutcomeAccepted {
			added[op.BulletID] = i
		}
	}
	var old, young []Bullet
	for _, b := range after.Bullets {
		if _, isNew := added[b.ID]; isNew {
			young = append(young, b)
		} else {
			old = append(old, b)
		}
	}
	groups, err := near(&Playbook{Bullets: append(old, young...)})
	if err != nil {
		return nil, nil, err
	}
	left := map[int]bool{}
	var merges []ace.Operation
	for _, g := range groups {
		like := g.IDs[0]
		if _, isNew := added[like]; isNew {
			like = "another new bullet"
		}
		how := fmt.Sprintf(", similarity at least %.2f by %s", g.Share, measure)
		merge := ace.Operation{Type: ace.OpMerge, BulletID: g.IDs[0], Reason: "near-duplicates" + how}
		for _, id := range g.IDs[1:] {
			if i, isNew := added[id]; isNew {
				left[i] = true
				repeated = append(repeated, rejected(ops[i], ace.OutcomeRejected, "near-duplicate of "+like+
					how))
			} else {
				merge.SourceIDs = append(merge.SourceIDs, id)
			}
		}
		if merge.SourceIDs != nil {
			merges = append(merges, merge)
		}
	}
	for i, op := range ops {
		if !left[i] {
			kept = append(kept, op)
		}
	}
	return append(kept, merges...), repeated, nil
}

// shingles returns the hashes of the distinct pairs of adjacent terms, or of a single term.
func shingles(content string) []uint64 {
	list := terms().FindAllString(strings.ToLower(content), -1)
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
	words = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`[\p{L}\p{Nd}\p{M}_]+|[\s\v\x{85}\p{Z}]+|(?s:.)`)
	})
	// terms matches a word or a mathematical sign.
	terms = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`[\p{L}\p{Nd}\p{M}_]+|[-+*/^=<>%]`)
	})
)
