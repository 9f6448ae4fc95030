//go:build !linux

package sources

// residentBytes is 0: only Linux is asked.
func residentBytes() uint64 { return 0 }
