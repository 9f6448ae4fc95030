package host

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Bounds of what tools read and write, in bytes.
const (
	maxRead  = 256 << 10
	maxWrite = 4 << 20
	maxPath  = 4096
)

// refuse is the answer of a tool that does not do what it is asked.
func refuse(format string, args ...any) (string, bool) { return fmt.Sprintf(format, args...), true }

// within says why a path does not lie in the working directory, nil where it may. Links that
// lead out of it are found when the file is opened.
func within(name string) error {
	switch {
	case name == "":
		return errors.New("no path is given")
	case len(name) > maxPath:
		return fmt.Errorf("the path is longer than %d bytes", maxPath)
	case strings.ContainsRune(name, 0):
		return errors.New("there is a NUL in the path")
	case !utf8.ValidString(name):
		return errors.New("the path is no UTF-8")
	case filepath.IsAbs(name) || strings.HasPrefix(name, "/"):
		return fmt.Errorf("%q: an absolute path; paths are relative to the working directory", name)
	case !filepath.IsLocal(filepath.FromSlash(name)):
		return fmt.Errorf("%q leads out of the working directory", name)
	}
	return nil
}

// plainly is an error without the path that was given, which need not be the real one.
func plainly(name string, err error) (string, bool) {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		err = p.Err
	case errors.As(err, &l):
		err = l.Err
	}
	if strings.Contains(err.Error(), "escapes") {
		return refuse("%q leads out of the working directory", name)
	}
	return refuse("%q: %v", name, err)
}

func readFile(_ context.Context, _ *Host, dir string, raw json.RawMessage) (string, bool) {
	var args struct {
		Path   string `json:"path"`
		Offset int64  `json:"offset"`
		Limit  int64  `json:"limit"`
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return refuse("the arguments are not understood: %v", err)
	}
	if err := within(args.Path); err != nil {
		return refuse("%v", err)
	}
	if args.Offset < 0 || args.Limit < 0 {
		return refuse("offset and limit are not negative")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return plainly(".", err)
	}
	defer root.Close()
	f, info, err := openPlain(root, args.Path)
	if err != nil {
		return plainly(args.Path, err)
	}
	defer f.Close()
	limit := int64(maxRead)
	if args.Limit > 0 {
		limit = min(limit, args.Limit)
	}
	data, err := io.ReadAll(io.NewSectionReader(f, args.Offset, limit))
	if err != nil {
		return plainly(args.Path, err)
	}
	text := strings.ToValidUTF8(string(data), "�")
	if end := args.Offset + int64(len(data)); end < info.Size() {
		text += fmt.Sprintf("\n[%d of %d bytes were left out: go on with offset %d]", info.Size()-end, info.Size(), end)
	}
	return text, false
}

// errNotPlain is of what is no file to be read or written: a directory, a device, a pipe.
var errNotPlain = errors.New("it is no regular file")

// openPlain opens a regular file for reading. It does not wait for a pipe's other end.
func openPlain(root *os.Root, name string) (*os.File, os.FileInfo, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errNotPlain
	}
	f, err := root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = errNotPlain
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func writeFile(_ context.Context, _ *Host, dir string, raw json.RawMessage) (string, bool) {
	var args struct {
		Path    string  `json:"path"`
		Content *string `json:"content"`
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return refuse("the arguments are not understood: %v", err)
	}
	if err := within(args.Path); err != nil {
		return refuse("%v", err)
	}
	switch {
	case args.Content == nil:
		return refuse("no content is given")
	case len(*args.Content) > maxWrite:
		return refuse("the content has %d bytes; above %d it is not written", len(*args.Content), maxWrite)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return plainly(".", err)
	}
	defer root.Close()
	if err := replace(root, path.Clean(filepath.ToSlash(args.Path)), []byte(*args.Content)); err != nil {
		return plainly(args.Path, err)
	}
	return fmt.Sprintf("%d bytes were written to %s", len(*args.Content), args.Path), false
}

// replace writes a file beside the one of the name, and gives it the name when it is whole.
func replace(root *os.Root, name string, content []byte) error {
	mode := fs.FileMode(0o644)
	info, err := root.Lstat(name)
	switch {
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		return errors.New("it is a symbolic link")
	case err == nil && !info.Mode().IsRegular():
		return errNotPlain
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	dir := path.Dir(name)
	if dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	tmp := path.Join(dir, ".acescope-"+rand.Text())
	if err := writeNew(root, tmp, content, mode); err != nil {
		_ = root.Remove(tmp)
		return err
	}
	if err := root.Rename(tmp, name); err != nil {
		_ = root.Remove(tmp)
		return err
	}
	return nil
}

func writeNew(root *os.Root, name string, content []byte, mode fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
