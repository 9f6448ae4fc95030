// Package dataset reads data sets of labelled problems: JSON lines {context, target}.
// It may import engine/ace and engine/artifact.
//
// A data set is checked and copied into the artifact store before anything runs on it,
// so that a run can be replayed when the file has changed. Order: tasks keep the order
// of their lines. Bounds: a line is at most [MaxLine] bytes; a file may be of any size,
// since it is streamed. Loss: reading stops at the first bad line; what came before is
// kept and the line is named.
package dataset

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/artifact"
)

// MaxLine bounds one line of a data set, in bytes.
const MaxLine = 16 << 20

// MediaType is the media type of a stored data set.
const MediaType = "application/jsonl"

// Errors that callers tell apart with [errors.Is].
var (
	ErrEmpty     = errors.New("holds no task")
	ErrDirectory = errors.New("is a directory")
)

// LineError says which line of a data set could not be read, 1-based.
type LineError struct {
	Path string
	Line int
	Err  error
}

func (e *LineError) Error() string {
	return fmt.Sprintf("%s:%d: %v; mend or remove the line", e.Path, e.Line, e.Err)
}

// Unwrap gives the cause.
func (e *LineError) Unwrap() error { return e.Err }

// line is a line of the file. Prompt and label go by several names in the field.
type line struct {
	Context  *string         `json:"context"`
	Prompt   *string         `json:"prompt"`
	Question *string         `json:"question"`
	Target   json.RawMessage `json:"target"`
	Label    json.RawMessage `json:"label"`
	Answer   json.RawMessage `json:"answer"`
}

func (l line) task() (ace.Task, error) {
	prompt := firstOf(l.Context, l.Prompt, l.Question)
	if strings.TrimSpace(prompt) == "" {
		return ace.Task{}, errors.New(`no "context" (or "prompt", "question")`)
	}
	t := ace.Task{Prompt: prompt}
	for _, raw := range []json.RawMessage{l.Target, l.Label, l.Answer} {
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		t.Label = &text
		break
	}
	return t, nil
}

func firstOf(texts ...*string) string {
	for _, t := range texts {
		if t != nil {
			return *t
		}
	}
	return ""
}

// ParseLine reads one line.
func ParseLine(data []byte) (ace.Task, error) {
	var l line
	if err := json.Unmarshal(data, &l); err != nil {
		return ace.Task{}, fmt.Errorf("not a JSON object: %w", err)
	}
	return l.task()
}

// Scan calls fn for each task in order, with the bytes of its line, until fn returns
// false. Blank lines are passed over and not counted as tasks.
func Scan(r io.Reader, path string, fn func(t ace.Task, raw []byte) (bool, error)) error {
	in := bufio.NewReaderSize(r, 1<<16)
	index := 0
	for n := 1; ; n++ {
		raw, err := readLine(in)
		if errors.Is(err, io.EOF) && len(raw) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return &LineError{path, n, err}
		}
		last := err != nil
		if raw = bytes.TrimSpace(raw); len(raw) == 0 {
			continue
		}
		task, err := ParseLine(raw)
		if err != nil {
			if last || strings.Contains(err.Error(), "unexpected end") {
				err = fmt.Errorf("%w (half-written?)", err)
			}
			return &LineError{path, n, err}
		}
		task.Index = index
		index++
		if more, err := fn(task, raw); err != nil || !more {
			return err
		}
	}
}

func readLine(in *bufio.Reader) ([]byte, error) {
	var whole []byte
	for {
		part, err := in.ReadSlice('\n')
		whole = append(whole, part...)
		if len(whole) > MaxLine {
			return nil, fmt.Errorf("longer than %d MiB", MaxLine>>20)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return whole, err
		}
	}
}

// Set is a data set in the artifact store.
type Set struct {
	ID    string // the file's name without its ending
	Ref   ace.Ref
	Tasks int
}

// Ingest checks the file and stores its tasks, at most limit of them where limit is
// above 0. A *LineError comes with the set of the tasks before that line; any other
// error with none.
func Ingest(ctx context.Context, path string, store *artifact.Store, limit int) (Set, error) {
	f, err := os.Open(path)
	if err != nil {
		return Set{}, fmt.Errorf("data set %s: %w", path, plain(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return Set{}, fmt.Errorf("data set %s %w; give a file of JSON lines", path, ErrDirectory)
	}
	set := Set{ID: ID(path)}
	pr, pw := io.Pipe()
	stopped := make(chan error, 1)
	go func() {
		out := bufio.NewWriterSize(pw, 1<<16)
		err := Scan(f, path, func(_ ace.Task, raw []byte) (bool, error) {
			set.Tasks++
			_, werr := out.Write(append(raw, '\n'))
			return limit <= 0 || set.Tasks < limit, werr
		})
		stopped <- err
		pw.CloseWithError(out.Flush())
	}()
	ref, err := store.Put(ctx, pr, MediaType)
	pr.CloseWithError(err)
	scanErr := <-stopped
	if err != nil {
		return Set{}, fmt.Errorf("store data set %s: %w", path, err)
	}
	set.Ref = ref
	var bad *LineError
	if scanErr != nil && !errors.As(scanErr, &bad) {
		return Set{}, fmt.Errorf("read data set %s: %w", path, scanErr)
	}
	if set.Tasks == 0 && bad == nil {
		return Set{}, fmt.Errorf("data set %s %w", path, ErrEmpty)
	}
	return set, scanErr
}

// ID is the data set id of a file: its name without its ending.
func ID(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// plain takes the operation and path off an error that names them already.
func plain(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
