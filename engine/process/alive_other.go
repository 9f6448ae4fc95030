//go:build !unix

package process

import "os"

// Alive tells whether there is a process of the id, which may be another than it was.
func Alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release()
	return true
}
