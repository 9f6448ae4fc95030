package engine

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"acescope/engine/model"
	"acescope/engine/model/anthropic"
	"acescope/engine/model/builtin"
	"acescope/engine/model/llm"
	"acescope/engine/model/openai"
	"acescope/engine/price"
)

// ProviderConfig is what somebody says of a server of models. What is not said is "".
type ProviderConfig struct {
	Name    string
	Kind    string // openai or anthropic
	BaseURL string
	Model   string
	KeyEnv  string // the variable that holds the key
	KeyFile string // the file that holds it
	Dir     string // where the tool read_file may read
	Tokens  int64  // of an answer
}

// knownProviders are the servers of models that are there without being named in a configuration.
func knownProviders(getenv func(string) string) []ProviderConfig {
	return []ProviderConfig{
		{Name: "anthropic", Kind: "anthropic", BaseURL: cmp.Or(getenv("ANTHROPIC_BASE_URL"), anthropic.BaseURL), Model: anthropic.DefaultModel, KeyEnv: "ANTHROPIC_API_KEY"},
		{Name: "openai", Kind: "openai", BaseURL: cmp.Or(getenv("OPENAI_BASE_URL"), openai.BaseURL), KeyEnv: "OPENAI_API_KEY"},
		{Name: "ollama", Kind: "openai", BaseURL: ollamaURL(getenv("OLLAMA_HOST"))},
	}
}

// ollamaURL is where Ollama listens, as its own variable says it.
func ollamaURL(host string) string {
	if host == "" {
		return openai.OllamaBaseURL
	}
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	u, err := url.Parse(host)
	if err != nil || u.Hostname() == "" {
		return openai.OllamaBaseURL
	}
	if u.Hostname() == "0.0.0.0" { // where it listens, not where it is asked
		u.Host = strings.Replace(u.Host, "0.0.0.0", "127.0.0.1", 1)
	}
	if u.Port() == "" {
		u.Host += ":11434"
	}
	return strings.TrimSuffix(u.String(), "/") + "/v1/"
}

// Providers lists who can serve steps on this machine: the built-in learner, and the
// servers of models that are known anyway or configured. One that lacks something is
// listed too: it says what.
func Providers(own []ProviderConfig, prices *price.Prices, getenv func(string) string) []model.Provider {
	list := []model.Provider{builtin.New()}
	for _, c := range Servers(own, getenv) {
		list = append(list, provider(c, prices, getenv))
	}
	return list
}

// Servers lists the servers of models that are known anyway, as the configuration changes
// them, and then those that it adds.
func Servers(own []ProviderConfig, getenv func(string) string) []ProviderConfig {
	all := knownProviders(getenv)
	for _, o := range own {
		i := slices.IndexFunc(all, func(c ProviderConfig) bool { return c.Name == o.Name })
		if i < 0 {
			o.Kind = cmp.Or(o.Kind, "openai")
			all = append(all, o)
			continue
		}
		c := &all[i]
		if o.BaseURL != "" && o.BaseURL != c.BaseURL && o.KeyEnv == "" && o.KeyFile == "" {
			c.KeyEnv = "" // the key of one server does not go to another unless somebody says so
		}
		if o.KeyFile != "" {
			c.KeyEnv = ""
		}
		c.BaseURL, c.Model = cmp.Or(o.BaseURL, c.BaseURL), cmp.Or(o.Model, c.Model)
		c.KeyEnv, c.KeyFile = cmp.Or(o.KeyEnv, c.KeyEnv), o.KeyFile
		c.Dir, c.Tokens = o.Dir, o.Tokens
	}
	return all
}

func provider(c ProviderConfig, prices *price.Prices, getenv func(string) string) model.Provider {
	key, how, missing := c.key(getenv)
	at := llm.AddressOf(c.BaseURL)
	o := llm.Options{Name: c.Name, Model: c.Model, MaxTokens: c.Tokens, Prices: prices, Dir: atHome(c.Dir, getenv), Missing: missing}
	var completer llm.Completer
	what := "OpenAI-compatible server"
	if c.Kind == "anthropic" {
		what = "Anthropic's API"
		completer = anthropic.New(anthropic.Options{Name: c.Name, BaseURL: c.BaseURL, Key: key, HowKey: how})
	} else {
		completer = openai.New(openai.Options{Name: c.Name, BaseURL: c.BaseURL, Key: key, HowKey: how})
	}
	with := "without a key"
	if key != "" {
		with = "key from " + how
	}
	which := "no default model"
	if c.Model != "" {
		which = "model " + c.Model + " unless another is named"
	}
	o.About = fmt.Sprintf("%s at %s, %s, %s", what, at, which, with)
	return llm.New(completer, o)
}

// maxKey bounds a file that holds a key, in bytes.
const maxKey = 16 << 10

// key is the key and in words where it comes from, or why there is none.
func (c ProviderConfig) key(getenv func(string) string) (key, how string, missing error) {
	switch {
	case c.KeyFile != "":
		how = "the file " + c.KeyFile
		path := atHome(c.KeyFile, getenv)
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() > maxKey {
			return "", how, model.Errorf(model.NoKey, "%s: there is no key: %s cannot be read", c.Name, c.KeyFile)
		}
		data, err := os.ReadFile(path)
		if key = strings.TrimSpace(string(data)); err != nil || key == "" {
			return "", how, model.Errorf(model.NoKey, "%s: there is no key in %s", c.Name, c.KeyFile)
		}
		return key, how, nil
	case c.KeyEnv != "":
		how = "$" + c.KeyEnv
		key = strings.TrimSpace(getenv(c.KeyEnv))
	}
	needed := c.Kind == "anthropic" || c.BaseURL == openai.BaseURL || c.KeyEnv != "" && c.Name != "openai"
	if key == "" && needed {
		return "", how, model.Errorf(model.NoKey, "%s: there is no key: set %s, or name it in [providers.%s] of the configuration", c.Name, cmp.Or(how, "a variable"), c.Name)
	}
	return key, cmp.Or(how, "api_key_env of [providers."+c.Name+"]"), nil
}

func atHome(path string, getenv func(string) string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(getenv("HOME"), rest)
	}
	return path
}
