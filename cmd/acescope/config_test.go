package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestConfigNamesMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"theme = \"x\"\n\nthme = 3\n": `c.toml:3: there is no setting "thme"`,
		"a = ":                        "c.toml:1: ",
		"mouse = true\n[keys]\nx = 4": "c.toml:3: keys: x is a list of keys",
		"keys = 3":                    "c.toml:1: keys is a table",
		"filters = 3":                 "c.toml:1: filters are tables",
		"[[filters]]\nname = 'a'":     "c.toml:1: filter: it needs a name and a query",
		"\n[[filters]]\nname='a'\nquery='b'\nwhat=1":                                                     `c.toml:5: a filter has no "what"`,
		"[[filters]]\nname = 1\nquery = 'x'":                                                             "c.toml:1: filter: name is of another type",
		"[[filters]]\nname='a'\nquery='b'\n[[filters]]\nname='a'\nquery='c'":                             `c.toml:4: filter: a filter "a" is there already`,
		"[[filters]]\nname='a'\nquery='b'\ndefault=true\n[[filters]]\nname='c'\nquery='c'\ndefault=true": `c.toml:5: filter "c": "a" is the default already`,
		"[other.thing]\nx = 1":     `c.toml:1: there is no setting "other"`,
		"theme = 'a'\ntheme = 'b'": "c.toml:2: ",
		"mouse = true\n\x00":       "c.toml:2: ",
	} {
		_, wrong := parseConfig("c.toml", []byte(text))
		if len(wrong) != 1 || !strings.HasPrefix(wrong[0], want) {
			t.Errorf("%q: warnings are %q, want one that begins %q", text, wrong, want)
		}
	}
}

func TestConfigIsRead(t *testing.T) {
	c, wrong := parseConfig("c.toml", []byte("theme = \"ember\"\nframe_rate = 20\n\n[keys]\n\"runs.query\" = [\"/\", \"f\"]\nshell.zoom = \"Z\"\nrun = {log = []}\n\n"+
		"[[filters]]\nname = \"bad\"\nquery = \"wrong\"\ndefault = true\n[[filters]]\nname = \"mine\"\nquery = \"exp=x\"\n"))
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	if c.values["theme"] != (fileValue{"ember", 1}) || c.values["frame_rate"] != (fileValue{int64(20), 2}) {
		t.Errorf("values are %v", c.values)
	}
	if got := strings.Join(c.keys["runs.query"], " "); got != "/ f" || c.keyLine["runs.query"] != 5 || c.keys["shell.zoom"][0] != "Z" || c.keyLine["run.log"] != 7 || c.keys["run.log"] == nil {
		t.Errorf("keys are %v at %v", c.keys, c.keyLine)
	}
	if len(c.filters) != 2 || c.filters[0] != (savedFilter{"bad", "wrong", true}) || c.filters[1].Name != "mine" {
		t.Errorf("filters are %v", c.filters)
	}
	if c, wrong := readConfig(filepath.Join(t.TempDir(), "none.toml")); len(wrong) > 0 || len(c.values) > 0 {
		t.Errorf("no file says %v, %v", c, wrong)
	}
}

