package conffile

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
)

// MaxProviders bounds the providers that a configuration file may name.
const MaxProviders = 50

// Provider is a server of models: one more of OpenAI's kind or Anthropic's, or settings of
// one that is there anyway. What is not said is "". It never holds a key.
type Provider struct {
	Name       string
	Kind       string // openai or anthropic
	BaseURL    string
	Model      string
	APIKeyEnv  string // the variable that holds the key
	APIKeyFile string // the file that holds it
	WorkingDir string
	MaxTokens  int64
}

var providerName = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,39}$`)

// readProviders takes the tables [providers.NAME].
func (p *parser) readProviders(v any) {
	table, ok := v.(map[string]any)
	if !ok {
		p.mistake("providers", "providers are tables: [providers.NAME] and below it base_url and model")
		return
	}
	for _, name := range sorted(table) {
		at := "providers." + name
		one, why := p.provider(at, name, table[name])
		if why == "" && len(p.Providers) == MaxProviders {
			why = fmt.Sprintf("more than %d providers", MaxProviders)
		}
		if why != "" {
			p.mistake(at, "provider %.40q: %s", name, why)
			continue
		}
		p.Providers = append(p.Providers, one)
	}
}

// provider reads one provider; why says what makes it unusable.
func (p *parser) provider(at, name string, e any) (one Provider, why string) {
	table, ok := e.(map[string]any)
	if !ok {
		return one, "it is a table: [providers.NAME]"
	}
	if !providerName.MatchString(name) || name == "builtin" {
		return one, "a name has small letters, digits, dots, dashes and underscores, and is not builtin"
	}
	one.Name = name
	texts := map[string]*string{"kind": &one.Kind, "base_url": &one.BaseURL, "model": &one.Model, "api_key_env": &one.APIKeyEnv,
		"api_key_file": &one.APIKeyFile, "working_dir": &one.WorkingDir}
	for _, k := range sorted(table) {
		switch to := texts[k]; {
		case k == "api_key":
			return one, "a key does not belong into this file: name the variable that holds it in api_key_env, or its file in api_key_file"
		case k == "max_tokens":
			if one.MaxTokens, ok = table[k].(int64); !ok || one.MaxTokens < 1 {
				return one, "max_tokens is a number above 0"
			}
		case to == nil:
			p.mistake(at+"."+k, "a provider has no %q: it has kind, base_url, model, api_key_env, api_key_file, max_tokens and working_dir", k)
		default:
			if *to, ok = table[k].(string); !ok {
				return one, k + " is a text"
			}
		}
	}
	return one, one.check()
}

func (one Provider) check() string {
	if one.Kind != "" && one.Kind != "openai" && one.Kind != "anthropic" {
		return fmt.Sprintf("kind %.40q is unknown: openai or anthropic", one.Kind)
	}
	own := one.Name == "openai" || one.Name == "anthropic" || one.Name == "ollama"
	if own && one.Kind != "" && (one.Kind == "anthropic") != (one.Name == "anthropic") {
		return "its kind is known and cannot be another"
	}
	if !own && one.BaseURL == "" {
		return "it needs a base_url"
	}
	if one.BaseURL != "" {
		u, err := url.Parse(one.BaseURL)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			return `base_url is an address such as "http://127.0.0.1:8000/v1"`
		case u.User != nil || u.RawQuery != "":
			return "base_url holds neither a user nor a query: they could be secrets"
		}
	}
	for _, path := range []string{one.APIKeyFile, one.WorkingDir} {
		if path != "" && !strings.HasPrefix(path, "~/") && !filepath.IsAbs(path) {
			return fmt.Sprintf("%q is not absolute", path)
		}
	}
	return ""
}
