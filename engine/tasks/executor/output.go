package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"acescope/engine/ace"
	"acescope/engine/internal/process"
	"acescope/engine/internal/redact"
	"acescope/engine/store/artifact"
	"acescope/engine/tasks/run"
)

// maxHeld bounds the output that is buffered until a line ends, in bytes. A longer line is
// processed in pieces.
const maxHeld = 64 << 10

// file is the part of a file that a capture needs.
type file interface {
	io.Writer
	io.ReaderAt
	Close() error
}

// capture stores an output of a program without secrets: up to a limit in a file, and its beginning and end
// in memory. It is not safe for concurrent use.
type capture struct {
	secrets *redact.Redactor
	lines   func(text []byte) // called with whole lines, or pieces of long lines

	f     file
	path  string
	limit int64
	kept  int64 // bytes in the file
	size  int64 // bytes after redaction
	tail  *process.Tail
	err   error // the first error of the file

	held    []byte // buffered
	partial bool   // held starts within a line
}

func newCapture(dir string, secrets *redact.Redactor, lines func([]byte)) (*capture, error) {
	f, err := os.CreateTemp(dir, "acescope-output-*") // 0600
	if err != nil {
		return nil, err
	}
	return &capture{secrets: secrets, lines: lines, f: f, path: f.Name(), limit: run.MaxCapture,
		tail: process.NewTail(run.MaxText/2, run.MaxText/2)}, nil
}

// Write never fails, so that an error of the file does not disturb the program.
func (c *capture) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		part := min(len(b), maxHeld-len(c.held))
		c.held = append(c.held, b[:part]...)
		b = b[part:]
		c.release(false)
	}
	return n, nil
}

// release writes the buffered whole lines, or all buffered text. The beginning of a private key stays
// buffered until its end, since only a whole key is recognized.
func (c *capture) release(all bool) {
	end := bytes.LastIndexByte(c.held, '\n') + 1
	if at := openKey(c.held[:end]); at >= 0 {
		end = bytes.LastIndexByte(c.held[:at], '\n') + 1
	}
	partial := false
	if all || end == 0 && len(c.held) >= maxHeld {
		partial = !all
		end = len(c.held)
		if safe := c.secrets.Safe(c.held); partial && safe > 0 {
			end = safe
		}
	}
	if end == 0 {
		return
	}
	c.write(c.redact(c.held[:end], c.partial || partial))
	c.held = append(c.held[:0], c.held[end:]...)
	c.partial = partial
}

var keyHeader = []byte("-----BEGIN ")

// openKey returns the index of a private key without an end, or -1.
func openKey(text []byte) int {
	const maxTitle = 80
	at := bytes.LastIndex(text, keyHeader)
	if at < 0 {
		return -1
	}
	title := text[at:min(len(text), at+maxTitle)]
	if !bytes.Contains(title, []byte("PRIVATE KEY")) || bytes.Contains(text[at:], []byte("-----END ")) {
		return -1
	}
	return at
}

// redact removes secrets. Lines of JSON stay JSON.
func (c *capture) redact(text []byte, partial bool) []byte {
	if partial {
		return c.secrets.Truncated(text)
	}
	clean := c.secrets.Bytes(text)
	unchanged := len(clean) == len(text) && (len(clean) == 0 || &clean[0] == &text[0])
	if unchanged && bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	if bytes.Contains(text, keyHeader) {
		return clean
	}
	var out []byte
	for line := range bytes.Lines(text) {
		body := bytes.TrimRight(line, "\r\n")
		out = append(out, c.secrets.Line(body)...)
		out = append(out, line[len(body):]...)
	}
	return out
}

func (c *capture) write(text []byte) {
	c.size += int64(len(text))
	_, _ = c.tail.Write(text) // never fails
	c.lines(text)
	room := min(int64(len(text)), c.limit-c.kept)
	if room <= 0 || c.err != nil {
		return
	}
	n, err := c.f.Write(text[:room])
	c.kept += int64(n)
	c.err = err
}

// dropped returns the number of bytes that are not stored.
func (c *capture) dropped() int64 { return max(0, c.size-c.kept-run.MaxText/2) }

// text returns the beginning and the end of the output.
func (c *capture) text() string { return headTail(c.tail.String()) }

// store stores the output as an artifact. It returns nil if there is nothing to store.
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

// storeLong stores an output that is too long for a result. It also returns an error if the file is
// incomplete.
func (c *capture) storeLong(ctx context.Context, to *artifact.Store) (*ace.Ref, error) {
	if c.size <= run.MaxText && c.err == nil {
		return nil, nil
	}
	ref, err := c.store(ctx, to, "text/plain; charset=utf-8")
	if err == nil {
		err = c.err
	}
	return ref, err
}

