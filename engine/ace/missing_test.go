package ace

import (
	"errors"
	"fmt"
	"testing"
)

func TestMissing(t *testing.T) {
	const kind = Kind("flow")
	for _, test := range []struct{ hint, want string }{
		{"", `flow "a" not found`},
		{Nearest(nil, `run "acescope flow list"`), `flow "a" not found; run "acescope flow list"`},
		{Nearest([]string{"b", "c"}, "unused"), `flow "a" not found; near: b, c`},
	} {
		err := fmt.Errorf("--flow: %w", kind.Missing("a", test.hint))
		if got := err.Error(); got != "--flow: "+test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
		if !errors.Is(err, kind) || errors.Is(err, Kind("run")) {
			t.Errorf("%v is not of its kind", err)
		}
	}
}
