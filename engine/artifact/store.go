package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"acescope/engine/ace"
)

// Errors that callers tell apart with [errors.Is].
var (
	ErrNotFound = errors.New("artifact not found")
	ErrCorrupt  = errors.New("artifact is corrupt")
	ErrTooLarge = errors.New("artifact is larger than the limit")
	ErrBadRef   = errors.New("not an artifact reference")
)

const (
	tmpDir     = "tmp"
	sweepAge   = 24 * time.Hour
	sweepLimit = 1000
)

// Store is a directory of artifacts.
type Store struct{ dir string }

// Open makes the directory where there is none and removes temporary files that
// killed processes left there more than a day ago.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(dir, tmpDir), 0o700); err != nil {
		return nil, fmt.Errorf("artifact store %s: %w", dir, err)
	}
	s := &Store{dir: dir}
	s.sweep(time.Now().Add(-sweepAge))
	return s, nil
}

// Look is a store that is only read. It makes no directory.
func Look(dir string) *Store { return &Store{dir: dir} }

// sweep is housekeeping: what it cannot remove is tried again at the next Open.
func (s *Store) sweep(before time.Time) {
	d, err := os.Open(filepath.Join(s.dir, tmpDir))
	if err != nil {
		return
	}
	defer d.Close()
	entries, err := d.ReadDir(sweepLimit)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
			_ = os.Remove(filepath.Join(d.Name(), e.Name()))
		}
	}
}

// Put keeps everything r gives. The media type travels in the reference only. Putting
// the same content again gives the same reference, and mends a damaged file.
func (s *Store) Put(ctx context.Context, r io.Reader, mediaType string) (ace.Ref, error) {
	f, err := os.CreateTemp(filepath.Join(s.dir, tmpDir), "put-*")
	if err != nil {
		return ace.Ref{}, fmt.Errorf("put artifact: %w", err)
	}
	defer os.Remove(f.Name()) // gone already where it was renamed
	ref, err := fill(ctx, f, r)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return ace.Ref{}, fmt.Errorf("put artifact: %w", err)
	}
	ref.MediaType = mediaType
	if err := s.keep(f.Name(), ref); err != nil {
		return ace.Ref{}, fmt.Errorf("put artifact %s: %w", ref.SHA256, err)
	}
	return ref, nil
}

// PutBytes is [Store.Put] of a slice.
func (s *Store) PutBytes(ctx context.Context, content []byte, mediaType string) (ace.Ref, error) {
	return s.Put(ctx, bytes.NewReader(content), mediaType)
}

func fill(ctx context.Context, f *os.File, r io.Reader) (ace.Ref, error) {
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, h), contextReader{ctx, r})
	if err != nil {
		return ace.Ref{}, err
	}
	if err := f.Sync(); err != nil {
		return ace.Ref{}, err
	}
	return ace.Ref{SHA256: hex.EncodeToString(h.Sum(nil)), Size: n}, nil
}

// keep gives a synced temporary file its final name, unless sound content bears it.
func (s *Store) keep(tmp string, ref ace.Ref) error {
	path := s.path(ref.SHA256)
	dir := filepath.Dir(path)
	if err := s.fanOut(dir); err != nil {
		return err
	}
	if !s.sound(ref) {
		if err := os.Rename(tmp, path); err != nil {
			return err
		}
	}
	return syncDir(dir)
}

func (s *Store) fanOut(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncDir(s.dir)
}

func (s *Store) sound(ref ace.Ref) bool {
	r, err := s.Open(ref)
	if err != nil {
		return false
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err == nil
}

func (s *Store) path(sum string) string { return filepath.Join(s.dir, sum[:2], sum) }

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

// contextReader ends a copy soon after its context does.
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
