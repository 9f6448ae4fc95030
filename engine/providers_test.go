package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"acescope/engine/agents/price"
	"acescope/engine/learning/model"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestProviders(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("sk-from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		own    []ProviderConfig
		getenv func(string) string
		of     string
		say    string // of About, or of what is missing
		ready  bool
	}{
		"no key": {nil, env(), "anthropic", "set $ANTHROPIC_API_KEY", false},
		"a key": {nil, env("ANTHROPIC_API_KEY", "sk-x"), "anthropic",
			"https://api.anthropic.com, model claude-", true},
		"a base": {nil, env("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1"), "openai",
			"http://127.0.0.1:8000/v1, no default model, without a key", true},
		"openai's own": {nil, env(), "openai", "set $OPENAI_API_KEY", false},
		"ollama":       {nil, env("OLLAMA_HOST", "0.0.0.0"), "ollama", "http://127.0.0.1:11434/v1,", true},
		"ollama there": {nil, env("OLLAMA_HOST", "http://u:very-secret@box:1"), "ollama",
			"http://box:1/v1,", true},
		"own": {[]ProviderConfig{{Name: "house", BaseURL: "http://h/v1", KeyFile: file,
			Model: "m"}}, env(), "house", "model m unless another is named, key from the file", true},
		"own without": {[]ProviderConfig{{Name: "house", BaseURL: "http://h/v1", KeyEnv: "HOUSE"}}, env(),
			"house", "set $HOUSE", false},
		"no file": {[]ProviderConfig{{Name: "house", BaseURL: "http://h/v1", KeyFile: file + "x"}},
			env(), "house", "cannot be read", false},
		"key stays": {[]ProviderConfig{{Name: "openai", BaseURL: "http://elsewhere/v1"}},
			env("OPENAI_API_KEY", "sk-x"), "openai", "elsewhere/v1, no default model, without a key", true},
		"changed": {[]ProviderConfig{{Name: "ollama", Model: "small"}}, env(), "ollama",
			"model small", true},
		"file before env": {[]ProviderConfig{{Name: "openai", KeyFile: file}}, env("OPENAI_API_KEY", "sk-x"),
			"openai", "key from the file", true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, p := range Providers(c.own, price.Shipped(), c.getenv) {
				if p.Name() != c.of {
					continue
				}
				said, why := p.About(), p.(model.Checker).Ready()
				if why != nil {
					said = why.Error()
				}
				if (why == nil) != c.ready || !strings.Contains(said, c.say) {
					t.Errorf("%q, want %q", said, c.say)
				}
				if strings.Contains(said, "very-secret") || strings.Contains(said, "sk-") {
					t.Errorf("a secret is in %q", said)
				}
				return
			}
			t.Errorf("there is no %s", c.of)
		})
	}
}
