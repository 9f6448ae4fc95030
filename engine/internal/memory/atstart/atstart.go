// Package atstart lets a program collect garbage rarely from its start on. A short command lives for a tenth
// of a second, and its libraries allocate most of its memory while they initialize.
//
// Since Go 1.21, packages are initialized in the order of their paths, as soon as their imports are. This one
// imports so little that it comes before most of the libraries that allocate much.
package atstart

import (
	"os"
	"runtime/debug"
)

// Bounds of a process that does not keep to its own; see package memory. The environment variables GOGC and
// GOMEMLIMIT take precedence.
const (
	percent = 400
	limit   = 1 << 30 // bytes
)

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}
