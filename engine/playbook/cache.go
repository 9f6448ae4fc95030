package playbook

import (
	"container/list"
	"sync"
)

// cachedBooks is how many playbooks a store keeps in memory.
const cachedBooks = 128

// bookCache keeps the playbooks that were used last.
type bookCache struct {
	mu    sync.Mutex
	order *list.List // of *cached, the newest first
	index map[string]*list.Element
}

type cached struct {
	hash string
	book *Playbook
}

func newBookCache() *bookCache {
	return &bookCache{order: list.New(), index: map[string]*list.Element{}}
}

func (c *bookCache) get(hash string) *Playbook {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.index[hash]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).book
}

func (c *bookCache) add(hash string, book *Playbook) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.index[hash]; ok {
		c.order.MoveToFront(e)
		return
	}
	c.index[hash] = c.order.PushFront(&cached{hash, book})
	if c.order.Len() > cachedBooks {
		oldest := c.order.Back()
		delete(c.index, c.order.Remove(oldest).(*cached).hash)
	}
}
