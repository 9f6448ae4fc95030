package server

import (
	"runtime/debug"

	"go.temporal.io/sdk/worker"
)

// nameBuild gives the process's workers, the server's own included, a build id. Left
// alone, the SDK computes one, the MD5 of the whole program file, when the first
// worker is made: some 300 ms for a program with a Temporal server in it, most of
// the server's start.
func nameBuild(version string) {
	id := "acescope-" + version
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				id += "-" + s.Value[:12]
			}
		}
	}
	worker.SetBinaryChecksum(id)
}
