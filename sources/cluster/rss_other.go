//go:build !linux

package cluster

// ResidentBytes returns 0.
func ResidentBytes() uint64 { return 0 }
