// Package artifact stores payloads that are too large for a history in files named by the
// SHA-256 of their content, and the live logs of activities. It imports engine/ace,
// engine/internal/sleep, engine/store/durable, engine/store/bucket and the standard library.
//
// A [Store] is one directory: ab/<sha256> for the content (ab being the first two digits) and tmp
// for files being written. Several processes and goroutines may use one directory: files are
// never modified, so there is no lock. With a shared store, the directory is a cache: an artifact is in
// the shared store, as artifacts/ab/<sha256>, before its reference is returned, and is fetched from
// there if the directory lacks it. Storing an artifact again renews it, so that it is not deleted as unused.
//
// [Logs] are files of JSON lines below logs/ of the data directory. They are written during an
// activity so that others can follow them, and finished at its end: made read-only and linked as an
// artifact. A log that lacks lines has an empty file with the suffix .incomplete next to it; a log
// that may still be written has write permission.
//
// Order: a [ace.Ref] is returned only when its content is on disk under its final name. Bounds:
// contents are streamed, except by [Store.Get], which has a limit. Loss: a failed or killed Put
// leaves no file with a final name; its temporary file is removed with the error or after a day.
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
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/internal/sleep"
	"acescope/engine/store/bucket"
	"acescope/engine/store/durable"
)

// Errors for [errors.Is].
var (
	ErrNotFound = errors.New("artifact not found")
	ErrCorrupt  = errors.New("artifact is corrupt")
	ErrTooLarge = errors.New("artifact is larger than the limit")
	ErrBadRef   = errors.New("not an artifact reference")
)

const (
	tmpDir   = "tmp"
	maxCache = 4 << 30 // bytes of a shared store's artifacts in the directory

	maxFollowed = 4 << 20 // bytes of an artifact whose references are renewed with it
)

// Store is a directory of artifacts, or the cache of a shared store.
type Store struct {
	// Hint is appended to the error for a missing artifact, and says where the artifact may be; may be "".
	Hint string

	dir    string
	bucket bucket.Bucket // the shared store or the directory; nil if the store was opened for reading
	root   string        // the first part of the keys
	shared bucket.Bucket // nil for a directory only
	cache  *bucket.Cache // nil for a directory only
}

// Open opens the store in dir, creates the directory if necessary and removes temporary files
// that killed processes left more than a day ago.
func Open(dir string) (*Store, error) { return OpenShared(dir, nil) }

// OpenShared is like [Open] for the cache of a shared store, which may be nil.
func OpenShared(dir string, shared bucket.Bucket) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(dir, tmpDir), 0o700); err != nil {
		return nil, fmt.Errorf("artifact store %s: %w", dir, err)
	}
	durable.Sweep(filepath.Join(dir, tmpDir))
	s := &Store{dir: dir, shared: shared}
	if shared != nil {
		s.bucket, s.root, s.cache = shared, "artifacts", bucket.NewCache(dir, maxCache)
	} else {
		s.bucket, s.root = bucket.Local(dir, tmpDir)
	}
	return s, nil
}

// OpenReadOnly opens a store for reading. It does not create the directory.
func OpenReadOnly(dir string) *Store { return &Store{dir: dir} }

// Put stores everything that r returns. The media type is only part of the reference. Putting the
// same content again returns the same reference and repairs a corrupt file.
func (s *Store) Put(ctx context.Context, r io.Reader, mediaType string) (ace.Ref, error) {
	f, err := os.CreateTemp(filepath.Join(s.dir, tmpDir), "put-*")
	if err != nil {
		return ace.Ref{}, fmt.Errorf("put artifact: %w", err)
	}
	defer os.Remove(f.Name()) // fails if the file was renamed
	ref, err := copyHashed(ctx, f, r, mediaType)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return ace.Ref{}, fmt.Errorf("put artifact: %w", err)
	}
	if err := s.place(ctx, ref, f.Name(), os.Rename); err != nil {
		return ace.Ref{}, fmt.Errorf("put artifact %s: %w", ref.SHA256, err)
	}
	return ref, nil
}

// PutBytes stores a byte slice.
func (s *Store) PutBytes(ctx context.Context, content []byte, mediaType string) (ace.Ref, error) {
	return s.Put(ctx, bytes.NewReader(content), mediaType)
}

// copyHashed copies r to w and returns the reference of the content.
func copyHashed(ctx context.Context, w io.Writer, r io.Reader, mediaType string) (ace.Ref, error) {
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, h), contextReader{ctx, r})
	return ace.Ref{SHA256: hex.EncodeToString(h.Sum(nil)), Size: n, MediaType: mediaType}, err
}

