//go:build !unix

package server

import "os"

// ownProcess reports whether pid is a live process.
func ownProcess(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	p.Release()
	return true
}
