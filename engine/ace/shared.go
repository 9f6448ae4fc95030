package ace

import "sync"

// What a ledger holds is kept so that copying it costs next to nothing: copies share what
// they have in common, and what one of them changes it copies first. The stepper keeps
// hundreds of copies of a long run.

// names numbers texts in the order in which they were first seen. Copies share one book as
// long as they see the same texts in the same order; one that sees others gets its own.
type names struct {
	book *book
	n    int32 // how many of the book's are known here
}

type book struct {
	mu sync.Mutex // copies may be in the hands of several goroutines
	at map[string]int32
	in []string
}

// find is the number of a text; false where it was not seen.
func (s *names) find(text string) (int32, bool) {
	if s.book == nil {
		return 0, false
	}
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	at, ok := s.book.at[text]
	return at, ok && at < s.n
}

// add numbers a text that was not seen before.
func (s *names) add(text string) int32 {
	if s.book == nil {
		s.book = &book{at: map[string]int32{}}
	}
	b := s.book
	b.mu.Lock()
	defer b.mu.Unlock()
	if int(s.n) < len(b.in) && b.in[s.n] != text {
		own := &book{at: make(map[string]int32, s.n+1), in: append([]string(nil), b.in[:s.n]...)}
		for i, known := range own.in {
			own.at[known] = int32(i)
		}
		s.book, b = own, own
	}
	if int(s.n) == len(b.in) {
		b.in = append(b.in, text)
		b.at[text] = s.n
	}
	s.n++
	return s.n - 1
}

// list is all texts in the order in which they were first seen.
func (s *names) list() []string {
	if s.book == nil {
		return nil
	}
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	return s.book.in[:s.n:s.n]
}

// entries is a list of entries by number. Copies share its chunks; who changes one that
// is not his own copies it first.
type entries struct {
	chunks []*entryChunk
	n      int
	owner  *owner
}

const entryChunkSize = 64

type entryChunk struct {
	owner *owner
	at    [entryChunkSize]*entry
}

// owner is only compared: a value of no size would not be another one each time.
type owner struct{ _ byte }

func (v *entries) get(i int32) *entry { return v.chunks[i/entryChunkSize].at[i%entryChunkSize] }

// set puts an entry in its place, or behind the last.
func (v *entries) set(e *entry) {
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

// clone is a copy; from now on neither owns what both share.
func (v *entries) clone() entries {
	v.owner = &owner{}
	return entries{chunks: append([]*entryChunk(nil), v.chunks...), n: v.n, owner: &owner{}}
}
