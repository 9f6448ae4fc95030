package codec

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
)

// CacheBytes bounds the memory of cached decoded payloads.
const CacheBytes = 32 << 20

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

func sizeOf(p *commonpb.Payload) int {
	n := len(p.GetData()) + 256
	for name, v := range p.GetMetadata() {
		n += len(name) + len(v)
	}
	return n
}
