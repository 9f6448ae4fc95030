//go:build !unix

package spool

import "os"

// write appends lines to a file of at most limit bytes.
func write(path string, lines []byte, limit int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size()+int64(len(lines)) > limit {
		return ErrFull
	}
	_, err = f.Write(lines)
	return err
}

// isOwn accepts every file, and openToOthers no directory: the system's access rights decide.
func isOwn(os.FileInfo) bool { return true }

func openToOthers(os.FileInfo) bool { return false }

// Lock does nothing: here a file that a writer has open cannot be removed.
func Lock(*os.File) bool { return true }
