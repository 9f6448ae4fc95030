package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"acescope/engine/ace"
	"acescope/engine/store/durable"
)

// LogMediaType is the media type of live logs.
const LogMediaType = "application/x-ndjson"

// MaxLog bounds a live log, in bytes. Later lines are counted and dropped.
const MaxLog = 1 << 30

// incompleteExt is the suffix of the empty file next to a log that lacks lines.
const incompleteExt = ".incomplete"

// LogName identifies a live log. It is known before the log is created, so that the console can
// find the log.
type LogName struct {
	WorkflowID, RunID string
	Activity          string
	Seq               int   // distinguishes activities of the same type in a run
	Attempt           int32 // of the activity
}

// Path returns the log's path below the data directory, with slashes:
// logs/runs/<workflow>/<run>/<activity>-<seq>-<attempt>.jsonl, escaped by [ace.FileName].
func (n LogName) Path() string { return n.path(1) }

func (n LogName) path(number int) string {
	name := fmt.Sprintf("%s-%d-%d", ace.FileName(n.Activity), n.Seq, n.Attempt)
	if number > 1 {
		name += fmt.Sprintf(".%d", number)
	}
	return path.Join(ace.RunLogsDir(n.WorkflowID, n.RunID), name+".jsonl")
}

// Logs are the live logs of a data directory.
type Logs struct {
	dir   string
	store *Store
}

// NewLogs returns the logs of a data directory. Finished logs are linked into the store, or copied
// if the store is on another file system.
func NewLogs(dataDir string, store *Store) *Logs { return &Logs{dataDir, store} }

// Path returns the path of a log on this machine.
func (l *Logs) Path(rel string) string { return filepath.Join(l.dir, filepath.FromSlash(rel)) }

// Existing returns the paths of the existing logs with a name, in the order of their creation.
func (l *Logs) Existing(n LogName) ([]string, error) {
	var list []string
	for i := 1; ; i++ {
		rel := n.path(i)
		_, err := os.Stat(l.Path(rel))
		if errors.Is(err, fs.ErrNotExist) {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		list = append(list, rel)
	}
}

// Create creates a log. If logs with the name exist, the new one gets the next number.
func (l *Logs) Create(n LogName) (*LiveLog, error) {
	for i := 1; ; i++ {
		rel := n.path(i)
		path := l.Path(rel)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, &LogError{rel, err}
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) && i < 1000 {
			continue
		}
		if err != nil {
			return nil, &LogError{rel, err}
		}
		return &LiveLog{logs: l, rel: rel, f: f, hash: sha256.New(), limit: MaxLog, copy: l.Copy(rel)}, nil
	}
}

// Seal seals a log whose writer is gone. It removes an incomplete last line.
func (l *Logs) Seal(ctx context.Context, rel string) (ace.Ref, error) {
	ref, err := l.hash(ctx, rel)
	if err != nil {
		return ace.Ref{}, &LogError{rel, err}
	}
	return ref, l.seal(ctx, rel, ref)
}

// hash truncates a log after its last complete line and returns its reference.
func (l *Logs) hash(ctx context.Context, rel string) (ace.Ref, error) {
	path := l.Path(rel)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrPermission) {
		f, err = os.Open(path) // the log is already read-only
	}
	if err != nil {
		return ace.Ref{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ace.Ref{}, err
	}
	end, err := lastLineEnd(f, info.Size())
	if err == nil && info.Size() > end {
		err = f.Truncate(end)
	}
	if err != nil {
		return ace.Ref{}, err
	}
	return copyHashed(ctx, io.Discard, io.NewSectionReader(f, 0, end), LogMediaType)
}

