package hooks_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"acescope/engine/agents/observe/hooks"
)

const foreign = `{
    "z": 1e3, "model": "opus",
    "hooks": {
        "PreToolUse": [{"matcher": "Bash|Write", "hooks": [{"type": "command", "command": "mine <b> & co"}]}],
        "Other": []
    },
    "permissions": {"allow": ["Bash(ls:*)"]}
}
`

// TestRoundTrip checks that uninstalling restores the settings byte for byte.
func TestRoundTrip(t *testing.T) {
	for _, before := range []string{foreign, "\ufeff" + foreign, "{}", "{}\n", `{"a":1}`,
		"{\n\t\"a\": [1, 2]\n}\n", `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"x"}]}]}}`} {
		with, err := hooks.Install([]byte(before), "/opt/it's/acescope-hook")
		if err != nil {
			t.Fatalf("%s: %v", before, err)
		}
		at := hooks.Installed(with)
		if !json.Valid([]byte(strings.TrimPrefix(string(with), "\ufeff"))) || len(at) != len(hooks.Events()) {
			t.Fatalf("%s became %s", before, with)
		}
		if want := `'/opt/it'\''s/acescope-hook' 2>/dev/null || :`; at["Stop"] != want {
			t.Errorf("command %s", at["Stop"])
		}
		again, err := hooks.Install(with, "/opt/it's/acescope-hook")
		if err != nil || string(again) != string(with) {
			t.Errorf("installed twice: %s, %v", again, err)
		}
		moved, err := hooks.Install(with, "/elsewhere/acescope-hook")
		if err != nil || strings.Contains(string(moved), "/opt/") || len(hooks.Installed(moved)) != len(at) {
			t.Errorf("installed elsewhere: %s, %v", moved, err)
		}
		without, err := hooks.Uninstall(moved)
		if err != nil || string(without) != before {
			t.Errorf("%q became %q, %v", before, without, err)
		}
	}
	if with, err := hooks.Install(nil, "/x/acescope-hook"); err != nil || !json.Valid(with) {
		t.Errorf("no settings became %s, %v", with, err)
	}
}

// TestKeepsOtherHooks checks that other hooks in the same group stay.
func TestKeepsOtherHooks(t *testing.T) {
	with := `{"hooks": {"Stop": [{"hooks": [{"command": "a"}, {"command": "/x/acescope-hook"}, {"command": "b"}]}, {"hooks": [{"command": "acescope-hook"}]}]}}`
	without, err := hooks.Uninstall([]byte(with))
	if want := `{"hooks": {"Stop": [{"hooks": [{"command": "a"}, {"command": "b"}]}]}}`; err != nil ||
		string(without) != want {
		t.Errorf("%s, %v", without, err)
	}
}

func TestInvalidSettings(t *testing.T) {
	for settings, want := range map[string]string{
		"{\n  // mine\n  \"a\": 1\n}": "line 2", "[]": "not an object", `{"hooks": []}`: "not an object",
		`{"hooks": {"Stop": {}}}`: "hooks.Stop", "{": "line 1",
		`{"hooks": {}, "hooks": {}}`: "duplicate key",
	} {
		_, err := hooks.Install([]byte(settings), "/x/acescope-hook")
		if !errors.Is(err, hooks.ErrNotPlain) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", settings, err)
		}
		if _, err := hooks.Uninstall([]byte(settings)); err == nil {
			t.Errorf("%q was edited", settings)
		}
	}
}

func FuzzInstall(f *testing.F) {
	f.Add([]byte(foreign))
	f.Add([]byte(`{"hooks": {"Stop": [{"hooks": [{"command": "acescope-hook"}]}]}}`))
	f.Add([]byte("{ }"))
	f.Fuzz(func(t *testing.T, settings []byte) {
		with, err := hooks.Install(settings, "/x/acescope-hook")
		if err != nil {
			return
		}
		if !json.Valid(with) {
			t.Fatalf("%q became %q", settings, with)
		}
		without, err := hooks.Uninstall(with)
		if err != nil || !json.Valid(without) || len(hooks.Installed(without)) > 0 {
			t.Fatalf("%q became %q, %v", with, without, err)
		}
	})
}
