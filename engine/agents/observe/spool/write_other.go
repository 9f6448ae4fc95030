//go:build !unix

package spool

import "os"

// write appends a line.
func write(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size()+int64(len(line)) > MaxBytes {
		return ErrFull
	}
	_, err = f.Write(line)
	return err
}

// Lock does nothing: here a file that a writer has open cannot be removed.
func Lock(*os.File) bool { return true }
