package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"acescope/engine/run"
)

// What standard output is; see [run.Result].
const (
	outputJSON    = "json"
	outputText    = "text"
	outputNone    = "none"
	outputInvalid = "invalid"
)

// outputOf says what an output is: one JSON value with white space around it, or text. An
// object or a list that breaks off, or that something follows, is neither. value is set where
// it has at most [run.MaxOutput] bytes. whole is false where some of it is missing.
func outputOf(r io.ReaderAt, size int64, whole bool) (is string, value json.RawMessage, err error) {
	first, err := firstByte(r, size)
	switch {
	case err != nil:
		return "", nil, err
	case first == 0:
		return outputNone, nil, nil
	}
	compound := first == '{' || first == '['
	small := &limited{left: run.MaxOutput + 1}
	check := &utf8Reader{r: io.NewSectionReader(r, 0, size), copy: small}
	end := oneValue(check)
	switch {
	case !whole && compound:
		return outputInvalid, nil, nil
	case end == nil && whole && !check.bad:
		if text := bytes.TrimSpace(small.b); small.left > 0 && len(text) <= run.MaxOutput {
			value = compact(text)
		}
		return outputJSON, value, nil
	case compound && (end == nil || errors.Is(end, io.ErrUnexpectedEOF) || errors.Is(end, errMore) || errors.Is(end, errDeep)):
		return outputInvalid, nil, nil
	case errors.As(end, new(*json.SyntaxError)), end == nil, errors.Is(end, errMore), errors.Is(end, io.ErrUnexpectedEOF), errors.Is(end, io.EOF):
		return outputText, nil, nil
	}
	return "", nil, end
}

// errMore means that something follows the value, errDeep that nobody could read it.
var (
	errMore = errors.New("there is more after the value")
	errDeep = errors.New("nested too deep")
)

// maxDepth is how deep Go's own reader goes.
const maxDepth = 10_000

// oneValue reads one value token by token, so that memory does not grow with it.
func oneValue(r io.Reader) error {
	d := json.NewDecoder(r)
	d.UseNumber()
	for depth := 0; ; {
		t, err := d.Token()
		if errors.Is(err, io.EOF) && depth > 0 {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > maxDepth {
				return errDeep
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			break
		}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errMore
	}
	return nil
}

func firstByte(r io.ReaderAt, size int64) (byte, error) {
	buf := make([]byte, 4<<10)
	for at := int64(0); at < size; {
		n, err := r.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		if text := bytes.TrimLeft(buf[:n], " \t\r\n"); len(text) > 0 {
			return text[0], nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if n == 0 {
			break
		}
		at += int64(n)
	}
	return 0, nil
}

// utf8Reader notes whether what goes through it is valid UTF-8.
type utf8Reader struct {
	r    io.Reader
	copy io.Writer
	part []byte // of a rune that is not complete
	bad  bool
}

func (u *utf8Reader) Read(b []byte) (int, error) {
	n, err := u.r.Read(b)
	_, _ = u.copy.Write(b[:n]) // takes what it has room for
	text := append(u.part, b[:n]...)
	for len(text) > 0 && !u.bad {
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size == 1 {
			if !utf8.FullRune(text) && err == nil {
				break
			}
			u.bad = true
		}
		text = text[size:]
	}
	u.part = append([]byte(nil), text...)
	return n, err
}

// limited keeps what comes first.
type limited struct {
	b    []byte
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	room := min(len(b), l.left)
	l.b, l.left = append(l.b, b[:room]...), l.left-room
	return len(b), nil
}
