package conffile

import (
	"reflect"
	"strings"
	"testing"
)

func TestProviders(t *testing.T) {
	f, wrong := Parse("c.toml", []byte(`
[providers.house]
base_url = "http://127.0.0.1:8000/v1"
model = "m-1"
api_key_env = "HOUSE_KEY"
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
colour = "red"
`), func(string) bool { return false })
	want := []Provider{{Name: "anthropic", Model: "m-2"},
		{Name: "house", BaseURL: "http://127.0.0.1:8000/v1", Model: "m-1", APIKeyEnv: "HOUSE_KEY", MaxTokens: 4000}}
	if !reflect.DeepEqual(f.Providers, want) {
		t.Errorf("%+v", f.Providers)
	}
	all := strings.Join(wrong, "\n")
	for _, say := range []string{`c.toml:11: provider "leaky": a key does not belong`, "neither a user nor a query", "needs a base_url", "is not builtin",
		"is an address such as", "cannot be another", "is not absolute", `no "colour"`} {
		if !strings.Contains(all, say) {
			t.Errorf("%q is not said in\n%s", say, all)
		}
	}
	if strings.Contains(all, "secret-value") || strings.Contains(all, "very-secret") {
		t.Errorf("a secret is shown:\n%s", all)
	}
}
