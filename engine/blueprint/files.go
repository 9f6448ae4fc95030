package blueprint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"acescope/engine/redact"
)

// fileNames are the files that are read of a blueprint; others are the program's own.
func fileNames() []string {
	return []string{AgentFile, ParamsFile, PromptFile, CommandFile, ServersFile}
}

// readFiles reads the files that a blueprint has. The directory is a root that no link leads
// out of.
func readFiles(root *os.Root, all *Problems) map[string]*document {
	files := map[string]*document{}
	for _, name := range fileNames() {
		data, err := readFile(root, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			all.add(Problem{File: name, Text: plainly(err)})
		default:
			files[name] = &document{name: name, data: data}
		}
	}
	return files
}

// readFile reads one regular file. It does not wait for a writer, as of a named pipe.
func readFile(root *os.Root, name string) ([]byte, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if info.Mode()&fs.ModeSymlink != 0 {
			return nil, errors.New("is a link that leads out of the blueprint's directory, or nowhere: copy the file")
		}
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is no regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err == nil && len(data) > MaxFile {
		err = fmt.Errorf("is larger than %d KB", MaxFile>>10)
	}
	return data, err
}

// plainly is what went wrong with a file, without its name.
func plainly(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "is not there"
	case errors.Is(err, fs.ErrPermission):
		return "may not be read"
	}
	return err.Error()
}

// digest is the SHA-256 of the files, each with its name and length.
func digest(files map[string]*document) string {
	names := fileNames()
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		if d := files[name]; d != nil {
			fmt.Fprintf(h, "%s %d\n", name, len(d.data))
			h.Write(d.data)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// checkSecrets refuses what looks like a secret: what stands in a blueprint is recorded in
// the history of every run of it.
func (d *document) checkSecrets() {
	r := redact.New()
	clean := r.Bytes(d.data)
	if bytes.Equal(clean, d.data) {
		return
	}
	at := 0
	for at < len(clean) && at < len(d.data) && clean[at] == d.data[at] {
		at++
	}
	d.problem(at, "", "there is what looks like a secret, which would be recorded with every run: name a variable of the runner instead")
}
