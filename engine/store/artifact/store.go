// Package artifact stores payloads that are too large for a history in files named by the
// SHA-256 of their content, and the live logs of activities. It imports engine/ace,
// engine/internal/durable and the standard library.
//
// A [Store] is one directory: ab/<sha256> for the content (ab being the first two digits) and tmp
// for files being written. Several processes and goroutines may use one directory: files are
// never modified, so there is no lock.
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

	"acescope/engine/ace"
	"acescope/engine/internal/durable"
)

// Errors for [errors.Is].
var (
	ErrNotFound = errors.New("artifact not found")
	ErrCorrupt  = errors.New("artifact is corrupt")
	ErrTooLarge = errors.New("artifact is larger than the limit")
	ErrBadRef   = errors.New("not an artifact reference")
)

const tmpDir = "tmp"

// Store is a directory of artifacts.
type Store struct{ dir string }

// Open opens the store in dir, creates the directory if necessary and removes temporary files
// that killed processes left more than a day ago.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(dir, tmpDir), 0o700); err != nil {
		return nil, fmt.Errorf("artifact store %s: %w", dir, err)
	}
	durable.Sweep(filepath.Join(dir, tmpDir))
	return &Store{dir: dir}, nil
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
	if err := s.place(ref, func(path string) error { return os.Rename(f.Name(), path) }); err != nil {
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

// place lets put create the file of an artifact, unless an intact one exists.
func (s *Store) place(ref ace.Ref, put func(path string) error) error {
	path := s.path(ref.SHA256)
	if err := durable.Mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	if !s.isIntact(ref) {
		if err := put(path); err != nil {
			return err
		}
	}
	return durable.SyncDir(filepath.Dir(path))
}

func (s *Store) isIntact(ref ace.Ref) bool {
	r, err := s.Open(ref)
	if err != nil {
		return false
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err == nil
}

func (s *Store) path(sum string) string { return filepath.Join(s.dir, sum[:2], sum) }

// Open opens an artifact. It checks the size at once and the digest at the end: the reader
// returns [ErrCorrupt] instead of [io.EOF] if the content does not match the reference, so the
// content is verified only when the end was reached.
func (s *Store) Open(ref ace.Ref) (io.ReadCloser, error) {
	if err := check(ref); err != nil {
		return nil, err
	}
	f, err := os.Open(s.path(ref.SHA256))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s in %s", ErrNotFound, ref.SHA256, s.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open artifact: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() != ref.Size {
		err = fmt.Errorf("%w: %s has %d bytes, its reference says %d", ErrCorrupt, f.Name(), info.Size(), ref.Size)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &verifier{f: f, hash: sha256.New(), ref: ref}, nil
}

// Get reads and verifies an artifact of at most limit bytes.
func (s *Store) Get(ref ace.Ref, limit int64) ([]byte, error) {
	if err := check(ref); err != nil {
		return nil, err
	}
	if ref.Size > limit {
		return nil, fmt.Errorf("%w: %s has %d bytes, the limit is %d", ErrTooLarge, ref.SHA256, ref.Size, limit)
	}
	r, err := s.Open(ref)
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

// Has reports whether the artifact exists with the right size. It does not read the content.
func (s *Store) Has(ref ace.Ref) (bool, error) {
	if err := check(ref); err != nil {
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

// Path returns the path of an artifact's file, which may not exist.
func (s *Store) Path(ref ace.Ref) (string, error) {
	if err := check(ref); err != nil {
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
		return n, fmt.Errorf("%w: the content of %s does not match its name; remove the file and run again", ErrCorrupt, v.f.Name())
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
