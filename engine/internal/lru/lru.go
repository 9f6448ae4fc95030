// Package lru provides a cache that drops the least recently used values. Every package may import it.
package lru

import (
	"container/list"
	"sync"
)

// Cache holds values up to a limit of their total size. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	limit int
	size  func(V) int

	mu    sync.Mutex
	used  int
	order list.List // of entry, most recently used first
	byKey map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// New returns a cache. The size of a value must not change.
func New[K comparable, V any](limit int, size func(V) int) *Cache[K, V] {
	return &Cache[K, V]{limit: limit, size: size, byKey: map[K]*list.Element{}}
}

// Get returns a value, or false if it is not cached.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[key]
	if !ok {
		return value, false
	}
	c.order.MoveToFront(e)
	return e.Value.(entry[K, V]).value, true
}

// Put adds a value unless its key is cached or it would take more than a quarter of the cache.
func (c *Cache[K, V]) Put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[key]; ok {
		c.order.MoveToFront(e)
		return
	}
	size := c.size(value)
	if size > c.limit/4 {
		return
	}
	c.byKey[key] = c.order.PushFront(entry[K, V]{key, value})
	for c.used += size; c.used > c.limit; {
		oldest := c.order.Remove(c.order.Back()).(entry[K, V])
		delete(c.byKey, oldest.key)
		c.used -= c.size(oldest.value)
	}
}
