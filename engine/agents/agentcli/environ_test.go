package agentcli

import (
	"slices"
	"testing"
)

// TestEnvironTurnsHookOff checks that acescope's own agents are not observed a second time.
func TestEnvironTurnsHookOff(t *testing.T) {
	t.Setenv("ACESCOPE_HOOK", "on")
	for _, cli := range CLIs() {
		adapter, err := For(cli)
		if err != nil {
			t.Fatal(err)
		}
		env := adapter.Environ(Command{Env: []string{"A=1"}}, "ACESCOPE_*")
		if !slices.Contains(env, "ACESCOPE_HOOK=off") || !slices.Contains(env, "A=1") ||
			slices.Contains(env, "ACESCOPE_HOOK=on") {
			t.Errorf("%s: %q", cli, env)
		}
	}
}
