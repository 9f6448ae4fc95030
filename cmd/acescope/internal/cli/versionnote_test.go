package cli

import (
	"strings"
	"testing"
)

func TestVersionNote(t *testing.T) {
	for _, c := range []struct{ before, now, want string }{
		{"", "1.0.0", ""},
		{"1.0.0", "1.0.0", ""},
		{"1.10.0", "1.9.0", "the newer acescope 1.10.0 used data directory /d before"},
		{"0.1.0-dev", "v0.1.0", "the older acescope 0.1.0-dev used data directory /d before"},
		{"1.0.0", "v1.0.0", "acescope 1.0.0 used"},
		{"unknown", "1.0.0", "acescope unknown used data directory /d before; this is acescope 1.0.0"},
	} {
		if got := versionNote("/d", c.before, c.now); (got == "") != (c.want == "") ||
			!strings.HasPrefix(got, c.want) {
			t.Errorf("%s, %s: %q", c.before, c.now, got)
		}
	}
}
