package ace

import (
	"errors"
	"fmt"
	"testing"
)

func TestNotFound(t *testing.T) {
	flow := NotFound{"flow", `run "acescope flow list"`}
	for _, test := range []struct {
		err  error
		want string
	}{
		{NotFound{Kind: "flow"}.Of("a"), `flow "a" not found`},
		{flow.With("a", "start it"), `flow "a" not found; start it`},
		{flow.Near("a", nil), `flow "a" not found; run "acescope flow list"`},
		{flow.Near("a", []string{"b", "c"}), `flow "a" not found; near: b, c`},
	} {
		if got := fmt.Errorf("--flow: %w", test.err).Error(); got != "--flow: "+test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
	err := fmt.Errorf("--flow: %w", flow.Of("a"))
	if _, ok := errors.AsType[NotFound](err); !ok || !errors.Is(err, flow) || errors.Is(err, NotFound{Kind: "run"}) {
		t.Errorf("%v is not of its kind", err)
	}
}