func (c *capture) close() {
	_ = c.f.Close()
	_ = os.Remove(c.path)
}

// headTail returns valid UTF-8 of at most [run.MaxText] bytes: the beginning and the end.
func headTail(text string) string {
	const gap = "\n… left out …\n"
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "�"), "�")
	if len(text) <= run.MaxText {
		return text
	}
	half := (run.MaxText - len(gap)) / 2
	from := len(text) - half
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return strings.TrimSuffix(ace.Cut(text, half), "…") + gap + text[from:]
}

// short truncates a text for an error.
func short(text string) string { return ace.Cut(text, 80) }

// classify classifies the output as one JSON value, as text, or as invalid: an object or a list that
// is incomplete or followed by other text. value is set up to [run.MaxOutput] bytes.
func (c *capture) classify() (is string, value json.RawMessage, err error) {
	data := make([]byte, c.kept)
	if _, err := c.f.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return "", nil, err
	}
	text := bytes.Trim(data, " \t\r\n")
	if len(text) == 0 {
		return run.OutputNone, nil, nil
	}
	compound := text[0] == '{' || text[0] == '['
	complete := c.err == nil && c.size == c.kept
	isJSON := complete && json.Valid(text)
	switch {
	case isJSON && utf8.Valid(text):
		if len(text) <= run.MaxOutput {
			value = compact(text)
		}
		return run.OutputJSON, value, nil
	case compound && (!complete || isJSON || beginsJSON(text)):
		return run.OutputInvalid, nil, nil
	}
	return run.OutputText, nil, nil
}

// beginsJSON reports whether text is the beginning of a JSON value, or a value and other text.
func beginsJSON(text []byte) bool {
	err := json.NewDecoder(bytes.NewReader(text)).Decode(new(json.RawMessage))
	return err == nil || errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "max depth")
}

// Streams of a [LogLine].
const (
	streamStdout = "stdout"
	streamStderr = "stderr"
)

// Bounds of the log, in bytes: of the text of a line, above which it is split, and of all
// lines of an output.
const (
	maxLine = 8 << 10
	maxLog  = 32 << 20
)

// LogLine is a line of a run's live log.
type LogLine struct {
	At     time.Time `json:"at"`
	Stream string    `json:"stream"`
	Text   string    `json:"text"`
	Note   string    `json:"note,omitempty"` // from acescope, not from the program
}

// liveLog writes the output of a program while it runs. Its errors do not affect the stored outputs.
type liveLog struct {
	mu    sync.Mutex
	to    *artifact.LiveLog // nil: no log
	left  map[string]int64  // bytes that each stream may still write
	block bytes.Buffer
	err   error
}

// openLog creates a log.
func (e *Executor) openLog(n *artifact.LogName) *liveLog {
	l := &liveLog{left: map[string]int64{streamStdout: maxLog, streamStderr: maxLog}}
	if n != nil && e.o.Logs != nil {
		l.to, l.err = e.o.Logs.Create(*n)
	}
	return l
}

// stream returns a function that writes lines of a stream. It writes all lines of a call at
// once, so that the log does not slow the program down.
func (l *liveLog) stream(name string) func([]byte) {
	return func(text []byte) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.to == nil || l.left[name] < 0 {
			return
		}
		head := LogLine{At: time.Now().UTC(), Stream: name}
		block := l.encode(head, text)
		if l.left[name] -= int64(len(block)); l.left[name] < 0 {
			head.Note = "the rest of this stream is omitted"
			block = l.encode(head, []byte("\n"))
		}
		if err := l.to.Line(block); l.err == nil {
			l.err = err
		}
	}
}

// encode returns lines of the log.
func (l *liveLog) encode(head LogLine, text []byte) []byte {
	l.block.Reset()
	e := json.NewEncoder(&l.block)
	e.SetEscapeHTML(false)
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		for first := true; first || len(line) > 0; first = false {
			n := min(len(line), maxLine)
			head.Text = strings.ToValidUTF8(string(line[:n]), "�")
			_ = e.Encode(head) // cannot fail before the year 9999
			line = line[n:]
		}
	}
	return bytes.TrimSuffix(l.block.Bytes(), []byte("\n"))
}

// close completes the log and returns its reference and path, if there is a log.
func (l *liveLog) close(ctx context.Context) (ref *ace.Ref, path string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to == nil {
		return nil, "", l.err
	}
	stored, err := l.to.Seal(ctx)
	if err != nil {
		return nil, l.to.Path(), err
	}
	return &stored, l.to.Path(), l.err
}
