//go:build !linux

package cluster

// residentBytes is 0: only Linux is asked.
func residentBytes() uint64 { return 0 }
