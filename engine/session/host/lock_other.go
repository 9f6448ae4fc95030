//go:build !unix

package host

import "os"

// tryLock does nothing: files go into no other process here. One process serves the
// sessions of a data directory, and ends its agents' processes with itself.
func tryLock(*os.File) error { return nil }

func terminateHolders(*os.File) {}
func killHolders(*os.File)      {}
