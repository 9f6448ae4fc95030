package artifact

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"acescope/engine/ace"
	"acescope/engine/internal/process"
	"acescope/engine/store/bucket"
)

// How growing logs are copied to the shared store.
const (
	shareEvery = 2 * time.Second  // minimum time between two copies of a log
	shareLimit = 30 * time.Second // maximum duration of a copy
	maxPart    = 4 << 20          // bytes of a part
	logExt     = ".jsonl"
)

// LogCopy copies a log to the shared store while it grows, so that other machines can follow it. A part of
// the log is the object <path of the log>/<machine>-<offset>-<bytes>. The writer of the log calls the
// methods. The methods of a nil LogCopy do nothing.
type LogCopy struct {
	logs *Logs
	rel  string // path of the log

	mu       sync.Mutex
	size     int64
	sent     int64
	sending  bool
	finished chan struct{}
	sender   sync.WaitGroup
}

// Copy returns the copy of a log, or nil without a shared store.
func (l *Logs) Copy(rel string) *LogCopy {
	if !l.Shares() {
		return nil
	}
	return &LogCopy{logs: l, rel: rel, finished: make(chan struct{})}
}

// machine identifies the data directory among the data directories of all machines.
func (l *Logs) machine() string {
	sum := sha256.Sum256([]byte(l.dir))
	return fmt.Sprintf("%s-%x", ace.FileName(process.Hostname()), sum[:4])
}

// Grew notes that the file has n more bytes, which are complete lines. It never blocks.
func (c *LogCopy) Grew(n int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size += int64(n)
	if c.sending {
		return
	}
	c.sending = true
	c.sender.Go(func() {
		for c.waitAndSend() {
		}
	})
}

// waitAndSend waits for shareEvery, copies new lines, and reports whether it must be called again because
// more lines were written. After an error, the next call copies the same lines. It does nothing when the log
// has ended.
func (c *LogCopy) waitAndSend() (more bool) {
	select {
	case <-c.finished:
	case <-time.After(shareEvery):
		ctx, cancel := context.WithTimeout(context.Background(), shareLimit)
		defer cancel()
		_ = c.send(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		more = c.sent != c.size
		c.sending = more
	}
	return more
}

// Finish copies the rest of a log that has ended. If ifShared is set, it does so only if a part of the log
// was already copied.
func (c *LogCopy) Finish(ctx context.Context, ifShared bool) error {
	if c == nil {
		return nil
	}
	close(c.finished)
	c.sender.Wait()
	if ifShared && c.sent == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shareLimit)
	defer cancel()
	return c.send(ctx)
}

// send copies the bytes that the store lacks. Only one goroutine at a time calls it.
func (c *LogCopy) send(ctx context.Context) error {
	f, err := os.Open(c.logs.Path(c.rel))
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		c.mu.Lock()
		from, size := c.sent, c.size
		c.mu.Unlock()
		if from == size {
			return nil
		}
		part := make([]byte, min(size-from, maxPart))
		if _, err := f.ReadAt(part, from); err != nil {
			return err
		}
		if err := c.logs.Append(ctx, c.rel, from, part); err != nil {
			return err
		}
		c.mu.Lock()
		c.sent += int64(len(part))
		c.mu.Unlock()
	}
}

// Shares reports whether there is a shared store.
func (l *Logs) Shares() bool { return l.store != nil && l.store.shared != nil }

// SharedSize returns the number of bytes of a file that this machine has copied to the shared store with
// [Logs.Append].
func (l *Logs) SharedSize(ctx context.Context, rel string) (size int64, err error) {
	for object, err := range l.store.shared.List(ctx, rel+"/"+l.machine()+"-") {
		if err != nil {
			return 0, err
		}
		if p, ok := parsePart(object.Key); ok && p.machine == l.machine() {
			size = max(size, p.offset+p.size)
		}
	}
	return size, nil
}

// Append copies bytes of a file, which begin at an offset, to the shared store.
func (l *Logs) Append(ctx context.Context, rel string, offset int64, content []byte) error {
	for part := range slices.Chunk(content, maxPart) {
		key := fmt.Sprintf("%s/%s-%012d-%d", rel, l.machine(), offset, len(part))
		err := l.store.shared.Create(ctx, key, bytes.NewReader(part))
		if err != nil && !errors.Is(err, bucket.ErrExists) {
			return err
		}
		offset += int64(len(part))
	}
	return nil
}

// Mirror copies the logs of a run on other machines from the shared store to this machine. It adds the
// missing bytes to existing copies. The names of the copies end with "@" and the machine.
func (l *Logs) Mirror(ctx context.Context, workflowID, runID string) error {
	dir := ace.RunLogsDir(workflowID, runID)
	return l.MirrorTo(ctx, dir+"/", func(rel, machine string) (file string) {
		if path.Dir(rel) != dir {
			return ""
		}
		return l.Path(strings.TrimSuffix(rel, logExt) + "@" + machine + logExt)
	})
}

// MirrorTo copies the files of other machines whose paths begin with a prefix from the shared store to this
// machine. place returns the file for a path of a machine, or "" to omit it.
func (l *Logs) MirrorTo(ctx context.Context, prefix string,
	place func(rel, machine string) (file string)) error {
	if !l.Shares() {
		return nil
	}
	parts := map[string][]logPart{} // by file
	for object, err := range l.store.shared.List(ctx, prefix) {
		if err != nil {
			return err
		}
		p, ok := parsePart(object.Key)
		if !ok || p.machine == l.machine() {
			continue
		}
		if file := place(path.Dir(object.Key), p.machine); file != "" {
			parts[file] = append(parts[file], p)
		}
	}
	for file, list := range parts {
		if err := l.mirror(ctx, file, list); err != nil {
			return err
		}
	}
	return nil
}

// Find returns the path of the first log with a name: of this machine, or else of another machine. If no log
// has the name, it returns the path that the log would have on this machine.
func (l *Logs) Find(n LogName) string {
	local := l.Path(n.Path())
	if !l.Shares() {
		return local
	}
	if _, err := os.Stat(local); err == nil {
		return local
	}
	if others, err := filepath.Glob(strings.TrimSuffix(local, logExt) + "@*" + logExt); err == nil &&
		len(others) > 0 {
		return others[0]
	}
	return local
}

// logPart is an object with a part of a log.
type logPart struct {
	key     string
	machine string
	offset  int64
	size    int64
}

func parsePart(key string) (p logPart, ok bool) {
	fields := partName.FindStringSubmatch(path.Base(key))
	if fields == nil {
		return p, false
	}
	p.key, p.machine = key, fields[1]
	p.offset, _ = strconv.ParseInt(fields[2], 10, 64)
	p.size, _ = strconv.ParseInt(fields[3], 10, 64)
	return p, p.offset+p.size <= MaxLog && p.size <= maxPart
}

var partName = regexp.MustCompile(`^(.+)-(\d{12})-(\d{1,9})$`)

// mirror appends the parts that a file lacks. Several processes may mirror the same file at the same time,
// because they write the same bytes at the same offsets.
func (l *Logs) mirror(ctx context.Context, file string, parts []logPart) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	slices.SortFunc(parts, func(a, b logPart) int { return cmp.Compare(a.offset, b.offset) })
	for _, p := range parts {
		if p.offset > have {
			return nil // an earlier part is not in the store yet
		}
		if p.offset+p.size <= have {
			continue
		}
		content, err := bucket.Get(ctx, l.store.shared, p.key, maxPart)
		if err != nil {
			return err
		}
		if _, err := f.WriteAt(content, p.offset); err != nil {
			return err
		}
		have = p.offset + int64(len(content))
	}
	return nil
}
