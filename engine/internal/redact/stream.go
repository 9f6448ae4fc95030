package redact

import "bytes"

const (
	// behind is the number of bytes before a text that decide whether it contains a secret.
	behind = lookAhead
	// maxStream bounds the bytes that a stream keeps.
	maxStream = 64 << 10
)

// Stream redacts a text that arrives in fragments. It keeps the end of the text as long as the end may turn
// out to be a part of a secret. Create it with [Redactor.Stream]. It is not safe for concurrent use.
type Stream struct {
	r    *Redactor
	text []byte
	done int // bytes of text that were returned; they are kept to recognize a secret after them
}

// Stream returns a stream.
func (r *Redactor) Stream() *Stream { return &Stream{r: r} }

// Add adds a fragment and returns the text without secrets that is complete.
func (s *Stream) Add(fragment []byte) []byte {
	s.text = append(s.text, fragment...)
	end := max(s.r.Safe(s.text), s.done)
	if len(s.text)-end > maxStream {
		end = len(s.text)
	}
	return s.take(end)
}

// Flush returns the rest of the text.
func (s *Stream) Flush() []byte { return s.r.Truncated(s.take(len(s.text))) }

func (s *Stream) take(end int) []byte {
	out, at := []byte(nil), s.done
	for from := 0; at < end; {
		hit, ok := s.r.finder.find(s.text, from)
		if !ok || hit.from >= end {
			out = append(out, s.text[at:end]...)
			at = end
			break
		}
		if hit.to > at {
			out = append(append(out, s.text[at:max(hit.from, at)]...), mark(hit.kind)...)
			at = hit.to
		}
		from = hit.to
	}
	keep := max(at-behind, 0)
	s.text = append(s.text[:0], s.text[keep:]...)
	s.done = at - keep
	return out
}

// Safe returns the length of the longest beginning of a text that does not contain a part of a secret that
// may continue after the text.
func (r *Redactor) Safe(text []byte) int {
	end := bytes.LastIndexAny(text, " \t\r\n") + 1 // most secrets have no spaces
	if at := r.finder.anchor(text, max(end-lookAhead, 0)); at >= 0 {
		end = min(end, at)
	}
	for _, secret := range r.known { // a known one may have spaces
		for n := min(len(secret.text)-1, len(text)); n > len(text)-end; n-- {
			if bytes.HasSuffix(text, secret.text[:n]) {
				end = len(text) - n
				break
			}
		}
	}
	for from := 0; ; {
		hit, ok := r.finder.find(text, from)
		if !ok || hit.from >= end {
			return end
		}
		if hit.to >= end { // the secret may be longer
			return hit.from
		}
		from = hit.to
	}
}
