package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"acescope/cmd/acescope/internal/cli"
	"acescope/sources/logfile"
	"acescope/sources/logs"
)

// logFilter says which lines are wanted.
type logFilter struct {
	choice logs.LogChoice
	grep   *regexp.Regexp
	level  logfile.Severity
	levels map[string]*logfile.Levels // by file
}

func (k *logFilter) keeps(l logfile.Line) bool {
	if k.level != logfile.Unknown {
		levels := k.levels[l.Path]
		if levels == nil {
			levels = &logfile.Levels{}
			k.levels[l.Path] = levels
		}
		if levels.Next(l.Text) < k.level {
			return false
		}
	}
	return (k.grep == nil || k.grep.Match(l.Text)) && k.choice.Keeps(l.Path, l.Text)
}

// logWriter writes lines as they come: the reading waits for it, so nothing is dropped
// and nothing piles up.
type logWriter struct {
	out, err io.Writer
	json     bool
	once     bool // it ends by itself, and then says what could not be read
	heads    bool // say which file lines are of
	keep     *logFilter
	buf      []byte
	paths    map[string][]byte // the beginning of a file's lines as JSON
	last     string            // file of the last line
	files    []logfile.File
	bad      []string // files that could not be read
}

func (w *logWriter) handler() logfile.Handler {
	return logfile.Handler{Lines: w.lines, Event: w.event, Files: func(f []logfile.File) error { w.files = f; return nil }}
}

func (w *logWriter) lines(batch []logfile.Line) error {
	w.buf = w.buf[:0]
	for _, l := range batch {
		if !w.keep.keeps(l) {
			continue
		}
		if w.json {
			w.object(l)
		} else {
			w.plain(l)
		}
	}
	if len(w.buf) == 0 {
		return nil
	}
	_, err := w.out.Write(w.buf)
	return err
}

func (w *logWriter) plain(l logfile.Line) {
	if l.Path != w.last {
		if w.heads && w.last != "" {
			w.buf = append(w.buf, '\n')
		}
		if w.heads {
			w.buf = append(append(append(w.buf, "==> "...), cli.SafeText(l.Path)...), " <==\n"...)
		}
		w.last = l.Path
	}
	w.buf = append(w.buf, cli.SafeText(string(l.Text))...)
	if l.Cut > 0 {
		w.buf = fmt.Appendf(w.buf, " (%d bytes more)", l.Cut)
	}
	w.buf = append(w.buf, '\n')
}

// LogLine is a line as object writes it: by hand, since a log can be read faster than a
// value of this type can be encoded.
type LogLine struct {
	Type    string          `json:"type"` // line
	File    string          `json:"file"`
	Offset  int64           `json:"offset"`
	Line    int64           `json:"line,omitempty"`
	At      time.Time       `json:"at"`
	Cut     int64           `json:"cut,omitempty"`
	Partial bool            `json:"partial,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	Text    string          `json:"text,omitempty"`
}

// object writes a line as JSON. A line that is an object or a list stands in it as it is.
func (w *logWriter) object(l logfile.Line) {
	b := append(w.buf, w.beginning(l.Path)...)
	b = strconv.AppendInt(append(b, `,"offset":`...), l.Offset, 10)
	if l.Number > 0 {
		b = strconv.AppendInt(append(b, `,"line":`...), l.Number, 10)
	}
	b = append(l.At.UTC().AppendFormat(append(b, `,"at":"`...), time.RFC3339Nano), '"')
	if l.Cut > 0 {
		b = strconv.AppendInt(append(b, `,"cut":`...), l.Cut, 10)
	}
	if l.Torn {
		b = append(b, `,"partial":true`...)
	}
	if structured(l.Text) {
		b = append(append(b, `,"data":`...), l.Text...)
	} else {
		b = appendString(append(b, `,"text":`...), string(l.Text))
	}
	w.buf = append(b, '}', '\n')
}

func structured(text []byte) bool {
	return len(text) > 1 && (text[0] == '{' || text[0] == '[') && utf8.Valid(text) && json.Valid(text)
}

func (w *logWriter) beginning(path string) []byte {
	b := w.paths[path]
	if b == nil {
		b = appendString([]byte(`{"type":"line","file":`), path)
		if w.paths == nil {
			w.paths = map[string][]byte{}
		}
		w.paths[path] = b
	}
	return b
}

// appendString appends a JSON string; what is no UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil { // strings always can be
		return append(b, `""`...)
	}
	return append(b, quoted...)
}

// LogNote is something that happened to a file.
type LogNote struct {
	Type  string       `json:"type"` // note
	Event logfile.Kind `json:"event"`
	File  string       `json:"file,omitempty"`
	At    time.Time    `json:"at"`
	Text  string       `json:"text"`
}

func (w *logWriter) event(e logfile.Event) error {
	if e.Kind == logfile.NotReadable {
		w.bad = append(w.bad, e.Path+": "+e.Text)
	}
	if w.json {
		b, err := json.Marshal(LogNote{"note", e.Kind, e.Path, e.At.UTC(), e.Text})
		if err == nil {
			_, err = w.out.Write(append(b, '\n'))
		}
		return err
	}
	if e.Kind != logfile.Opened && !(w.once && e.Kind == logfile.NotReadable) {
		_, err := fmt.Fprintln(w.err, "acescope: "+cli.SafeText(strings.TrimSpace(e.Path+" "+e.Text)))
		return err
	}
	return nil
}

// end says what was not read.
func (w *logWriter) end(c logs.LogChoice) error {
	if len(w.bad) > 0 {
		return errors.New(strings.Join(w.bad, "; "))
	}
	if len(w.files) == 0 {
		fmt.Fprintln(w.err, "acescope: no log files there: logs "+c.Why)
	}
	return nil
}
