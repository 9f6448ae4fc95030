package playbook

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// logFormat is the version of a log's layout.
const logFormat = 1

// logHeader is the first line of a log.
type logHeader struct {
	Format int       `json:"format"`
	Branch string    `json:"branch"`
	Start  string    `json:"start"`
	At     time.Time `json:"at"`
}

// entry is one merge in a log. at is its time in Unix nanoseconds, for ordering.
type entry struct {
	index  int
	offset int64
	length int
	hash   string
	parent string
	at     int64
}

// logIndex is what is kept in memory of a log: the whole lines up to size.
type logIndex struct {
	file    os.FileInfo
	size    int64
	header  logHeader
	entries []entry
	deltas  map[string]int // entry by delta id
	made    map[string]int // first entry that made a hash out of another
}

func (x *logIndex) head() string {
	if n := len(x.entries); n > 0 {
		return x.entries[n-1].hash
	}
	return x.header.Start
}

var errNoLog = errors.New("no log")

// update takes in what was appended since. It starts anew where the file is another
// one, or does not go on from where it was.
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
		err = fmt.Errorf("%w: %s has no whole first line", ErrCorrupt, path)
	}
	if err != nil {
		*x = logIndex{}
	}
	return err
}

// scan reads on from size. A last line without its end, or with bytes that the disk
// never got, is a merge that did not happen: it is left alone.
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
		if err := x.take(line, branch); err != nil {
			if _, more := r.ReadByte(); more == io.EOF && bytes.IndexByte(line, 0) >= 0 {
				return nil
			}
			return fmt.Errorf("%w: %s, line %d: %v", ErrCorrupt, path, len(x.entries)+2, err)
		}
	}
}

func (x *logIndex) take(line []byte, branch string) error {
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
		return errors.New("it does not follow the line before")
	}
	x.note(entry{offset: x.size, length: len(line), hash: v.Hash, parent: v.Parent, at: v.At.UnixNano()}, v.DeltaID)
	return nil
}

// note adds a merge to the index.
func (x *logIndex) note(e entry, delta string) {
	e.index = len(x.entries)
	if e.parent == x.head() && len(x.entries) > 0 {
		e.parent = x.entries[e.index-1].hash // share the string
	}
	if _, ok := x.deltas[delta]; !ok {
		x.deltas[delta] = e.index
	}
	if _, ok := x.made[e.hash]; !ok && e.hash != e.parent {
		x.made[e.hash] = e.index
	}
	x.entries = append(x.entries, e)
	x.size += int64(e.length)
}

func (h *logHeader) read(line []byte, branch string) error {
	if err := json.Unmarshal(line, h); err != nil {
		return err
	}
	if h.Format != logFormat {
		return fmt.Errorf("format %d was written by another version of this program, this one knows %d", h.Format, logFormat)
	}
	if h.Branch != branch || !validHash(h.Start) {
		return fmt.Errorf("the log is of branch %.80q", h.Branch)
	}
	return nil
}

// appendLine adds a line after the first size bytes, whatever a killed process left
// behind them. It is on disk when this returns; on an error the log is as it was.
func appendLine(path string, size int64, line []byte) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return err
	} else if info.Size() > size {
		if err := f.Truncate(size); err != nil {
			return err
		}
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

// readVersions reads the records of some entries that follow one another.
func readVersions(path, branch string, entries []entry) ([]Version, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("playbook branch %q: %w", branch, err)
	}
	defer f.Close()
	versions := make([]Version, len(entries))
	var line []byte
	for i, e := range entries {
		line = append(line[:0], make([]byte, e.length)...)
		if _, err := f.ReadAt(line, e.offset); err != nil {
			return nil, fmt.Errorf("playbook branch %q: %w", branch, err)
		}
		if err := json.Unmarshal(line, &versions[i]); err != nil || versions[i].Hash != e.hash {
			return nil, fmt.Errorf("%w: %s, line %d is not what it was: %v", ErrCorrupt, path, e.index+2, err)
		}
		versions[i].Branch = branch
	}
	return versions, nil
}

// encodeLine is a record as a line.
func encodeLine(v any) ([]byte, error) {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return line.Bytes(), nil
}
