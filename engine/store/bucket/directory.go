package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"acescope/engine/store/durable"
)

// tmpDir holds the files that are being written. No key begins with a dot.
const tmpDir = ".tmp"

// directory is a bucket whose objects are files named by their keys. It creates a file with [os.Link], which
// fails if the file exists, also for several machines on a network file system. gocloud.dev/blob/fileblob
// checks first and renames afterwards, so two processes could both succeed.
type directory struct {
	dir   string
	tmp   string // path of the files that are being written
	there bool   // whether the directory existed when it was opened
}

// Local returns a bucket with the files of an existing directory, and the first part of their keys: the name
// of the directory. tmp names the directory in it with the files that are being written.
func Local(dir, tmp string) (b Bucket, root string) {
	return &directory{filepath.Dir(dir), filepath.Join(dir, tmp), true}, filepath.Base(dir)
}

func openDirectory(u *url.URL, create bool) (Bucket, error) {
	if u.Host != "" || u.RawQuery != "" || !filepath.IsAbs(filepath.FromSlash(u.Path)) {
		return nil, fmt.Errorf("%w: %s; expected file:/// and an absolute path", ErrURL, u.Redacted())
	}
	d := &directory{dir: filepath.FromSlash(u.Path)}
	d.tmp = filepath.Join(d.dir, tmpDir)
	if create {
		if err := os.MkdirAll(d.tmp, 0o700); err != nil {
			return nil, d.explain("create", "the directory", err)
		}
	}
	durable.Sweep(d.tmp)
	d.there = d.exists()
	return d, nil
}

func (d *directory) path(key string) (string, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	return filepath.Join(d.dir, filepath.FromSlash(key)), nil
}

func (d *directory) Create(ctx context.Context, key string, content io.Reader) error {
	return d.explain("write", key, d.write(ctx, key, content, os.Link))
}

func (d *directory) Put(ctx context.Context, key string, content io.Reader) error {
	return d.explain("write", key, d.write(ctx, key, content, os.Rename))
}

// write writes the content to a temporary file and moves it to its path with move.
func (d *directory) write(ctx context.Context, key string, content io.Reader,
	move func(from, to string) error) error {
	path, err := d.path(key)
	if err != nil {
		return err
	}
	if !d.there && !d.gone() { // a data directory
		if err := os.MkdirAll(d.tmp, 0o700); err != nil {
			return err
		}
	}
	return durable.Place(path, d.tmp, content, func(from, to string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.mkdirs(key); err != nil {
			return err
		}
		return move(from, to)
	})
}

// mkdirs creates the directories of a key, but never the directory of the store: if its file system was
// unmounted, that would create a second, empty store at the mount point.
func (d *directory) mkdirs(key string) error {
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.MkdirAll(filepath.FromSlash(path.Dir(key)), 0o700)
}

func (d *directory) Open(_ context.Context, key string) (io.ReadCloser, error) {
	path, err := d.path(key)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, d.explain("read", key, err)
	}
	return f, nil
}

func (d *directory) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		from := filepath.Join(d.dir, filepath.FromSlash(prefix[:strings.LastIndexByte(prefix, '/')+1]))
		visit := func(path string, e fs.DirEntry, err error) error {
			key, relErr := filepath.Rel(d.dir, path)
			key = filepath.ToSlash(key)
			switch err := errors.Join(err, relErr, ctx.Err()); {
			case err != nil:
				return err
			case e.IsDir() && e.Name() == tmpDir:
				return fs.SkipDir
			case e.IsDir() || !strings.HasPrefix(key, prefix):
				return nil
			}
			info, err := e.Info()
			if err == nil && !yield(Object{key, info.Size(), info.ModTime()}, nil) {
				return fs.SkipAll
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil // deleted by another process
			}
			return err
		}
		err := filepath.WalkDir(from, visit)
		if errors.Is(err, fs.ErrNotExist) && !d.gone() {
			return // no key has this prefix
		}
		if err != nil {
			yield(Object{}, d.explain("list", prefix, err))
		}
	}
}

func (d *directory) Delete(_ context.Context, key string) error {
	path, err := d.path(key)
	if err != nil {
		return err
	}
	return d.explain("delete", key, os.Remove(path))
}

// explain returns the error of an operation on an object, or nil.
func (d *directory) explain(verb, key string, err error) error {
	missing := verb == "read" || verb == "delete"
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		err = ErrExists
	case errors.Is(err, fs.ErrNotExist) && missing && d.exists():
		err = ErrNotFound
	case errors.Is(err, fs.ErrNotExist): // the directory is gone, not the object
		err = fmt.Errorf("%w: %v", ErrUnavailable, err)
	default:
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return fmt.Errorf("%s %s in the store %s: %w", verb, key, d, err)
}

// exists reports whether the directory exists: if its network file system is unmounted, objects seem to be
// missing.
func (d *directory) exists() bool {
	_, err := os.Stat(d.tmp)
	return err == nil
}

// gone reports whether the directory is missing, or empty as a mount point without its file system. A data
// directory of acescope is a bucket that may lack tmpDir.
func (d *directory) gone() bool {
	if d.there || d.exists() {
		return !d.exists()
	}
	entries, err := os.ReadDir(d.dir)
	return err != nil || len(entries) == 0
}

func (d *directory) String() string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(d.dir)}).String()
}
func (d *directory) Close() error { return nil }
