//go:build unix && !linux

package filelock

import "os"

// holders is not supported; only the recorded process is known.
func holders(*os.File) (pids map[int]bool, known bool) { return nil, false }
