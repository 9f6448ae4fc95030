package conffile

import (
	"reflect"
	"strings"
	"testing"
)

func TestAgents(t *testing.T) {
	f, wrong := Parse("c.toml", []byte(`
[agents]
allow_full = true

[agents.claude]
command = "/opt/claude"
model = "opus"
env = ["GH_TOKEN", "MY_*"]
allow_full = false

[agents.codex]
env = ["KEY=secret"]

[agents.gemini]
colour = "red"
working_dir = "~/work"

[agents.emacs]
command = "emacs"
`), func(string) bool { return false })
	want := []Agent{{Name: "claude", Command: "/opt/claude", Model: "opus", Env: []string{"GH_TOKEN", "MY_*"}},
		{Name: "gemini", WorkingDir: "~/work", AllowFull: true}, {Name: "opencode", AllowFull: true}}
	if !reflect.DeepEqual(f.Agents, want) {
		t.Errorf("%+v", f.Agents)
	}
	all := strings.Join(wrong, "\n")
	for _, say := range []string{"c.toml:11: agent codex: env names variables", `an agent has no "colour"`, `there is no agent "emacs"`} {
		if !strings.Contains(all, say) {
			t.Errorf("%q is not said in\n%s", say, all)
		}
	}
	if strings.Contains(all, "secret") {
		t.Error("a value is shown")
	}
	for _, bad := range []string{"agents = 3", "[agents]\nclaude = 3", "[agents.claude]\nenv = 3", "[agents.claude]\nallow_full = 'yes'",
		"[agents.claude]\nworking_dir = 'x'", "[agents.claude]\ncommand = '-x'", "[agents]\nallow_full = 3"} {
		if _, wrong := Parse("c.toml", []byte(bad), func(string) bool { return false }); len(wrong) != 1 {
			t.Errorf("%q: %v", bad, wrong)
		}
	}
}
