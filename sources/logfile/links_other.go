//go:build !unix

package logfile

import "os"

// unlinked is not known here: an open file that was removed is closed when another takes
// its name.
func unlinked(os.FileInfo) bool { return false }

func openFile(path string) (*os.File, error) { return os.Open(path) }