// lastLineEnd returns the offset after the last line break in the first size bytes.
func lastLineEnd(f io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for end := size; end > 0; {
		from := max(0, end-int64(len(buf)))
		n, err := f.ReadAt(buf[:end-from], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if at := bytes.LastIndexByte(buf[:n], '\n'); at >= 0 {
			return from + int64(at) + 1, nil
		}
		end = from
	}
	return 0, nil
}

// seal makes the file read-only and an artifact: a link, or a copy if linking fails.
func (l *Logs) seal(ctx context.Context, rel string, ref ace.Ref) error {
	path := l.Path(rel)
	if err := os.Chmod(path, 0o400); err != nil {
		return &LogError{rel, err}
	}
	if l.store.place(ctx, ref, path, os.Link) != nil {
		f, err := os.Open(path)
		if err != nil {
			return &LogError{rel, err}
		}
		defer f.Close()
		stored, err := l.store.Put(ctx, f, ref.MediaType)
		if err == nil && stored.SHA256 != ref.SHA256 {
			err = ErrCorrupt
		}
		if err != nil {
			return &LogError{rel, err}
		}
	}
	return durable.SyncDir(filepath.Dir(path))
}

// LogError reports that a live log could not be written. The lines before it are in the log.
type LogError struct {
	Path string
	Err  error
}

func (e *LogError) Error() string {
	if e.full() {
		return fmt.Sprintf("the disk is full: the log %s is incomplete", e.Path)
	}
	return fmt.Sprintf("the log %s is incomplete: %v", e.Path, e.Err)
}

func (e *LogError) Unwrap() error { return e.Err }

// full reports whether the disk or the user's quota is full.
func (e *LogError) full() bool {
	return errors.Is(e.Err, syscall.ENOSPC) || errors.Is(e.Err, syscall.EDQUOT)
}

// logFile is the part of a file that a live log uses.
type logFile interface {
	io.Writer
	Truncate(size int64) error
	Seek(offset int64, whence int) (int64, error)
	Sync() error
	Close() error
}

// LiveLog is a log that is being written. It is not safe for concurrent use.
type LiveLog struct {
	logs    *Logs
	rel     string
	f       logFile
	hash    hash.Hash
	size    int64
	limit   int64
	copy    *LogCopy
	dropped int64
	line    []byte
	err     error
}

// Path returns the log's path below the data directory, with slashes.
func (l *LiveLog) Path() string { return l.rel }

// Size returns how many bytes were written.
func (l *LiveLog) Size() int64 { return l.size }

// Dropped returns how many lines were not written.
func (l *LiveLog) Dropped() int64 { return l.dropped }

// Complete reports whether all lines were written.
func (l *LiveLog) Complete() bool { return l.dropped == 0 && l.err == nil }

// Line appends a line, given without line break, in one write. The first error, of type
// [*LogError], marks the log as incomplete and is returned for all later lines. A partial line is
// removed, so that the log ends with a complete one.
func (l *LiveLog) Line(line []byte) error {
	if l.err != nil {
		l.dropped++
		return l.err
	}
	if l.size+int64(len(line))+1 > l.limit {
		l.dropped++
		if l.dropped == 1 {
			l.markIncomplete()
		}
		return nil
	}
	l.line = append(append(l.line[:0], bytes.TrimRight(line, "\r\n")...), '\n')
	if cap(l.line) > 1<<20 {
		defer func() { l.line = nil }()
	}
	if _, err := l.f.Write(l.line); err != nil {
		return l.fail(err)
	}
	l.hash.Write(l.line)
	l.size += int64(len(l.line))
	l.copy.Grew(len(l.line))
	return nil
}

// fail removes a partial line and rejects later lines.
func (l *LiveLog) fail(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	l.err = &LogError{l.rel, err}
	l.dropped++
	if l.f.Truncate(l.size) == nil {
		_, _ = l.f.Seek(l.size, io.SeekStart)
	}
	l.markIncomplete()
	return l.err
}

// markIncomplete creates the file that marks the log as incomplete. If that fails, the result of
// the log's writer still reports it.
func (l *LiveLog) markIncomplete() {
	if f, err := os.OpenFile(l.logs.Path(l.rel)+incompleteExt, os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
		_ = f.Close()
	}
}

// Seal syncs and closes the log, makes it read-only and links it as an artifact. An error refers
// to the sealing only; see [LiveLog.Complete] for missing lines.
func (l *LiveLog) Seal(ctx context.Context) (ace.Ref, error) {
	if err := errors.Join(l.f.Sync(), l.f.Close()); err != nil {
		return ace.Ref{}, &LogError{l.rel, err}
	}
	ref := ace.Ref{SHA256: hex.EncodeToString(l.hash.Sum(nil)), Size: l.size, MediaType: LogMediaType}
	_ = l.copy.Finish(ctx, false) // after an error, other machines still get the artifact
	return ref, l.logs.seal(ctx, l.rel, ref)
}
