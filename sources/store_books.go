package sources

import "acescope/sources/playbooks"

// WantBooks says what to read of playbooks.
func (s *Store) WantBooks(w playbooks.BookWish) {
	s.mu.Lock()
	same := s.books.Wish == w
	s.books.Wish = w
	s.mu.Unlock()
	if !same {
		s.again(PartBooks)
	}
}

// ReadBooks reads the playbooks again now.
func (s *Store) ReadBooks() { s.again(PartBooks) }
