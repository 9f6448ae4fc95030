package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"

	"acescope/engine/ace"
)

// Open opens an artifact. The size is checked now and the digest at the end: the
// reader gives [ErrCorrupt] in place of [io.EOF] where the content is not what the
// reference names, so what was read counts only once the end was reached.
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

// Get reads a whole artifact of at most limit bytes and verifies it.
func (s *Store) Get(ref ace.Ref, limit int64) ([]byte, error) {
	if err := check(ref); err != nil {
		return nil, err
	}
	if ref.Size > limit {
		return nil, fmt.Errorf("%w: %s has %d bytes, %d are allowed", ErrTooLarge, ref.SHA256, ref.Size, limit)
	}
	r, err := s.Open(ref)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	// The file's size was found equal to ref.Size, so this takes no more memory than the file does on disk.
	content := make([]byte, ref.Size)
	if _, err := io.ReadFull(r, content); err != nil {
		return nil, err
	}
	if _, err := r.Read(make([]byte, 1)); err != io.EOF {
		return nil, err
	}
	return content, nil
}

// Has tells whether the artifact is there with the right size; its content is not read.
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

// Path is where an artifact's content lies, for programs that read files; nobody has
// checked that it is there.
func (s *Store) Path(ref ace.Ref) (string, error) {
	if err := check(ref); err != nil {
		return "", err
	}
	return s.path(ref.SHA256), nil
}

// check comes before a reference touches a path.
func check(ref ace.Ref) error {
	if len(ref.SHA256) != 2*sha256.Size || ref.Size < 0 {
		return fmt.Errorf("%w: %.80q, %d bytes", ErrBadRef, ref.SHA256, ref.Size)
	}
	for _, c := range []byte(ref.SHA256) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return fmt.Errorf("%w: %q is not lower-case hexadecimal", ErrBadRef, ref.SHA256)
		}
	}
	return nil
}

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
	if err == nil && v.n > v.ref.Size || err == io.EOF && !v.whole() {
		return n, fmt.Errorf("%w: %s does not hold what its name says; remove it and run again", ErrCorrupt, v.f.Name())
	}
	return n, err
}

func (v *verifier) whole() bool {
	return v.n == v.ref.Size && hex.EncodeToString(v.hash.Sum(nil)) == v.ref.SHA256
}

func (v *verifier) Close() error { return v.f.Close() }
