package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSaveFilter(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	f := FilterFile{}
	if list, err := f.Load(); err != nil || len(list) != 0 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, q := range [][2]string{{"a", `ExitStatus="wrong"`}, {"b ]", "x = 'y'\n"}, {"a", "again"}} {
		if err := f.SaveFilter(t.Context(), q[0], q[1]); err != nil {
			t.Fatal(err)
		}
	}
	list, err := f.Load()
	if err != nil || len(list) != 2 || list[0].Name != "a" || list[0].Query != "again" ||
		list[1].Query != "x = 'y'\n" {
		t.Errorf("%+v, %v", list, err)
	}
	left, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "acescope", "*"))
	if len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// TestBrokenFilters checks that a mistake in the file is reported with its line and the file is not
// overwritten.
func TestBrokenFilters(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	f := FilterFile{}
	path, _ := f.path()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for broken, line := range map[string]string{
		"[[filter]]\nname = 'a'\nqeury = 'b'\n": ":3: unknown key",
		"[[filter]]\nname = \n":                 ":2:",
	} {
		if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := f.SaveFilter(t.Context(), "x", "y"); err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("%v", err)
		}
		if now, _ := os.ReadFile(path); string(now) != broken {
			t.Errorf("the file is now %q", now)
		}
	}
}
