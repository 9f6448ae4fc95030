package ace

import (
	"slices"
	"sync"
)

// The collections below can be cloned at almost no cost: clones share their common data and copy
// on write. The time machine keeps hundreds of clones of a long run.

// stringTable numbers strings in the order of their first occurrence. Clones share one log until
// they add different strings.
type stringTable struct {
	log *stringLog
	n   int32 // number of the log's strings that this table holds
}

type stringLog struct {
	mu      sync.Mutex // clones may be used by several goroutines
	numbers map[string]int32
	strings []string
}

// find returns the number of a string.
func (s *stringTable) find(text string) (int32, bool) {
	if s.log == nil {
		return 0, false
	}
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	at, ok := s.log.numbers[text]
	return at, ok && at < s.n
}

// add numbers a string that the table does not hold yet.
func (s *stringTable) add(text string) int32 {
	if s.log == nil {
		s.log = &stringLog{numbers: map[string]int32{}}
	}
	log := s.log
	log.mu.Lock()
	defer log.mu.Unlock()
	if int(s.n) < len(log.strings) && log.strings[s.n] != text {
		own := &stringLog{numbers: make(map[string]int32, s.n+1), strings: slices.Clone(log.strings[:s.n])}
		for i, known := range own.strings {
			own.numbers[known] = int32(i)
		}
		s.log, log = own, own
	}
	if int(s.n) == len(log.strings) {
		log.strings = append(log.strings, text)
		log.numbers[text] = s.n
	}
	s.n++
	return s.n - 1
}

// list returns all strings in the order of their first occurrence.
func (s *stringTable) list() []string {
	if s.log == nil {
		return nil
	}
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return s.log.strings[:s.n:s.n]
}

// entryList is a list of entries by number. Clones share chunks and copy a chunk before they
// change it.
type entryList struct {
	chunks []*entryChunk
	n      int
	owner  *owner
}

const entryChunkSize = 64

type entryChunk struct {
	owner *owner
	at    [entryChunkSize]*entry
}

// owner is compared by address, so it must not have size zero.
type owner struct{ _ byte }

func (v *entryList) get(i int32) *entry { return v.chunks[i/entryChunkSize].at[i%entryChunkSize] }

// set replaces or appends an entry.
func (v *entryList) set(e *entry) {
	if v.owner == nil {
		v.owner = &owner{}
	}
	chunk := int(e.number / entryChunkSize)
	switch {
	case chunk == len(v.chunks):
		v.chunks = append(v.chunks, &entryChunk{owner: v.owner})
	case v.chunks[chunk].owner != v.owner:
		own := *v.chunks[chunk]
		own.owner = v.owner
		v.chunks[chunk] = &own
	}
	v.chunks[chunk].at[e.number%entryChunkSize] = e
	v.n = max(v.n, int(e.number)+1)
}

// clone returns a copy. Neither list then owns the shared chunks.
func (v *entryList) clone() entryList {
	v.owner = &owner{}
	return entryList{chunks: slices.Clone(v.chunks), n: v.n, owner: &owner{}}
}
