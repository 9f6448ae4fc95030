package playbook

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// logFormat is the version of the log's layout.
const logFormat = 1

// logHeader is the first line of a log.
type logHeader struct {
	Format int       `json:"format"`
	Branch string    `json:"branch"`
	Start  string    `json:"start"`
	At     time.Time `json:"at"`
}

// entry is one merge in a log. at is its time in Unix nanoseconds, used for ordering.
type entry struct {
	index  int
	offset int64
	length int
	hash   string
	at     int64
}

// logIndex is the in-memory index of a log: its complete lines, which end at size.
type logIndex struct {
	file    os.FileInfo
	size    int64
	header  logHeader
	entries []entry
	deltas  map[string]int // entry by delta id
	made    map[string]int // first entry that produced a hash from a different parent
}

func (x *logIndex) head() string {
	if n := len(x.entries); n > 0 {
		return x.entries[n-1].hash
	}
	return x.header.Start
}

// span returns entries[from:to], limited to existing entries.
func (x *logIndex) span(from, to int) []entry {
	to = min(to, len(x.entries))
	return x.entries[min(max(from, 0), to):to]
}

func (x *logIndex) describe() Branch {
	d := Branch{Name: x.header.Branch, Start: x.header.Start, Head: x.head(), Versions: len(x.entries), At: x.header.At}
	if d.Versions > 0 {
		d.At = time.Unix(0, x.entries[d.Versions-1].at).UTC()
	}
	return d
}

var errNoLog = errors.New("no log")

// update reads the lines appended since the last update. It rebuilds the index if the file
// was replaced or truncated.
func (x *logIndex) update(path, branch string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		*x = logIndex{}
		return errNoLog
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if x.file != nil && os.SameFile(x.file, info) && info.Size() >= x.size {
		x.file = info
		if info.Size() == x.size || x.scan(f, path, branch) == nil {
			return nil
		}
	}
	*x = logIndex{file: info, deltas: map[string]int{}, made: map[string]int{}}
	err = x.scan(f, path, branch)
	if err == nil && x.size == 0 {
		err = fmt.Errorf("%w: %s has no complete first line", ErrCorrupt, path)
	}
	if err != nil {
		*x = logIndex{}
	}
	return err
}

// scan reads from size to the end. It ignores a last line that is incomplete or contains
// bytes that never reached the disk: that merge did not happen.
func (x *logIndex) scan(f *os.File, path, branch string) error {
	r := bufio.NewReaderSize(io.NewSectionReader(f, x.size, 1<<62), 1<<16)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := x.add(line, branch); err != nil {
			if _, more := r.ReadByte(); more == io.EOF && bytes.IndexByte(line, 0) >= 0 {
				return nil
			}
			return fmt.Errorf("%w: %s, line %d: %v", ErrCorrupt, path, len(x.entries)+2, err)
		}
	}
}

func (x *logIndex) add(line []byte, branch string) error {
	if x.size == 0 {
		if err := x.header.read(line, branch); err != nil {
			return err
		}
		x.size = int64(len(line))
		return nil
	}
	var v struct {
		Hash    string    `json:"hash"`
		Parent  string    `json:"parent"`
		DeltaID string    `json:"delta_id"`
		At      time.Time `json:"at"`
	}
	if err := json.Unmarshal(line, &v); err != nil {
		return err
	}
	if !validHash(v.Hash) || v.Parent != x.head() {
		return errors.New("the version does not follow the previous line")
	}
	index := len(x.entries)
	if _, ok := x.deltas[v.DeltaID]; !ok {
		x.deltas[v.DeltaID] = index
	}
	if _, ok := x.made[v.Hash]; !ok && v.Hash != v.Parent {
		x.made[v.Hash] = index
	}
	x.entries = append(x.entries, entry{index, x.size, len(line), v.Hash, v.At.UnixNano()})
	x.size += int64(len(line))
	return nil
}

func (h *logHeader) read(line []byte, branch string) error {
	if err := json.Unmarshal(line, h); err != nil {
		return err
	}
	if h.Format != logFormat {
		return fmt.Errorf("format %d was written by another version of this program; expected format %d", h.Format, logFormat)
	}
	if h.Branch != branch || !validHash(h.Start) {
		return fmt.Errorf("the log belongs to branch %.80q", h.Branch)
	}
	return nil
}

// appendLine writes a line at size, over anything that a killed process left there. When it
// returns nil, the line is on disk; on an error the log is unchanged.
func appendLine(path string, size int64, line []byte) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Size() > size {
		err = f.Truncate(size)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteAt(line, size)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(err, f.Truncate(size))
	}
	return nil
}

// versions reads the records of consecutive entries.
func (b *branch) versions(entries []entry) ([]Version, error) {
	versions := make([]Version, 0, len(entries))
	err := b.each(context.Background(), entries, func(v *Version) { versions = append(versions, *v) })
	if err != nil {
		return nil, err
	}
	return versions, nil
}

// each calls fn with the record of each of the consecutive entries. It holds one line in memory
// at a time.
func (b *branch) each(ctx context.Context, entries []entry, fn func(v *Version)) error {
	if len(entries) == 0 {
		return nil
	}
	f, err := os.Open(b.path)
	if err != nil {
		return fmt.Errorf("playbook branch %q: %w", b.name, err)
	}
	defer f.Close()
	last := entries[len(entries)-1]
	start := entries[0].offset
	size := last.offset + int64(last.length) - start
	r := bufio.NewReaderSize(io.NewSectionReader(f, start, size), int(min(size, 1<<18)))
	var line []byte
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		line = slices.Grow(line[:0], e.length)[:e.length]
		if _, err := io.ReadFull(r, line); err != nil {
			return fmt.Errorf("playbook branch %q: %w", b.name, err)
		}
		v := Version{}
		if err := json.Unmarshal(line, &v); err != nil || v.Hash != e.hash {
			return fmt.Errorf("%w: %s, line %d has changed: %v", ErrCorrupt, b.path, e.index+2, err)
		}
		v.Branch, v.Seq = b.name, e.index+1
		fn(&v)
	}
	return nil
}

// readBranchName reads the branch name in the header of a log.
func readBranchName(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("playbook branch: %w", err)
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, 16<<10)).ReadBytes('\n')
	var h logHeader
	if err == nil {
		err = json.Unmarshal(line, &h)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s, line 1: %v", ErrCorrupt, path, err)
	}
	return h.Branch, nil
}

// encodeLine returns v as one line of JSON.
func encodeLine(v any) ([]byte, error) {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return line.Bytes(), nil
}
