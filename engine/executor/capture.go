package executor

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"acescope/engine/ace"
	"acescope/engine/artifact"
	"acescope/engine/process"
	"acescope/engine/redact"
	"acescope/engine/run"
)

// maxHeld is how much of an output is held back until a line ends, in bytes. A line that is
// longer is taken in pieces.
const maxHeld = 64 << 10

// file is the part of a file that an output is written to.
type file interface {
	io.Writer
	io.ReaderAt
	Close() error
}

// capture keeps one output of a program: without secrets, all of it in a file up to a limit,
// and its begin and end at hand. It is for one goroutine at a time.
type capture struct {
	secrets *redact.Redactor
	lines   func(text []byte) // the log: whole lines, or pieces of long ones

	f     file
	path  string
	limit int64
	kept  int64 // bytes of the file
	size  int64 // bytes without secrets
	tail  *process.Tail
	err   error // the first of the file

	held []byte // what no line's end has come after yet
	cut  bool   // held begins within a line
}

func newCapture(dir string, secrets *redact.Redactor, lines func([]byte)) (*capture, error) {
	f, err := os.CreateTemp(dir, "acescope-output-*") // 0600
	if err != nil {
		return nil, err
	}
	return &capture{secrets: secrets, lines: lines, f: f, path: f.Name(), limit: run.MaxCapture,
		tail: process.NewTail(run.MaxText/2, run.MaxText/2)}, nil
}

// Write takes everything, whatever becomes of the file: the program is not disturbed.
func (c *capture) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		take := min(len(b), maxHeld-len(c.held))
		c.held = append(c.held, b[:take]...)
		b = b[take:]
		c.release(false)
	}
	return n, nil
}

// release lets go of whole lines. What begins like a private key is held until it ends, since
// only as a whole it is known as one.
func (c *capture) release(all bool) {
	end := bytes.LastIndexByte(c.held, '\n') + 1
	if at := openKey(c.held[:end]); at >= 0 {
		end = bytes.LastIndexByte(c.held[:at], '\n') + 1
	}
	within := false
	if all || end == 0 && len(c.held) >= maxHeld {
		within, end = !all, len(c.held)
	}
	if end == 0 {
		return
	}
	c.put(c.clean(c.held[:end], c.cut || within))
	c.held = append(c.held[:0], c.held[end:]...)
	c.cut = within
}

// clean is text without secrets. Lines of JSON stay JSON.
func (c *capture) clean(text []byte, cut bool) []byte {
	if cut {
		return c.secrets.Cut(text)
	}
	if clean := c.secrets.Bytes(text); len(clean) == len(text) && (len(clean) == 0 || &clean[0] == &text[0]) && bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	if bytes.Contains(text, keyBegins) {
		return c.secrets.Bytes(text)
	}
	var out []byte
	for line := range bytes.Lines(text) {
		body := bytes.TrimRight(line, "\r\n")
		out = append(append(out, c.secrets.Line(body)...), line[len(body):]...)
	}
	return out
}

// openKey is where a private key begins that has no end, -1 for none.
func openKey(text []byte) int {
	if !bytes.Contains(text, keyBegins) {
		return -1
	}
	at := bytes.LastIndex(text, keyBegins)
	title := text[at:min(len(text), at+maxTitle)]
	if !bytes.Contains(title, []byte("PRIVATE KEY")) || bytes.Contains(text[at:], []byte("-----END ")) {
		return -1
	}
	return at
}

var keyBegins = []byte("-----BEGIN ")

const maxTitle = 80

func (c *capture) put(text []byte) {
	c.size += int64(len(text))
	_, _ = c.tail.Write(text) // takes everything
	c.lines(text)
	room := min(int64(len(text)), c.limit-c.kept)
	if room <= 0 || c.err != nil {
		return
	}
	n, err := c.f.Write(text[:room])
	c.kept += int64(n)
	c.err = err
}

// dropped is how many bytes are nowhere.
func (c *capture) dropped() int64 { return max(0, c.size-c.kept-run.MaxText/2) }

// text is the begin and the end, at most [run.MaxText] bytes of valid UTF-8.
func (c *capture) text() string { return headTail(c.tail.String()) }

// store makes what was kept an artifact; nil where there is none.
func (c *capture) store(ctx context.Context, to *artifact.Store, mediaType string) (*ace.Ref, error) {
	if c.kept == 0 || to == nil {
		return nil, nil
	}
	ref, err := to.Put(ctx, io.NewSectionReader(c.f, 0, c.kept), mediaType)
	if err != nil {
		return nil, err
	}
	return &ref, nil
}

func (c *capture) close() {
	_ = c.f.Close()
	_ = os.Remove(c.path)
}

const leftOut = "\n… left out …\n"

// headTail is valid UTF-8 of at most [run.MaxText] bytes: the begin and the end of the text.
func headTail(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "�"), "�")
	if len(text) <= run.MaxText {
		return text
	}
	half := (run.MaxText - len(leftOut)) / 2
	from := len(text) - half
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	for half > 0 && !utf8.RuneStart(text[half]) {
		half--
	}
	return text[:half] + leftOut + text[from:]
}
