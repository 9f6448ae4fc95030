package ace

// tree is an immutable map by 64-bit hash; nil is the empty map. A change copies only the nodes on
// its path, so that the time machine can keep hundreds of states of a long run.
type tree[V any] struct {
	key   uint64
	value V
	next  [4]*tree[V] // by two bits of the key, from the lowest ones down the tree
}

func (t *tree[V]) get(key uint64) (value V, ok bool) {
	for bits := key; t != nil; bits >>= 2 {
		if t.key == key {
			return t.value, true
		}
		t = t.next[bits&3]
	}
	return value, false
}

// with returns the map with a changed value.
func (t *tree[V]) with(key uint64, value V) *tree[V] { return t.set(key, key, value) }

func (t *tree[V]) set(bits, key uint64, value V) *tree[V] {
	if t == nil {
		return &tree[V]{key: key, value: value}
	}
	own := *t
	if own.key == key {
		own.value = value
	} else {
		own.next[bits&3] = own.next[bits&3].set(bits>>2, key, value)
	}
	return &own
}

// each calls fn with each key and value, in no particular order.
func (t *tree[V]) each(fn func(key uint64, value V)) {
	if t == nil {
		return
	}
	fn(t.key, t.value)
	for _, next := range t.next {
		next.each(fn)
	}
}
