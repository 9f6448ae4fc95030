// Package dataset reads data sets of labeled problems: JSON lines {context, question, target}.
//
// A data set is checked and copied into the artifact store before anything runs on it, so that
// a run can be replayed after the file has changed. Order: tasks have the order of their lines.
// Bounds: a line has at most [MaxLine] bytes; a file may have any size, since it is streamed.
// Loss: reading stops at the first invalid line, which the error names; the tasks before it are
// kept.
package dataset

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"acescope/engine/ace"
	"acescope/engine/learning/grade"
	"acescope/engine/store/artifact"
)

// MaxLine is the number of bytes allowed in a line.
const MaxLine = 16 << 20

// MediaType is the media type of a stored data set.
const MediaType = "application/jsonl"

// ErrEmpty means that a data set has no tasks.
var ErrEmpty = errors.New("has no tasks")

// LineError is the error of a line, 1-based.
type LineError struct {
	Path string
	Line int
	Err  error
}

func (e *LineError) Error() string {
	return fmt.Sprintf("%s:%d: %v; fix or remove the line", e.Path, e.Line, e.Err)
}

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// promptFields and labelFields are the names of the fields of a line. The prompt consists of all
// texts that the line has; the label is the first one.
var (
	promptFields = []string{"context", "prompt", "question", "input"}
	labelFields  = []string{"target", "label", "answer", "output"}
)

// maxSubject bounds the subject of a task, in bytes: the question of a line that also has a context.
const maxSubject = 200

// parseLine parses one line. The prompt of a line with a context and a question is both, separated
// by an empty line. It also returns the names of the fields that the task does not hold.
func parseLine(data []byte) (t ace.Task, lost []string, err error) {
	var line map[string]json.RawMessage
	if err := json.Unmarshal(data, &line); err != nil {
		return t, nil, fmt.Errorf("not a JSON object: %w", err)
	}
	fields := make(map[string]json.RawMessage, len(line))
	for name, value := range line {
		if string(value) != "null" {
			fields[strings.ToLower(name)] = value
		}
	}
	var texts []string
	for _, name := range promptFields {
		text := ""
		if value, ok := fields[name]; ok {
			if err := json.Unmarshal(value, &text); err != nil {
				return t, nil, fmt.Errorf("field %q is not a text: %w", name, err)
			}
			delete(fields, name)
		}
		if strings.TrimSpace(text) != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return t, nil, errors.New(`no "context", "question", "prompt" or "input"`)
	}
	t.Prompt = strings.Join(texts, "\n\n")
	if n := len(texts); n > 1 {
		t.Subject = ace.Cut(texts[n-1], maxSubject)
	}
	for _, name := range labelFields {
		value, ok := fields[name]
		if !ok || t.Label != nil {
			continue
		}
		text := ""
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		t.Label = &text
		delete(fields, name)
	}
	return t, slices.Sorted(maps.Keys(fields)), nil
}

// lines returns a scanner of lines of at most MaxLine bytes.
func lines(r io.Reader) *bufio.Scanner {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 1<<16), MaxLine)
	return in
}

// header returns the grader that a header line names. A header is an object with no other field.
func header(raw []byte) (grader string, ok bool) {
	var fields map[string]string
	if json.Unmarshal(raw, &fields) != nil || len(fields) != 1 {
		return "", false
	}
	grader, ok = fields["grader"]
	return grader, ok
}

// byteOrderMark is written by some editors before the first line. It is not a part of the text.
const byteOrderMark = "\ufeff"

// scan calls fn for each task in order, with the bytes of its line and the names of the fields that
// the task does not hold, until fn returns false. It skips blank lines. It passes the grader of a header to
// onHeader.
func scan(
	in *bufio.Scanner, path string, onHeader func(grader string) error,
	fn func(t ace.Task, raw []byte, lost []string) (bool, error),
) error {
	index, n, first := 0, 0, true
	for in.Scan() {
		n++
		raw := in.Bytes()
		if n == 1 {
			raw = bytes.TrimPrefix(raw, []byte(byteOrderMark))
		}
		raw = bytes.TrimSpace(raw)
		if len(raw) == 0 {
			continue
		}
		if first && onHeader != nil {
			first = false
			if grader, ok := header(raw); ok {
				if err := onHeader(grader); err != nil {
					return &LineError{path, n, err}
				}
				continue
			}
		}
		task, lost, err := parseLine(raw)
		if err != nil {
			switch {
			case !utf8.Valid(raw):
				err = errors.New("not a text in UTF-8")
			case strings.Contains(err.Error(), "unexpected end"):
				err = fmt.Errorf("%w (half-written?)", err)
			}
			return &LineError{path, n, err}
		}
		task.Index = index
		index++
		if more, err := fn(task, raw, lost); err != nil || !more {
			return err
		}
	}
	err := in.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("longer than %d MiB", MaxLine>>20)
	}
	if err != nil {
		return &LineError{path, n + 1, err}
	}
	return nil
}

