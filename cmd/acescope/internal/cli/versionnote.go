package cli

import (
	"fmt"
	"strings"

	"golang.org/x/mod/semver"
)

// versionNote says that another version of acescope used a data directory before, or returns "".
func versionNote(dir, before, now string) string {
	if before == "" || before == now {
		return ""
	}
	was, is := "v"+strings.TrimPrefix(before, "v"), "v"+strings.TrimPrefix(now, "v")
	switch order := semver.Compare(was, is); {
	case !semver.IsValid(was) || !semver.IsValid(is) || order == 0:
		return fmt.Sprintf("acescope %s used data directory %s before; this is acescope %s", before, dir, now)
	case order > 0:
		return fmt.Sprintf("the newer acescope %s used data directory %s before; "+
			"this is acescope %s, which may not know all of its data", before, dir, now)
	}
	return fmt.Sprintf("the older acescope %s used data directory %s before; "+
		"verify its open runs with this acescope %s: acescope replay verify --all", before, dir, now)
}
