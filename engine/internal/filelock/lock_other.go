//go:build !unix

package filelock

import "os"

// tryLock does nothing: programs do not inherit files here.
func tryLock(*os.File) error { return nil }

func terminateHolders(*os.File) {}
func killHolders(*os.File)      {}
