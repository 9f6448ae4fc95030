package server

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Names of the files in the data directory.
const (
	lockFile     = "host.lock"
	endpointFile = "endpoint.json"
	formatFile   = "format.json"
	tokenFile    = "token"
	portFile     = "port"
	databaseFile = "temporal.db"
	logDir       = "logs"
	logFile      = "server.log"
)

// openDir makes the data directory or checks an existing one. A directory that a
// newer version wrote is refused before anything in it is touched.
func openDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if dir == "" || err != nil {
		return "", failf(ErrDataDir, err, "no data directory given: name one with --data-dir")
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(abs, 0o700); err != nil {
			return "", dirError(abs, err)
		}
	case err != nil:
		return "", dirError(abs, err)
	case !info.IsDir():
		return "", dirError(abs, syscall.ENOTDIR)
	default:
		if _, err := readFormat(abs); err != nil {
			return "", err
		}
		if info.Mode().Perm()&0o077 != 0 {
			if err := os.Chmod(abs, 0o700); err != nil {
				return "", dirError(abs, err)
			}
		}
	}
	if err := os.MkdirAll(filepath.Join(abs, logDir), 0o700); err != nil {
		return "", dirError(abs, err)
	}
	return abs, nil
}

// dirError says in one line what is wrong with a data directory and what to do.
func dirError(dir string, err error) error {
	why, hint := err.Error(), "choose another with --data-dir"
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		why = "a part of this path is a file, not a directory"
	case errors.Is(err, syscall.EROFS):
		why = "the file system is read-only"
	case errors.Is(err, fs.ErrPermission):
		why, hint = "no permission to write there", "change its permissions or "+hint
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		why, hint = "no space left", "free some or "+hint
	case errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS):
		why = "files there cannot be locked, as on some network file systems"
		hint = "use a local disk: " + hint
	}
	return failf(ErrDataDir, err, "data directory %s: %s; %s", dir, why, hint)
}

// writeFile replaces a file of the data directory in one step, with mode 0600, so
// that a reader sees the old content or the new one.
func writeFile(dir, name string, data []byte) error {
	tmp, err := os.CreateTemp(dir, "."+name+"-*")
	if err != nil {
		return dirError(dir, err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return dirError(dir, err)
	}
	return nil
}
