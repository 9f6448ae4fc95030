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
	"path/filepath"
	"syscall"

	"acescope/engine/ace"
)

// LogMediaType is the media type of live logs.
const LogMediaType = "application/x-ndjson"

// MaxLog is how large a live log may grow, in bytes. What comes after is counted.
const MaxLog = 1 << 30

// incompleteMark ends the name of the empty file beside a log that lacks lines.
const incompleteMark = ".incomplete"

// Logs is a data directory's live logs: files of JSON lines that are written while
// something happens, so that others can follow it, and are sealed at its end.
type Logs struct {
	dir   string
	store *Store
}

// NewLogs makes logs below a data directory; sealed ones are kept in the store too, which
// is best on the same file system: then they take no more space.
func NewLogs(dataDir string, store *Store) *Logs { return &Logs{dataDir, store} }

// Path is where the log of a name lies on this machine.
func (l *Logs) Path(rel string) string { return filepath.Join(l.dir, filepath.FromSlash(rel)) }

// LogError says that a live log could not be written. What happened before is in the log.
type LogError struct {
	Path string
	Err  error
}

func (e *LogError) Error() string {
	if e.Full() {
		return fmt.Sprintf("the disk is full: the log %s is not complete", e.Path)
	}
	return fmt.Sprintf("the log %s is not complete: %v", e.Path, e.Err)
}

func (e *LogError) Unwrap() error { return e.Err }

// Full tells whether the disk, or what the user may have of it, is full.
func (e *LogError) Full() bool {
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

// LiveLog is one log that is being written. It is for one goroutine at a time.
type LiveLog struct {
	logs    *Logs
	rel     string
	f       logFile
	hash    hash.Hash
	size    int64
	limit   int64
	dropped int64
	line    []byte
	err     error
}

// Create begins the log of a name. Where there is one already, it stays as it is and this
// one gets a number more.
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
		return &LiveLog{logs: l, rel: rel, f: f, hash: sha256.New(), limit: MaxLog}, nil
	}
}

// Path is the log's path below the data directory, with slashes.
func (l *LiveLog) Path() string { return l.rel }

// Size is how many bytes were written.
func (l *LiveLog) Size() int64 { return l.size }

// Dropped counts lines that were not written, because the log is too large or broken.
func (l *LiveLog) Dropped() int64 { return l.dropped }

// Complete tells whether every line is in the log.
func (l *LiveLog) Complete() bool { return l.dropped == 0 && l.err == nil }

// Line appends a line, given without its end, in one write. The first error, of type
// [*LogError], marks the log as incomplete and is given for every line after it too; what
// was written of the line is taken back, so that the log ends with a whole one.
func (l *LiveLog) Line(line []byte) error {
	if l.err != nil {
		l.dropped++
		return l.err
	}
	if l.size+int64(len(line))+1 > l.limit {
		if l.dropped++; l.dropped == 1 {
			l.mark()
		}
		return nil
	}
	l.line = append(append(l.line[:0], bytes.TrimRight(line, "\r\n")...), '\n')
	if cap(l.line) > 1<<20 {
		defer func() { l.line = nil }()
	}
	if _, err := l.f.Write(l.line); err != nil {
		return l.broken(err)
	}
	l.hash.Write(l.line)
	l.size += int64(len(l.line))
	return nil
}

// broken takes back half a line and lets no other follow.
func (l *LiveLog) broken(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	l.err = &LogError{l.rel, err}
	l.dropped++
	if l.f.Truncate(l.size) == nil {
		_, _ = l.f.Seek(l.size, io.SeekStart)
	}
	l.mark()
	return l.err
}

// mark leaves the empty file that says that lines are missing. Where even that has no
// place, the result of the one who wrote the log still says so.
func (l *LiveLog) mark() {
	if f, err := os.OpenFile(l.logs.Path(l.rel)+incompleteMark, os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
		_ = f.Close()
	}
}

// Seal ends the log: it is on disk, cannot be written to any more, and is an artifact with
// the digest of its content. Its name stays. The error is of the sealing; that lines are
// missing is told by [LiveLog.Complete].
func (l *LiveLog) Seal(ctx context.Context) (ace.Ref, error) {
	err := l.f.Sync()
	if cerr := l.f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return ace.Ref{}, &LogError{l.rel, err}
	}
	ref := ace.Ref{SHA256: hex.EncodeToString(l.hash.Sum(nil)), Size: l.size, MediaType: LogMediaType}
	return ref, l.logs.seal(ctx, l.rel, ref)
}

// Abandon closes the log as it is. It can be sealed later with [Logs.Seal].
func (l *LiveLog) Abandon() { _ = l.f.Close() }

// Seal seals a log that its writer has left, without what comes after the last whole line.
func (l *Logs) Seal(ctx context.Context, rel string) (ace.Ref, error) {
	path := l.Path(rel)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrPermission) {
		f, err = os.Open(path) // sealed before
	}
	if err != nil {
		return ace.Ref{}, &LogError{rel, err}
	}
	defer f.Close()
	whole, err := wholeLines(f)
	if err != nil {
		return ace.Ref{}, &LogError{rel, err}
	}
	if info, err := f.Stat(); err == nil && info.Size() > whole {
		if err := f.Truncate(whole); err != nil {
			return ace.Ref{}, &LogError{rel, err}
		}
	}
	h := sha256.New()
	if _, err = f.Seek(0, io.SeekStart); err == nil {
		_, err = io.Copy(h, contextReader{ctx, io.LimitReader(f, whole)})
	}
	if err != nil {
		return ace.Ref{}, &LogError{rel, err}
	}
	ref := ace.Ref{SHA256: hex.EncodeToString(h.Sum(nil)), Size: whole, MediaType: LogMediaType}
	return ref, l.seal(ctx, rel, ref)
}

// wholeLines is where the last whole line ends.
func wholeLines(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 64<<10)
	for end := info.Size(); end > 0; {
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

// seal makes the file read-only and an artifact: a second name of it, or a copy where the
// file system has no such thing.
func (l *Logs) seal(ctx context.Context, rel string, ref ace.Ref) error {
	path := l.Path(rel)
	if err := os.Chmod(path, 0o400); err != nil {
		return &LogError{rel, err}
	}
	if err := l.store.adopt(path, ref); err == nil {
		return syncDir(filepath.Dir(path))
	}
	f, err := os.Open(path)
	if err != nil {
		return &LogError{rel, err}
	}
	defer f.Close()
	kept, err := l.store.Put(ctx, f, ref.MediaType)
	if err == nil && kept.SHA256 != ref.SHA256 {
		err = ErrCorrupt
	}
	if err != nil {
		return &LogError{rel, err}
	}
	return syncDir(filepath.Dir(path))
}

// adopt gives a file that nobody writes to any more a second name as an artifact.
func (s *Store) adopt(path string, ref ace.Ref) error {
	to := s.path(ref.SHA256)
	if err := s.fanOut(filepath.Dir(to)); err != nil {
		return err
	}
	err := os.Link(path, to)
	if errors.Is(err, fs.ErrExist) && s.sound(ref) {
		err = nil
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}
