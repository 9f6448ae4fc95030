package playbook

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	booksDir    = "books"
	branchesDir = "branches"
	tmpDir      = "tmp"
	logSuffix   = ".log"
	lockSuffix  = ".lock"

	sweepAge   = 24 * time.Hour
	sweepLimit = 1000

	maxBranchName = 1024
	maxFileName   = 150
)

// fileName is the base name of a branch's files: lower-case letters, digits, "-" and
// "_" stand for themselves, as does "." within; every other byte is %XX, so that names
// which differ in case only differ on every file system. A long name is cut and goes on
// with its SHA-256.
func fileName(branch string) (string, error) {
	if branch == "" || len(branch) > maxBranchName || !utf8.ValidString(branch) {
		return "", fmt.Errorf("branch name %.80q: it must be UTF-8 text of 1 to %d bytes", branch, maxBranchName)
	}
	var name strings.Builder
	for i, c := range []byte(branch) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' && i > 0 {
			name.WriteByte(c)
		} else {
			fmt.Fprintf(&name, "%%%02x", c)
		}
	}
	if name.Len() <= maxFileName {
		return name.String(), nil
	}
	sum := sha256.Sum256([]byte(branch))
	return name.String()[:maxFileName-2*sha256.Size-1] + "~" + hex.EncodeToString(sum[:]), nil
}

// writeFile gives a file its content at once or not at all. Without durable, a power
// cut may still leave it empty.
func (s *Store) writeFile(path string, content []byte, durable bool) error {
	f, err := os.CreateTemp(filepath.Join(s.dir, tmpDir), "new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already where it was renamed
	_, err = f.Write(content)
	if err == nil && durable {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil && durable {
		err = syncDir(filepath.Dir(path))
	}
	return err
}

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

// makeDir makes one directory that lasts.
func makeDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// sweep removes what killed processes left in the temporary directory before that time.
// It is housekeeping: what it cannot remove is tried again at the next start.
func sweep(dir string, before time.Time) {
	d, err := os.Open(dir)
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
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