// place copies a file with the content of an artifact to the shared store, and then moves it to the directory
// with put. If the directory has the intact artifact, it only gives it the current time. The time of a file
// in the cache of a shared store is that of its upload.
func (s *Store) place(ctx context.Context, ref ace.Ref, file string, put func(from, to string) error) error {
	path := s.path(ref.SHA256)
	info, err := os.Stat(path)
	have := err == nil && s.isIntact(ref)
	write := func() error {
		if have {
			err := os.Chtimes(path, time.Time{}, time.Now())
			if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if err := durable.Mkdir(filepath.Dir(path)); err != nil {
			return err
		}
		if err := put(file, path); err != nil {
			return err
		}
		s.cache.Added(ref.Size)
		return durable.SyncDir(filepath.Dir(path))
	}
	if s.shared == nil {
		return bucket.Renew(ctx, s.bucket, s.key(ref), write)
	}
	if have && bucket.Trusted(info.ModTime()) {
		return nil
	}
	if err := s.upload(ctx, ref, file); err != nil {
		return err
	}
	return write()
}

// An upload is repeated for uploadPatience if the shared store fails, because the result of a step that costs
// money should not be lost.
const (
	uploadPatience = 2 * time.Minute
	firstPause     = 100 * time.Millisecond
	maxPause       = 10 * time.Second
)

func (s *Store) upload(ctx context.Context, ref ace.Ref, file string) error {
	pause := firstPause
	for end := time.Now().Add(uploadPatience); ; pause = min(2*pause, maxPause) {
		err := s.uploadOnce(ctx, ref, file)
		if !errors.Is(err, bucket.ErrUnavailable) || time.Now().Add(pause).After(end) {
			return err
		}
		if sleep.For(ctx, pause) != nil {
			return err
		}
	}
}

func (s *Store) uploadOnce(ctx context.Context, ref ace.Ref, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return bucket.Store(ctx, s.shared, s.key(ref), f)
}

func (s *Store) isIntact(ref ace.Ref) bool {
	r, err := s.open(ref)
	if err != nil {
		return false
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err == nil
}

func (s *Store) path(sum string) string { return filepath.Join(s.dir, sum[:2], sum) }

// key returns the key of an artifact in the bucket.
func (s *Store) key(ref ace.Ref) string { return s.root + "/" + ref.SHA256[:2] + "/" + ref.SHA256 }

// fetch copies an artifact from the shared store to the directory, unless the directory has it.
func (s *Store) fetch(ctx context.Context, ref ace.Ref) error {
	if err := check(ref); err != nil || s.shared == nil {
		return err
	}
	path := s.path(ref.SHA256)
	if info, err := os.Stat(path); err == nil && info.Size() == ref.Size {
		return nil
	}
	r, err := s.shared.Open(ctx, s.key(ref))
	if errors.Is(err, bucket.ErrNotFound) {
		return fmt.Errorf("%w: %s in %s", ErrNotFound, ref.SHA256, s.shared)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	f, err := os.CreateTemp(filepath.Join(s.dir, tmpDir), "fetch-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails if the file was renamed
	have, err := copyHashed(ctx, f, io.LimitReader(r, ref.Size+1), ref.MediaType)
	if err == nil && have != ref {
		err = fmt.Errorf("%w: the content of %s in %s does not match its name", ErrCorrupt, s.key(ref),
			s.shared)
	}
	// The object may be old: the file does not count as uploaded.
	untrusted := time.Now().Add(-bucket.MinAge)
	if err := errors.Join(err, f.Close(), os.Chtimes(f.Name(), time.Time{}, untrusted)); err != nil {
		return err
	}
	if err := durable.Mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	s.cache.Added(ref.Size)
	return os.Rename(f.Name(), path)
}

// Open opens an artifact. It checks the size at once and the digest at the end: the reader
// returns [ErrCorrupt] instead of [io.EOF] if the content does not match the reference, so the
// content is verified only when the end was reached.
func (s *Store) Open(ctx context.Context, ref ace.Ref) (io.ReadCloser, error) {
	if err := s.fetch(ctx, ref); err != nil {
		return nil, fmt.Errorf("open artifact: %w", err)
	}
	return s.open(ref)
}

func (s *Store) open(ref ace.Ref) (io.ReadCloser, error) {
	if err := check(ref); err != nil {
		return nil, err
	}
	f, err := os.Open(s.path(ref.SHA256))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s in %s%s", ErrNotFound, ref.SHA256, s.dir, s.Hint)
	}
	if err != nil {
		return nil, fmt.Errorf("open artifact: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() != ref.Size {
		err = fmt.Errorf("%w: %s has %d bytes, its reference says %d", ErrCorrupt, f.Name(), info.Size(),
			ref.Size)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &verifier{f: f, hash: sha256.New(), ref: ref}, nil
}

// Get reads and verifies an artifact of at most limit bytes.
func (s *Store) Get(ctx context.Context, ref ace.Ref, limit int64) ([]byte, error) {
	if err := check(ref); err != nil {
		return nil, err
	}
	if ref.Size > limit {
		return nil, fmt.Errorf("%w: %s has %d bytes, the limit is %d", ErrTooLarge, ref.SHA256, ref.Size,
			limit)
	}
	content, err := s.read(ctx, ref)
	if errors.Is(err, ErrCorrupt) && s.shared != nil && os.Remove(s.path(ref.SHA256)) == nil {
		return s.read(ctx, ref) // the cached copy was damaged
	}
	return content, err
}

func (s *Store) read(ctx context.Context, ref ace.Ref) ([]byte, error) {
	r, err := s.Open(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	content := bytes.NewBuffer(make([]byte, 0, ref.Size+bytes.MinRead)) // Open has checked the size
	if _, err := content.ReadFrom(r); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}

// Has reports whether the artifact exists with the right size. It fetches it from a shared store, and
// does not read the content otherwise.
func (s *Store) Has(ctx context.Context, ref ace.Ref) (bool, error) {
	if err := check(ref); err != nil {
		return false, err
	}
	if err := s.fetch(ctx, ref); err != nil && !errors.Is(err, ErrNotFound) {
		return false, err
	}
	info, err := os.Stat(s.path(ref.SHA256))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("artifact %s: %w", ref.SHA256, err)
	}
	return info.Size() == ref.Size, nil
}

// Renew is like [Store.Has], and also keeps the artifact, and those to which its content refers, for
// [bucket.MinAge]. Call it before you refer to an artifact that was stored some time ago. A damaged artifact
// counts as missing.
func (s *Store) Renew(ctx context.Context, ref ace.Ref) (bool, error) {
	has, err := s.Has(ctx, ref)
	if !has || err != nil || s.bucket == nil {
		return has, err
	}
	if !s.isIntact(ref) {
		return false, nil
	}
	path := s.path(ref.SHA256)
	gone := func(string, string) error { return fmt.Errorf("%w: %s was deleted", ErrNotFound, ref.SHA256) }
	if err := s.place(ctx, ref, path, gone); errors.Is(err, ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil || ref.Size > maxFollowed {
		return err == nil, err
	}
	content, err := s.Get(ctx, ref, maxFollowed)
	for _, next := range ace.RefsIn(content) {
		if err == nil {
			_, err = s.Renew(ctx, next)
		}
	}
	return err == nil, err
}

// Path returns the path of an artifact's file. It first fetches the artifact from a shared store. The file
// may be missing.
func (s *Store) Path(ctx context.Context, ref ace.Ref) (string, error) {
	if err := check(ref); err != nil {
		return "", err
	}
	if err := s.fetch(ctx, ref); err != nil && !errors.Is(err, ErrNotFound) {
		return "", err
	}
	return s.path(ref.SHA256), nil
}

// check validates a reference before it becomes part of a path.
func check(ref ace.Ref) error {
	hexadecimal := strings.Trim(ref.SHA256, "0123456789abcdef") == ""
	if len(ref.SHA256) != 2*sha256.Size || !hexadecimal || ref.Size < 0 {
		return fmt.Errorf("%w: %.80q, %d bytes", ErrBadRef, ref.SHA256, ref.Size)
	}
	return nil
}

// verifier checks the digest of a file while it is read.
type verifier struct {
	f    *os.File
	hash hash.Hash
	n    int64
	ref  ace.Ref
}

func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.f.Read(p)
	v.hash.Write(p[:n])
	v.n += int64(n)
	if err == nil && v.n > v.ref.Size || err == io.EOF && !v.matches() {
		return n, fmt.Errorf("%w: the content of %s does not match its name; remove the file and run again",
			ErrCorrupt, v.f.Name())
	}
	return n, err
}

func (v *verifier) Close() error { return v.f.Close() }

func (v *verifier) matches() bool {
	return v.n == v.ref.Size && hex.EncodeToString(v.hash.Sum(nil)) == v.ref.SHA256
}

// contextReader stops a copy soon after its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// Import copies the artifacts of another store. It skips artifacts that are damaged or cannot be read; the
// error names them. progress is called after each artifact; it may be nil.
func (s *Store) Import(ctx context.Context, from *Store, progress func(count int, bytes int64)) error {
	var damaged []error
	count, bytes := 0, int64(0)
	err := filepath.WalkDir(from.dir, func(path string, e fs.DirEntry, err error) error {
		ref := ace.Ref{SHA256: e.Name()}
		if err != nil || e.IsDir() || check(ref) != nil || from.path(ref.SHA256) != path {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		ref.Size = info.Size()
		r, err := from.open(ref)
		if err != nil {
			damaged = append(damaged, err)
			return nil
		}
		defer r.Close()
		_, err = s.Put(ctx, r, "")
		if errors.Is(err, ErrCorrupt) {
			damaged = append(damaged, fmt.Errorf("%w: %s", ErrCorrupt, path))
			return nil
		}
		if count++; err == nil && progress != nil {
			bytes += ref.Size
			progress(count, bytes)
		}
		return err
	})
	return errors.Join(append(damaged, err)...)
}
