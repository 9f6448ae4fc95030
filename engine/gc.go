package engine

import (
	"os"
	"runtime/debug"
)

// A process that hosts keeps some 50 to 100 MB alive and allocates much: with Go's
// default it spends a tenth of the load on collecting. More room is given, up to a limit
// at which collecting comes first again.
const (
	gcPercent = 200
	gcLimit   = 1 << 30
)

// tuneGC leaves the settings of the environment alone.
func tuneGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(gcLimit)
	}
}
