package codec

import (
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	commonpb "go.temporal.io/api/common/v1"
)

// CacheBytes bounds the memory of cached decoded payloads.
const CacheBytes = 32 << 20

// digest identifies a payload by its content.
type digest [sha256.Size]byte

func digestOf(p *commonpb.Payload) (d digest) {
	h := sha256.New()
	part := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	for _, name := range slices.Sorted(maps.Keys(p.GetMetadata())) {
		part([]byte(name))
		part(p.GetMetadata()[name])
	}
	part(p.GetData())
	h.Sum(d[:0])
	return d
}

// cache is an LRU cache of decoded payloads, bounded in bytes.
type cache struct {
	mu    sync.Mutex
	bytes int
	limit int
	order list.List // of *entry, most recently used first
	byKey map[digest]*list.Element
}

type entry struct {
	d digest
	p *commonpb.Payload
}

func newCache(limit int) *cache { return &cache{limit: limit, byKey: map[digest]*list.Element{}} }

func (c *cache) get(d digest) *commonpb.Payload {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[d]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*entry).p
}

func (c *cache) put(d digest, p *commonpb.Payload) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := sizeOf(p)
	if c.byKey[d] != nil || size > c.limit/4 {
		return
	}
	c.byKey[d] = c.order.PushFront(&entry{d, p})
	for c.bytes += size; c.bytes > c.limit; {
		last := c.order.Remove(c.order.Back()).(*entry)
		delete(c.byKey, last.d)
		c.bytes -= sizeOf(last.p)
	}
}

// sizeOf estimates the memory of a payload in bytes.
func sizeOf(p *commonpb.Payload) int {
	n := len(p.GetData()) + 256
	for name, v := range p.GetMetadata() {
		n += len(name) + len(v)
	}
	return n
}
