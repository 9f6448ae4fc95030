package playbook

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"acescope/engine/internal/plainjson"
)

// logFormat is the version of the log's layout.
const logFormat = 1

// logHeader is the first line of a log.
type logHeader struct {
	Format int       `json:"format"`
	Branch string    `json:"branch"`
	Start  string    `json:"start"`
	At     time.Time `json:"at"`
	Origin *Origin   `json:"imported,omitempty"`
}

// entry is one merge in a log.
type entry struct {
	offset  int64
	hash    string
	deltaID string
	time    time.Time
	whole   bool // the playbook is stored whole, because it was imported
}

// branchLog is the index of a log: its complete lines, which end at size. A branchLog that the store
// has returned does not change.
type branchLog struct {
	path    string
	file    os.FileInfo
	size    int64
	header  logHeader
	entries []entry
	batch   [2]int // of the last record, see [storedVersion]
}

// storedVersion is a line of a log.
type storedVersion struct {
	Version
	// Batch is the number of the record among those that were written together, and the number of these. It
	// is absent for a record that was written alone. Only all of the records together count.
	Batch [2]int `json:"batch,omitzero"`
}

// at returns the version after n merges.
func (x *branchLog) at(n int) string {
	if n == 0 {
		return x.header.Start
	}
	return x.entries[n-1].hash
}

// whole reports whether the playbook after n merges is stored whole.
func (x *branchLog) whole(n int) bool { return n%snapshotEvery == 0 || x.entries[n-1].whole }

func (x *branchLog) head() string { return x.at(len(x.entries)) }

// made returns the number of the first merge that changed the playbook to this version, or 0.
func (x *branchLog) made(hash string) int {
	for i, e := range x.entries {
		if e.hash == hash && x.at(i) != hash {
			return i + 1
		}
	}
	return 0
}

func (x *branchLog) describe() Branch {
	d := Branch{Name: x.header.Branch, Start: x.header.Start, Head: x.head(), Versions: len(x.entries),
		At: x.header.At, Origin: x.header.Origin}
	if d.Versions > 0 {
		d.At = x.entries[d.Versions-1].time
	}
	return d
}

// update reads the lines appended since the last update, or all if the file was replaced or
// truncated. It ignores a last write that is incomplete or contains bytes that never reached the
// disk: those merges did not happen.
func (x *branchLog) update() error {
	f, err := os.Open(x.path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if x.file == nil || !os.SameFile(x.file, info) || info.Size() < x.size {
		*x = branchLog{path: x.path}
	}
	x.file = info
	r := bufio.NewReaderSize(io.NewSectionReader(f, x.size, info.Size()-x.size),
		int(min(info.Size()-x.size, 1<<16)))
	whole := *x // up to the last complete write
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := x.add(line); err != nil {
			if bytes.IndexByte(line, 0) >= 0 && endsBatch(r) {
				break
			}
			n := 1
			if x.size > 0 {
				n = len(x.entries) + 2
			}
			return fmt.Errorf("%w: %s, line %d: %v", ErrCorrupt, x.path, n, err)
		}
		x.size += int64(len(line))
		if x.batch[0] == x.batch[1] {
			whole = *x
		}
	}
	*x = whole
	if x.size == 0 {
		return fmt.Errorf("%w: %s has no complete first line", ErrCorrupt, x.path)
	}
	return nil
}

// endsBatch reports whether the lines after a damaged one may belong to the same write.
func endsBatch(r *bufio.Reader) bool {
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return true
		}
		var v struct{ Batch [2]int }
		if bytes.IndexByte(line, 0) < 0 && (json.Unmarshal(line, &v) != nil || v.Batch[1] == 0) {
			return false
		}
	}
}

func (x *branchLog) add(line []byte) error {
	if x.size == 0 {
		if err := json.Unmarshal(line, &x.header); err != nil {
			return err
		}
		if x.header.Format != logFormat {
			return fmt.Errorf("format %d was written by another version of this program; expected format %d",
				x.header.Format, logFormat)
		}
		if !validHash(x.header.Start) {
			return errors.New("the start of the branch is not a version")
		}
		return nil
	}
	var v struct {
		Hash     string    `json:"hash"`
		Parent   string    `json:"parent"`
		DeltaID  string    `json:"delta_id"`
		At       time.Time `json:"at"`
		Imported *struct{} `json:"imported"`
		Batch    [2]int    `json:"batch"`
	}
	if err := json.Unmarshal(line, &v); err != nil {
		return err
	}
	if !validHash(v.Hash) || v.Parent != x.head() {
		return errors.New("the version does not follow the previous line")
	}
	if !follows(x.batch, v.Batch) {
		return fmt.Errorf("record %d of %d that were written together is out of order", v.Batch[0],
			v.Batch[1])
	}
	x.batch = v.Batch
	x.entries = append(x.entries, entry{x.size, v.Hash, v.DeltaID, v.At.UTC(), v.Imported != nil})
	return nil
}

// follows reports whether a record may be the next after another one, by their places in batches.
func follows(last, next [2]int) bool {
	if last[0] == last[1] {
		return next[0] <= next[1] && next[0] == min(next[1], 1)
	}
	return next == [2]int{last[0] + 1, last[1]}
}

// versions reads the records of the merges after the first from, up to the first to.
func (x *branchLog) versions(from, to int) ([]Version, error) {
	versions := make([]Version, 0, to-from)
	err := x.each(context.Background(), from, to, func(v *Version) { versions = append(versions, *v) })
	if err != nil {
		return nil, err
	}
	return versions, nil
}

// each calls fn with the records of the merges after the first from, up to the first to.
func (x *branchLog) each(ctx context.Context, from, to int, fn func(v *Version)) error {
	if from >= to {
		return nil
	}
	f, err := os.Open(x.path)
	if err != nil {
		return fmt.Errorf("playbook branch %q: %w", x.header.Branch, err)
	}
	defer f.Close()
	start, end := x.entries[from].offset, x.size
	if to < len(x.entries) {
		end = x.entries[to].offset
	}
	r := bufio.NewReaderSize(io.NewSectionReader(f, start, end-start), int(min(end-start, 1<<18)))
	for i := from; i < to; i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := r.ReadBytes('\n')
		v := Version{}
		if err == nil {
			err = json.Unmarshal(line, &v)
		}
		if err == nil && v.Hash != x.entries[i].hash {
			err = errors.New("it records another version")
		}
		if err != nil {
			return fmt.Errorf("%w: %s, line %d has changed: %v", ErrCorrupt, x.path, i+2, err)
		}
		v.Branch, v.Seq = x.header.Branch, i+1
		fn(&v)
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
	if err := f.Truncate(size); err != nil {
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

func encodeLine(v any) ([]byte, error) {
	line, err := plainjson.Marshal(v)
	return append(line, '\n'), err
}
