package transcript

import "hash/maphash"

// maxSeen is the minimum of the newest lines, messages and calls that a fold remembers.
const maxSeen = 32 << 10

// seed is shared by all folds of a process, so that their IDs can be compared.
var seed = maphash.MakeSeed()

// idHash hashes an ID to 64 bits; collisions are improbable.
func idHash(id []byte) uint64 { return maphash.Bytes(seed, id) }

// newest remembers the values of the newest IDs in two generations: when the young one is full,
// the old one is forgotten.
type newest[V any] struct{ young, old map[uint64]V }

func (n *newest[V]) get(id uint64) (v V, ok bool) {
	if v, ok = n.young[id]; !ok {
		v, ok = n.old[id]
	}
	return v, ok
}

func (n *newest[V]) put(id uint64, v V) {
	if n.young == nil {
		n.young = map[uint64]V{}
	}
	if len(n.young) >= maxSeen {
		n.old, n.young = n.young, make(map[uint64]V, maxSeen)
	}
	n.young[id] = v
}
