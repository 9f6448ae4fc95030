// Package durable writes files that are complete or missing after a crash. It imports the standard
// library only, and every package may import it.
package durable

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// TempPrefix begins the names of the temporary files of [WriteFile].
const TempPrefix = ".new-"

// WriteFile replaces a file atomically by way of a temporary file in tmpDir, with mode 0600. With
// sync, it returns after the file is on disk; otherwise a power failure may leave it empty.
func WriteFile(path, tmpDir string, content []byte, sync bool) error {
	return write(path, tmpDir, bytes.NewReader(content), sync, os.Rename)
}

// Create writes a file with mode 0600, or leaves the one that exists. Of concurrent calls, one succeeds in
// writing, and all of them return after its file is there.
func Create(path string, content []byte) error {
	err := Place(path, filepath.Dir(path), bytes.NewReader(content), os.Link)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// Place writes content to a temporary file in tmpDir and moves it to path with a function, which is usually
// [os.Rename] or [os.Link]. When it returns nil, the file is on disk.
func Place(path, tmpDir string, content io.Reader, move func(from, to string) error) error {
	return write(path, tmpDir, content, true, move)
}

func write(path, tmpDir string, content io.Reader, sync bool, move func(from, to string) error) error {
	f, err := os.CreateTemp(tmpDir, TempPrefix+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename
	_, err = io.Copy(f, content)
	if err == nil && sync {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = move(f.Name(), path)
	}
	if err == nil && sync {
		err = SyncDir(filepath.Dir(path))
	}
	return err
}

// Mkdir creates a directory with mode 0700 in an existing one, unless it exists.
func Mkdir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(dir))
}

// SyncDir writes the entries of a directory to disk.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Bounds of [Sweep].
const (
	sweepAge   = 24 * time.Hour
	sweepLimit = 1000 // files
)

// Sweep removes files older than a day from a temporary directory, which killed processes have left there.
// Files that it cannot remove stay for the next call.
func Sweep(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	entries, err := d.ReadDir(sweepLimit)
	if err != nil {
		return
	}
	before := time.Now().Add(-sweepAge)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
