package conffile

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// noSettings is a predicate for files without settings.
func noSettings(string) bool { return false }

// containsAll fails the test for each text that is not in the warnings.
func containsAll(t *testing.T, warnings []string, texts ...string) {
	t.Helper()
	all := strings.Join(warnings, "\n")
	for _, want := range texts {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in\n%s", want, all)
		}
	}
}

func TestPrices(t *testing.T) {
	f, warnings := Parse("c.toml", []byte(`
[[prices]]
model = "local-1"
input = 2
output = 8.5
cache_read = 0.1

[[prices]]
input = 1

[[prices]]
model = "x"
output = -1

[[prices]]
model = "y"
shade = "red"

[[prices]]
model = "z"
cache_write_1h = "much"
`), noSettings)
	want := []Price{{Model: "local-1", Input: 2, Output: 8.5, CacheRead: 0.1}, {Model: "y"}}
	if !reflect.DeepEqual(f.Prices, want) {
		t.Errorf("%+v", f.Prices)
	}
	containsAll(t, warnings, "c.toml:8: price: needs a model",
		"c.toml:11: price: every price must be 0 or more",
		`c.toml:17: unknown key "shade"`, "price: cache_write_1h has the wrong type")
	if _, warnings := Parse("c.toml", []byte("prices = 3"), noSettings); len(warnings) != 1 {
		t.Error(warnings)
	}
}

func TestProviders(t *testing.T) {
	f, warnings := Parse("c.toml", []byte(`
[providers.local]
base_url = "http://127.0.0.1:8000/v1"
model = "m-1"
api_key_env = "STUB_KEY"
max_tokens = 4000

[providers.anthropic]
model = "m-2"

[providers.leaky]
base_url = "http://x"
api_key = "sk-very-secret-value"

[providers.user]
base_url = "http://u:very-secret@x"

[providers.none]
model = "m"

[providers.builtin]
model = "m"

[providers.odd]
base_url = "ftp://x"

[providers.ollama]
kind = "anthropic"

[providers.rel]
base_url = "http://x"
working_dir = "here"
shade = "red"
`), noSettings)
	want := []Provider{
		{Name: "anthropic", Model: "m-2"},
		{Name: "local", BaseURL: "http://127.0.0.1:8000/v1", Model: "m-1", KeyEnv: "STUB_KEY", Tokens: 4000},
	}
	if !reflect.DeepEqual(f.Providers, want) {
		t.Errorf("%+v", f.Providers)
	}
	containsAll(t, warnings, `c.toml:11: provider "leaky": an API key must not be in this file`,
		"must not contain a user or a query", "needs a base_url", "must not be builtin",
		"base_url must be a URL such as",
		"cannot be changed", "must be an absolute path", `unknown key "shade"`)
	if all := strings.Join(warnings, "\n"); strings.Contains(all, "secret-value") ||
		strings.Contains(all, "very-secret") {
		t.Errorf("a secret is shown:\n%s", all)
	}
}

func TestGraders(t *testing.T) {
	f, warnings := Parse("c.toml", []byte(`
[graders.tests]
command = ["python3", "grade.py", "--all"]
timeout = "1m"

[graders.plain]
command = ["./grade"]

[graders."A b"]
command = ["x"]

[graders.none]
timeout = "1s"

[graders.text]
command = "grade.py"

[graders.long]
command = ["x"]
timeout = "6m"

[graders.part]
command = ["x"]
timeout = "-1s"

[graders.odd]
command = ["x"]
timeout = "soon"
shade = "red"
`), noSettings)
	want := []Grader{
		{Name: "plain", Command: []string{"./grade"}, Timeout: "10s", After: 10 * time.Second},
		{Name: "tests", Command: []string{"python3", "grade.py", "--all"}, Timeout: "1m", After: time.Minute},
	}
	if !reflect.DeepEqual(f.Graders, want) {
		t.Errorf("%+v", f.Graders)
	}
	containsAll(t, warnings, `c.toml:9: grader "A b": a name has lower-case letters`,
		`c.toml:12: grader "none": needs a command such as ["python3", "grade.py"]`,
		`grader "text": command has the wrong type`,
		`grader "long": timeout must be a duration up to 5m, such as "10s"`,
		`grader "part": timeout must`, `grader "odd": timeout must`, `unknown key "shade"`)
	if _, warnings := Parse("c.toml", []byte("graders = 3"), noSettings); len(warnings) != 1 {
		t.Error(warnings)
	}
}

func TestAgents(t *testing.T) {
	f, warnings := Parse("c.toml", []byte(`
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
shade = "red"
working_dir = "~/work"

[agents.emacs]
command = "emacs"
`), noSettings)
	want := []Agent{{Name: "claude", Command: "/opt/claude", Model: "opus",
		Env: []string{"GH_TOKEN", "MY_*"}},
		{Name: "gemini", WorkingDir: "~/work", AllowFull: true}, {Name: "opencode", AllowFull: true}}
	if !reflect.DeepEqual(f.Agents, want) {
		t.Errorf("%+v", f.Agents)
	}
	containsAll(t, warnings, "c.toml:11: agent codex: env must list names of variables",
		`c.toml:15: unknown key "shade"`,
		`unknown agent "emacs"`)
	if strings.Contains(strings.Join(warnings, "\n"), "secret") {
		t.Error("a value is shown")
	}
	for _, bad := range []string{
		"agents = 3", "[agents]\nclaude = 3", "[agents.claude]\nenv = 3",
		"[agents.claude]\nallow_full = 'yes'",
		"[agents.claude]\nworking_dir = 'x'", "[agents.claude]\ncommand = '-x'", "[agents]\nallow_full = 3",
	} {
		if _, warnings := Parse("c.toml", []byte(bad), noSettings); len(warnings) != 1 {
			t.Errorf("%q: %v", bad, warnings)
		}
	}
}

// A path of an adapter may be a text or a list; a mistake names the line.
func TestAdapters(t *testing.T) {
	f, warnings := Parse("c.toml", []byte(`
[[adapters]]
activity = "Ask*"
model = "input.0.model"
usage = ["result.usage", "result.stats"]

[[adapters]]
activity = "ask"
model = "output.model"
`), func(string) bool { return false })
	if len(f.Adapters) != 1 || f.Adapters[0].Model[0] != "input.0.model" || len(f.Adapters[0].Usage) != 2 {
		t.Errorf("%+v", f.Adapters)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], `:7: adapter: path "output.model"`) {
		t.Errorf("%q", warnings)
	}
}
