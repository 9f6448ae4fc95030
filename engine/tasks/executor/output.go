package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// capture stores an output of a program without secrets: all of it, up to a limit, in a file,
// and its beginning and end in memory. It is not safe for concurrent use.
type capture struct {
	secrets *redact.Redactor
	lines   func(text []byte) // gets whole lines, or pieces of long ones

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

// release writes the buffered whole lines, or all. The beginning of a private key stays
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

// storeLong stores an output that is longer than a result may have. It also returns an error
// if the file is incomplete.
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
	return prefix(text, half) + gap + text[from:]
}

// short truncates a text for an error.
func short(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return prefix(text, most) + "…"
}

// prefix returns the longest prefix of at most n bytes that does not split a character.
func prefix(text string, n int) string {
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// classify classifies an output as one JSON value, as text, or as invalid: an object or a list
// that is incomplete or followed by other text. value is set up to [run.MaxOutput] bytes.
// complete is false if a part of the output is missing.
func classify(r io.ReaderAt, size int64, complete bool) (is string, value json.RawMessage, err error) {
	first, err := firstByte(r, size)
	switch {
	case err != nil:
		return "", nil, err
	case first == 0:
		return run.OutputNone, nil, nil
	}
	compound := first == '{' || first == '['
	if compound && !complete {
		return run.OutputInvalid, nil, nil
	}
	begin := &prefixWriter{left: run.MaxOutput + 1}
	check := &utf8Reader{r: io.TeeReader(io.NewSectionReader(r, 0, size), begin)}
	err = readValue(check)
	_, isSyntax := errors.AsType[*json.SyntaxError](err)
	isIncomplete := errors.Is(err, io.ErrUnexpectedEOF)
	isOther := errors.Is(err, errTrailing) || errors.Is(err, io.EOF)
	switch {
	case err == nil && complete && !check.invalid:
		if text := bytes.TrimSpace(begin.b); begin.left > 0 && len(text) <= run.MaxOutput {
			value = compact(text)
		}
		return run.OutputJSON, value, nil
	case compound && (err == nil || isIncomplete || errors.Is(err, errTrailing) || errors.Is(err, errDepth)):
		return run.OutputInvalid, nil, nil
	case err == nil || isSyntax || isIncomplete || isOther:
		return run.OutputText, nil, nil
	}
	return "", nil, err
}

var (
	errTrailing = errors.New("text after the value")
	errDepth    = errors.New("nested too deep")
)

// readValue reads one JSON value by tokens, so that memory does not depend on its size.
func readValue(r io.Reader) error {
	const maxDepth = 10_000 // of encoding/json
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
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth > maxDepth {
			return errDepth
		}
		if depth == 0 {
			break
		}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}

// firstByte returns the first byte that is not white space, or 0.
func firstByte(r io.ReaderAt, size int64) (byte, error) {
	buf := make([]byte, 4<<10)
	in := io.NewSectionReader(r, 0, size)
	for {
		n, err := in.Read(buf)
		if text := bytes.TrimLeft(buf[:n], " \t\r\n"); len(text) > 0 {
			return text[0], nil
		}
		if errors.Is(err, io.EOF) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// utf8Reader records whether the data that it reads is invalid UTF-8.
type utf8Reader struct {
	r       io.Reader
	part    []byte // of an incomplete character
	invalid bool
}

func (u *utf8Reader) Read(b []byte) (int, error) {
	n, err := u.r.Read(b)
	text := append(u.part, b[:n]...)
	for len(text) > 0 && !u.invalid {
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size == 1 {
			if !utf8.FullRune(text) && err == nil {
				break
			}
			u.invalid = true
		}
		text = text[size:]
	}
	u.part = bytes.Clone(text)
	return n, err
}

// prefixWriter keeps the first bytes that are written to it.
type prefixWriter struct {
	b    []byte
	left int
}

func (w *prefixWriter) Write(b []byte) (int, error) {
	room := min(len(b), w.left)
	w.b = append(w.b, b[:room]...)
	w.left -= room
	return len(b), nil
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
	Note   string    `json:"note,omitempty"` // by acescope
}

// liveLog writes the output of a program while it runs. The outputs are stored independently
// of its errors.
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
		now, err := json.Marshal(time.Now().UTC())
		if err != nil {
			return // after the year 9999
		}
		block := l.encode(fmt.Sprintf(`{"at":%s,"stream":%q,"text":`, now, name), text)
		if l.left[name] -= int64(len(block)); l.left[name] < 0 {
			block = fmt.Appendf(nil, `{"at":%s,"stream":%q,"text":"","note":"the rest of this stream is omitted"}`, now, name)
		}
		if err := l.to.Line(block); l.err == nil {
			l.err = err
		}
	}
}

// encode returns lines of the log.
func (l *liveLog) encode(head string, text []byte) []byte {
	l.block.Reset()
	e := json.NewEncoder(&l.block)
	e.SetEscapeHTML(false)
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		for first := true; first || len(line) > 0; first = false {
			n := min(len(line), maxLine)
			l.block.WriteString(head)
			_ = e.Encode(strings.ToValidUTF8(string(line[:n]), "�")) // cannot fail for a string
			l.block.Truncate(l.block.Len() - 1)
			l.block.WriteString("}\n")
			line = line[n:]
		}
	}
	return bytes.TrimSuffix(l.block.Bytes(), []byte("\n"))
}

// close seals the log and returns its reference and path, if there is a log.
func (l *liveLog) close(ctx context.Context) (ref *ace.Ref, path string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to == nil {
		return nil, "", l.err
	}
	sealed, err := l.to.Seal(ctx)
	if err != nil {
		return nil, l.to.Path(), err
	}
	return &sealed, l.to.Path(), l.err
}
