package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/conffile"
)

func TestPrecedence(t *testing.T) {
	file, _ := conffile.Parse("c.toml", []byte("theme = \"ember\"\nmouse = true\nrefresh = \"7s\"\nframe_rate = 500\nread_only = \"yes\"\naddress = \"file:1\"\ndata_dir = \"rel\"\n"), isSetting)
	for name, c := range map[string]struct {
		args, env         []string
		setting, val, who string
	}{
		"flag":     {[]string{"--theme", "paper"}, []string{"ACESCOPE_THEME=light"}, "theme", "paper", "flag --theme"},
		"env":      {nil, []string{"ACESCOPE_THEME=light"}, "theme", "light", "env ACESCOPE_THEME"},
		"file":     {nil, nil, "theme", "ember", "c.toml:1"},
		"default":  {nil, nil, "profile", "", "default"},
		"bad env":  {nil, []string{"ACESCOPE_REFRESH=soon"}, "refresh", "7s", "c.toml:3"},
		"bad file": {nil, nil, "frame_rate", "20", "default"},
		"bad type": {nil, nil, "read_only", "false", "default"},
		"relative": {nil, nil, "data_dir", "", "default"},
		"cluster":  {nil, []string{"TEMPORAL_ADDRESS=env:1"}, "address", "env:1", "env TEMPORAL_ADDRESS"},
		"no color": {[]string{"--theme", "paper"}, []string{"NO_COLOR=1"}, "theme", "no-color", "env NO_COLOR"},
	} {
		s := resolved(t, file, c.args, c.env)
		d := settingNamed(c.setting)
		if got := d.Get(&s); got != c.val || s.Origin[c.setting] != c.who {
			t.Errorf("%s: %s is %q by %s, want %q by %s", name, c.setting, got, s.Origin[c.setting], c.val, c.who)
		}
	}
	if n := len(resolved(t, file, nil, nil).Warnings); n != 3 {
		t.Errorf("%d warnings, want 3", n)
	}
}

// Whoever has most say decides between a cluster and a data directory.
func TestClusterOrDataDir(t *testing.T) {
	file, _ := conffile.Parse("c.toml", []byte("address = \"file:1\"\n"), isSetting)
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
	if s := resolved(t, conffile.File{}, nil, nil); s.wantsCluster() {
		t.Error("a cluster though nobody asked")
	}
}

func resolved(t *testing.T, file conffile.File, args, env []string) Settings {
	t.Helper()
	cmd := ConsoleFlags(&cobra.Command{Use: "x", Run: func(*cobra.Command, []string) {}})
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
