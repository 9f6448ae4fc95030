package admin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"acescope/tui"
)

func TestStateBySource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "state.json")
	one, two := &sourceState{path: path, source: "data /a"}, &sourceState{path: path, source: "cluster x ns"}
	for _, k := range []*sourceState{one, two} {
		if s, warning := k.load(); warning != "" || s.Screen != "" {
			t.Fatalf("the initial state is %+v, %q", s, warning)
		}
		if err := k.save(tui.State{Screen: "of " + k.source,
			History: map[string][]string{":": {"logs"}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := one.end(tui.State{Screen: "last"}); err != nil {
		t.Fatal(err)
	}
	if err := one.save(tui.State{Screen: "too late"}); err != nil {
		t.Fatal(err)
	}
	first, _ := one.load()
	second, _ := two.load()
	if first.Screen != "last" || second.Screen != "of cluster x ns" || second.History[":"][0] != "logs" {
		t.Errorf("states %+v and %+v", first, second)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.tmp")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestDamagedState(t *testing.T) {
	for _, damaged := range []string{"{\"version\":1,\"sour", `{"version":99}`, `[]`,
		`{"version":1,"sources":{"a":{"panes":"x"}}}`} {
		path := filepath.Join(t.TempDir(), "state.json")
		if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		k := &sourceState{path: path, source: "a"}
		if s, warning := k.load(); !strings.Contains(warning, "moved to state.json.damaged") ||
			s.Screen != "" {
			t.Errorf("%s: %+v, %q", damaged, s, warning)
		}
		if kept, err := os.ReadFile(path + ".damaged"); err != nil || string(kept) != damaged {
			t.Errorf("%s is now %q, %v", damaged, kept, err)
		}
		if err := k.save(tui.State{Screen: "runs"}); err != nil {
			t.Error(err)
		}
		if s, warning := k.load(); s.Screen != "runs" || warning != "" {
			t.Errorf("afterwards %+v, %q", s, warning)
		}
	}
}

func TestStateBound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	for i := range maxSources + 5 {
		if err := (&sourceState{path: path,
			source: fmt.Sprint("data ", i)}).save(tui.State{Screen: "runs"}); err != nil {
			t.Fatal(err)
		}
	}
	f, err := readState(path)
	if err != nil || len(f.Sources) != maxSources || f.Sources["data 0"] != nil ||
		f.Sources[fmt.Sprint("data ", maxSources+4)] == nil {
		t.Errorf("%d sources, %v", len(f.Sources), err)
	}
}