func TestPrecedence(t *testing.T) {
	file, _ := parseConfig("c.toml", []byte("theme = \"ember\"\nmouse = true\nrefresh = \"7s\"\nframe_rate = 500\nread_only = \"yes\"\naddress = \"file:1\"\ndata_dir = \"rel\"\n"))
	for name, c := range map[string]struct {
		args, env         []string
		setting, val, who string
	}{
		"flag":     {[]string{"--theme", "paper"}, []string{"ACESCOPE_THEME=light"}, "theme", "paper", "flag --theme"},
		"env":      {nil, []string{"ACESCOPE_THEME=light"}, "theme", "light", "env ACESCOPE_THEME"},
		"file":     {nil, nil, "theme", "ember", "c.toml:1"},
		"default":  {nil, nil, "profile", "", "default"},
		"bad env":  {nil, []string{"ACESCOPE_REFRESH=soon"}, "refresh", "7s", "c.toml:3"},
		"bad file": {nil, nil, "frame_rate", "30", "default"},
		"bad type": {nil, nil, "read_only", "false", "default"},
		"relative": {nil, nil, "data_dir", "", "default"},
		"cluster":  {nil, []string{"TEMPORAL_ADDRESS=env:1"}, "address", "env:1", "env TEMPORAL_ADDRESS"},
		"no color": {[]string{"--theme", "paper"}, []string{"NO_COLOR=1"}, "theme", "no-color", "env NO_COLOR"},
	} {
		s := resolved(t, file, c.args, c.env)
		d := settingNamed(c.setting)
		if got := d.get(&s); got != c.val || s.origin[c.setting] != c.who {
			t.Errorf("%s: %s is %q by %s, want %q by %s", name, c.setting, got, s.origin[c.setting], c.val, c.who)
		}
	}
	if n := len(resolved(t, file, nil, nil).warnings); n != 3 {
		t.Errorf("%d warnings, want 3", n)
	}
}

// Whoever has most say decides between a cluster and a data directory.
func TestClusterOrDataDir(t *testing.T) {
	file, _ := parseConfig("c.toml", []byte("address = \"file:1\"\n"))
	for _, c := range []struct {
		args, env []string
		want      bool
	}{
		{nil, nil, true}, {[]string{"--data-dir", "d"}, nil, false}, {nil, []string{"ACESCOPE_DATA_DIR=/d"}, false},
		{[]string{"--data-dir", "d"}, []string{"TEMPORAL_ADDRESS=x:1"}, false}, {[]string{"--data-dir", "d", "--address", "x:1"}, nil, true},
		{nil, []string{"ACESCOPE_DATA_DIR=/d", "TEMPORAL_PROFILE=p"}, true},
	} {
		s := resolved(t, file, c.args, c.env)
		if s.wantsCluster() != c.want {
			t.Errorf("%v %v: a cluster is %v", c.args, c.env, !c.want)
		}
	}
	if s := resolved(t, fileConfig{}, nil, nil); s.wantsCluster() {
		t.Error("a cluster though nobody asked")
	}
}

func resolved(t *testing.T, file fileConfig, args, env []string) settings {
	t.Helper()
	cmd := consoleFlags(&cobra.Command{Use: "x", Run: func(*cobra.Command, []string) {}})
	for _, n := range []string{"data-dir", "address", "namespace", "profile"} {
		cmd.Flags().String(n, "", "")
	}
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	s, err := resolve(cmd.Flags(), func(name string) string {
		for _, e := range env {
			if k, v, _ := strings.Cut(e, "="); k == name {
				return v
			}
		}
		return ""
	}, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Whatever a file holds, it is read or each mistake is a line that names the file.
func FuzzConfig(f *testing.F) {
	f.Add([]byte("theme = \"ember\"\n[keys]\n\"runs.query\" = [\"/\"]\na.b.c = 'x'\n[[filters]]\nname='a'\nquery='b'\n"))
	f.Add([]byte("filters = [{name = 'a', query = 'b'}, 3]\nkeys = {a = {b = 1979-05-27}}\n[x.y]\n[[x.z]]\n"))
	f.Add([]byte("[[filters]]\n[filters.name]\n[[filters.x]]\n\"\" = ''\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, wrong := parseConfig("c.toml", data)
		s := resolved(t, c, nil, nil)
		for _, w := range append(wrong, s.warnings...) {
			if !strings.HasPrefix(w, "c.toml:") {
				t.Errorf("a warning does not name the file: %q", w)
			}
		}
		if s.FrameRate < minFrameRate || s.Refresh < minRefresh {
			t.Errorf("out of range: %+v", s)
		}
	})
}

func TestConfigTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(path, make([]byte, maxConfig+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, wrong := readConfig(path); len(wrong) != 1 || !strings.Contains(wrong[0], "larger than 1024 KB") {
		t.Errorf("warnings are %q", wrong)
	}
}
