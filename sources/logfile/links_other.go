//go:build !unix

package logfile

import "os"

// unlinked returns false: the state is unknown here. A removed file is closed when another one
// gets its name.
func unlinked(os.FileInfo) bool { return false }

func openFile(path string) (*os.File, error) { return os.Open(path) }
