package cli

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/charmbracelet/x/term"
	"golang.org/x/text/transform"

	"acescope/tui/text"
)

// Output is standard output or standard error, and the only way to a terminal. No text written to it can
// control a terminal: it drops control, escape, bidirectional and other hidden characters except line breaks
// and tabs, and escapes them in JSON. It has no other methods to write, which [io.Copy] and [io.WriteString]
// would prefer to Write.
type Output struct {
	file          *os.File
	safe, colored io.Writer // to file
	partial       bool      // safe holds the beginning of a character

	mu    sync.Mutex
	drawn bool // the last line of the terminal is a [ProgressBar]
}

// NewOutput returns an output that is JSON as long as isJSON, unless nil, is true.
func NewOutput(f *os.File, isJSON *bool) *Output {
	return &Output{file: f, safe: transform.NewWriter(f, hider{isJSON: isJSON}),
		colored: transform.NewWriter(f, hider{isJSON: isJSON, colors: true})}
}

func (o *Output) Write(p []byte) (int, error) {
	o.drawLast("")
	if !o.partial && isSafe(p) {
		return o.file.Write(p)
	}
	last, _ := utf8.DecodeLastRune(p)
	o.partial = last == utf8.RuneError
	return o.safe.Write(p)
}

// drawLast replaces the progress bar in the last line by another, whose text may be untrusted.
func (o *Output) drawLast(bar string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.drawn && bar == "" {
		return
	}
	erase := ""
	if o.drawn {
		erase = "\r\x1b[K"
	}
	o.drawn = bar != ""
	_, _ = io.WriteString(o.file, erase+SafeText(bar))
}

// isSafe reports whether text consists of complete characters that a terminal may get.
func isSafe(p []byte) bool {
	for i := 0; i < len(p); {
		if b := p[i]; b >= ' ' && b < 0x7f || b == '\n' || b == '\t' {
			i++
			continue
		}
		r, size := utf8.DecodeRune(p[i:])
		if r == utf8.RuneError || text.Hidden(r) {
			return false
		}
		i += size
	}
	return true
}

// Terminal reports whether w is an [Output] to a terminal, and its columns and lines, 0 if they are unknown.
func Terminal(w io.Writer) (width, height int, ok bool) {
	o, ok := w.(*Output)
	if !ok || !IsTerminal(o.file) {
		return 0, 0, false
	}
	width, height, _ = term.GetSize(o.file.Fd())
	return width, height, true
}

// Exact returns a writer for bytes that must not change, such as an exported history. A terminal still gets
// only characters that are safe.
func Exact(w io.Writer) io.Writer {
	if _, _, terminal := Terminal(w); terminal {
		return w
	}
	if o, ok := w.(*Output); ok {
		return o.file
	}
	return w
}

// painted returns a writer for text that is painted: it keeps sequences that set colors. One write must
// contain the whole sequence.
func painted(w io.Writer) io.Writer {
	if o, ok := w.(*Output); ok {
		return painter{o}
	}
	return w
}

type painter struct{ o *Output }

func (p painter) Write(b []byte) (int, error) {
	p.o.drawLast("")
	return p.o.colored.Write(b)
}

// setsColors matches a sequence that sets colors and other attributes of text.
var setsColors = regexp.MustCompile(`^\x1b\[[0-9;:]*m`)

// hider drops hidden characters, or escapes them in JSON.
type hider struct {
	transform.NopResetter
	isJSON *bool
	colors bool // keep sequences that set colors
}

// Transform implements [transform.Transformer].
func (h hider) Transform(dst, src []byte, atEOF bool) (written, read int, err error) {
	for read < len(src) {
		r, size := utf8.DecodeRune(src[read:])
		if r == utf8.RuneError && size == 1 && !atEOF && !utf8.FullRune(src[read:]) {
			return written, read, transform.ErrShortSrc
		}
		out := src[read : read+size]
		switch {
		case r == '\n' || r == '\t':
		case r == utf8.RuneError:
			out = []byte("\uFFFD")
		case r == '\x1b' && h.colors && setsColors.Match(src[read:]):
			out = setsColors.Find(src[read:])
			size = len(out)
		case text.Hidden(r):
			out = h.replacement(r)
		}
		if written+len(out) > len(dst) {
			return written, read, transform.ErrShortDst
		}
		written += copy(dst[written:], out)
		read += size
	}
	return written, read, nil
}

func (h hider) replacement(r rune) (out []byte) {
	if h.isJSON == nil || !*h.isJSON {
		return nil
	}
	for _, unit := range utf16.AppendRune(nil, r) {
		out = fmt.Appendf(out, `\u%04x`, unit)
	}
	return out
}
