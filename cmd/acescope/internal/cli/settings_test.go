package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/conffile"
)

func TestPrecedence(t *testing.T) {
	const file = `theme = "ember"
mouse = true
refresh = "7s"
frame_rate = 500
read_only = "yes"
address = "file:1"
data_dir = "rel"
`
	for name, c := range map[string]struct {
		args, env              []string
		setting, value, source string
	}{
		"flag": {[]string{"--theme", "paper"}, []string{"ACESCOPE_THEME=light"}, "theme", "paper",
			"flag --theme"},
		"env":      {nil, []string{"ACESCOPE_THEME=light"}, "theme", "light", "env ACESCOPE_THEME"},
		"file":     {nil, nil, "theme", "ember", "c.toml:1"},
		"default":  {nil, nil, "profile", "", "default"},
		"bad env":  {nil, []string{"ACESCOPE_REFRESH=soon"}, "refresh", "7s", "c.toml:3"},
		"bad file": {nil, nil, "frame_rate", "20", "default"},
		"bad type": {nil, nil, "read_only", "false", "default"},
		"bad bool": {nil, []string{"ACESCOPE_MOUSE=maybe"}, "mouse", "true", "c.toml:2"},
		"relative": {nil, nil, "data_dir", "", "default"},
		"cluster":  {nil, []string{"TEMPORAL_ADDRESS=env:1"}, "address", "env:1", "env TEMPORAL_ADDRESS"},
		"no color": {[]string{"--theme", "paper"}, []string{"NO_COLOR=1"}, "theme", "no-color",
			"env NO_COLOR"},
	} {
		s := resolved(t, file, c.args, c.env)
		i := slices.IndexFunc(s.settings, func(d setting) bool { return d.name == c.setting })
		if got, source := s.settings[i].Value.String(), s.Sources[c.setting].Text; got != c.value ||
			source != c.source {
			t.Errorf("%s: %s is %q from %s, want %q from %s", name, c.setting, got, source, c.value, c.source)
		}
	}
	if n := len(resolved(t, file, nil, nil).Warnings); n != 3 {
		t.Errorf("%d warnings, want 3", n)
	}
}

// TestWantsCluster checks that the highest source decides between a cluster and a data directory.
func TestWantsCluster(t *testing.T) {
	for _, c := range []struct {
		args, env []string
		want      bool
	}{
		{nil, nil, true},
		{[]string{"--data-dir", "d"}, nil, false},
		{nil, []string{"ACESCOPE_DATA_DIR=/d"}, false},
		{[]string{"--data-dir", "d"}, []string{"TEMPORAL_ADDRESS=x:1"}, false},
		{[]string{"--data-dir", "d", "--address", "x:1"}, nil, true},
		{nil, []string{"ACESCOPE_DATA_DIR=/d", "TEMPORAL_PROFILE=p"}, true},
	} {
		s := resolved(t, "address = \"file:1\"\n", c.args, c.env)
		if s.wantsCluster() != c.want {
			t.Errorf("%v %v: a cluster is %v", c.args, c.env, !c.want)
		}
	}
	if s := resolved(t, "", nil, nil); s.wantsCluster() {
		t.Error("a cluster without a setting that names one")
	}
}

// TestDataFlags checks that a copied command gets the data that a flag or the environment chose, and no other
// setting.
func TestDataFlags(t *testing.T) {
	for want, c := range map[string]struct{ args, env []string }{
		"--data-dir /d": {[]string{"--data-dir", "/d", "--theme", "paper"}, []string{"TEMPORAL_ADDRESS=x:1"}},
		"--data-dir /e": {nil, []string{"ACESCOPE_DATA_DIR=/e"}},
		"--address x:1 --namespace n": {[]string{"--namespace", "n", "--refresh", "1s"},
			[]string{"TEMPORAL_ADDRESS=x:1"}},
		"": {nil, nil},
	} {
		a := &App{Settings: *resolved(t, "store = \"file:///s\"\n", c.args, c.env)}
		if got := strings.Join(a.DataFlags(), " "); got != want {
			t.Errorf("%v %v: %q, want %q", c.args, c.env, got, want)
		}
	}
}

func resolved(t *testing.T, file string, args, env []string) *Settings {
	t.Helper()
	a := &App{}
	cmd := a.ConsoleFlags(&cobra.Command{Use: "x", Run: func(*cobra.Command, []string) {}})
	a.SettingFlags(cmd.Flags())
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	f, warnings := conffile.Parse("c.toml", []byte(file), a.Settings.isSetting)
	if len(warnings) > 0 {
		t.Fatal(warnings)
	}
	getenv := func(name string) string {
		for _, e := range env {
			if value, ok := strings.CutPrefix(e, name+"="); ok {
				return value
			}
		}
		return ""
	}
	if err := a.Settings.resolve(getenv, f, nil); err != nil {
		t.Fatal(err)
	}
	return &a.Settings
}