// Set is a data set in the artifact store.
type Set struct {
	ID    string // the file name without extension
	Ref   ace.Ref
	Tasks int
	Lost  []LostField
	// Grader is that of the header, a first line such as {"grader": "choice"}; "" without a header.
	Grader string
}

// LostField is a field that tasks do not hold, and the number of lines that have it.
type LostField struct {
	Field string `json:"field"`
	Lines int    `json:"lines"`
}

func (s *Set) header(grader string) error {
	s.Grader = grader
	return grade.Check(grader)
}

// maxLost bounds the names that a set keeps. Further names are counted together as moreLost.
const (
	maxLost  = 20
	moreLost = "(further fields)"
)

// lose counts the lost fields of a line.
func (s *Set) lose(names []string) {
	for _, name := range names {
		at := s.lostAt(name)
		if at < 0 && len(s.Lost) >= maxLost {
			name = moreLost
			at = s.lostAt(name)
		}
		if at < 0 {
			at = len(s.Lost)
			s.Lost = append(s.Lost, LostField{Field: name})
		}
		s.Lost[at].Lines++
	}
}

func (s *Set) lostAt(name string) int {
	return slices.IndexFunc(s.Lost, func(l LostField) bool { return l.Field == name })
}

// Ingest checks the content of a file and stores its tasks, at most limit if limit is positive. With a
// *LineError it returns the set of the tasks before that line.
func Ingest(ctx context.Context, path string, f io.Reader, store *artifact.Store, limit int) (Set, error) {
	set := Set{ID: ID(path)}
	pr, pw := io.Pipe()
	stopped := make(chan error, 1)
	go func() {
		out := bufio.NewWriterSize(pw, 1<<16)
		err := scan(lines(f), path, set.header, func(_ ace.Task, raw []byte, lost []string) (bool, error) {
			set.Tasks++
			set.lose(lost)
			_, werr := fmt.Fprintf(out, "%s\n", raw)
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

// MaxShuffled is the number of bytes of a data set that can be shuffled, because Shuffle holds it in memory.
const MaxShuffled = 1 << 30

// Shuffle stores a data set with its tasks in another order, which depends on the seed and the number of
// tasks only.
func Shuffle(ctx context.Context, store *artifact.Store, set ace.Ref, seed uint64) (ace.Ref, error) {
	if set.Size > MaxShuffled {
		return ace.Ref{}, fmt.Errorf("a data set of more than %d MiB cannot be shuffled; use a smaller one",
			MaxShuffled>>20)
	}
	f, err := store.Open(ctx, set)
	if err != nil {
		return ace.Ref{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return ace.Ref{}, err
	}
	tasks := slices.Collect(bytes.Lines(data))
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
	return store.Put(ctx, bytes.NewReader(bytes.Join(tasks, nil)), MediaType)
}

// Join stores the tasks of two data sets as one.
func Join(ctx context.Context, store *artifact.Store, a, b ace.Ref) (ace.Ref, error) {
	first, err := store.Open(ctx, a)
	if err != nil {
		return ace.Ref{}, err
	}
	defer first.Close()
	second, err := store.Open(ctx, b)
	if err != nil {
		return ace.Ref{}, err
	}
	defer second.Close()
	return store.Put(ctx, io.MultiReader(first, second), MediaType)
}

// ID returns the data set ID of a file: its name without extension.
func ID(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// maxBatch is the number of bytes of prompts that [Load] returns, well below Temporal's
// limit of 2 MB for a payload.
const maxBatch = 512 << 10

// Load reads at most count tasks of a stored data set from the 0-based index from. It returns
// fewer, but at least one, if their prompts would make a payload too large. A long prompt is
// stored as an artifact and returned as a reference. It reads the set from its beginning but
// parses only the lines from there on.
func Load(ctx context.Context, store *artifact.Store, set ace.Ref, from, count int) ([]ace.Task, error) {
	if from < 0 || count < 1 {
		return nil, fmt.Errorf("data set %.12s has no tasks %d to %d", set.SHA256, from+1, from+count)
	}
	f, err := store.Open(ctx, set)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := lines(f)
	for range from {
		in.Scan()
	}
	tasks := make([]ace.Task, 0, count)
	size := 0
	err = scan(in, set.SHA256, nil, func(t ace.Task, _ []byte, _ []string) (bool, error) {
		t.Index += from
		if len(t.Prompt) > ace.InlineBytes {
			ref, err := store.PutBytes(ctx, []byte(t.Prompt), "text/plain; charset=utf-8")
			if err != nil {
				return false, err
			}
			t.Prompt, t.PromptRef = "", &ref
		}
		if size += len(t.Prompt); size > maxBatch && len(tasks) > 0 {
			return false, nil
		}
		tasks = append(tasks, t)
		return len(tasks) < count, nil
	})
	if err == nil && len(tasks) == 0 {
		err = fmt.Errorf("data set %.12s has no task %d", set.SHA256, from+1)
	}
	return tasks, err
}
