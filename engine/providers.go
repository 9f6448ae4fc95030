package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/agents/price"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/anthropic"
	"acescope/engine/learning/model/builtin"
	"acescope/engine/learning/model/command"
	"acescope/engine/learning/model/llm"
	"acescope/engine/learning/model/openai"
	"acescope/engine/tasks/run"
)

// ProviderConfig configures a model server. Empty fields mean the default.
type ProviderConfig struct {
	Name    string
	Kind    string // openai or anthropic
	BaseURL string
	Model   string
	KeyEnv  string // environment variable with the key
	KeyFile string // file with the key
	Dir     string // root of the tool read_file
	Tokens  int64  // maximum of an answer
	Rate    int    // maximum of requests per minute; 0 for no maximum
	Vectors string // model of embeddings
}

// knownProviders returns the model servers that need no configuration.
func knownProviders(getenv func(string) string) []ProviderConfig {
	return []ProviderConfig{
		{Name: "anthropic", Kind: "anthropic", BaseURL: cmp.Or(getenv("ANTHROPIC_BASE_URL"),
			anthropic.BaseURL),
			Model: anthropic.DefaultModel, KeyEnv: "ANTHROPIC_API_KEY"},
		{Name: "openai", Kind: "openai", BaseURL: cmp.Or(getenv("OPENAI_BASE_URL"), openai.BaseURL),
			KeyEnv: "OPENAI_API_KEY"},
		{Name: "ollama", Kind: "openai", BaseURL: ollamaURL(getenv("OLLAMA_HOST"))},
	}
}

// ollamaURL returns the URL of Ollama's API for a value of OLLAMA_HOST.
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
	if u.Hostname() == "0.0.0.0" { // the server's listen address, not one to connect to
		u.Host = strings.Replace(u.Host, "0.0.0.0", "127.0.0.1", 1)
	}
	if u.Port() == "" {
		u.Host += ":11434"
	}
	return strings.TrimSuffix(u.String(), "/") + "/v1/"
}

// Providers returns the step providers of this machine: the built-in learner and the known and
// configured model servers. A provider with an incomplete configuration reports what is missing.
func Providers(own []ProviderConfig, prices *price.Prices, getenv func(string) string) []model.Provider {
	list := []model.Provider{builtin.New()}
	for _, c := range Servers(own, getenv) {
		list = append(list, provider(c, prices, getenv))
	}
	return list
}

// Servers returns the known model servers with the changes of the configuration, followed by the
// servers that the configuration adds.
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
			c.KeyEnv = "" // do not send the key of one server to another
		}
		if o.KeyFile != "" {
			c.KeyEnv = ""
		}
		c.BaseURL = cmp.Or(o.BaseURL, c.BaseURL)
		c.Model = cmp.Or(o.Model, c.Model)
		c.KeyEnv = cmp.Or(o.KeyEnv, c.KeyEnv)
		c.KeyFile = o.KeyFile
		c.Dir = o.Dir
		c.Tokens = o.Tokens
		c.Rate = o.Rate
		c.Vectors = o.Vectors
	}
	return all
}

func provider(c ProviderConfig, prices *price.Prices, getenv func(string) string) model.Provider {
	key, how, missing := c.key(getenv)
	at := llm.AddressOf(c.BaseURL)
	o := llm.Options{Name: c.Name, Model: c.Model, MaxTokens: c.Tokens, Prices: prices,
		Embeddings: c.Vectors, Dir: expandHome(c.Dir, getenv), Missing: missing, PerMinute: c.Rate,
		Seeds: c.Kind != "anthropic"}
	server := llm.Server{Name: c.Name, BaseURL: c.BaseURL, Key: key, KeyHint: how}
	what, completer := "OpenAI-compatible server", openai.New(server)
	if c.Kind == "anthropic" {
		what, completer = "Anthropic's API", anthropic.New(server)
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

// maxKey bounds a key file, in bytes.
const maxKey = 16 << 10

// key returns the key and its source, or the reason why it is missing.
func (c ProviderConfig) key(getenv func(string) string) (key, how string, missing error) {
	switch {
	case c.KeyFile != "":
		how = "the file " + c.KeyFile
		path := expandHome(c.KeyFile, getenv)
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() > maxKey {
			return "", how, model.Errorf(model.NoKey, "%s: there is no key: %s cannot be read", c.Name,
				c.KeyFile)
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
		return "", how, model.Errorf(model.NoKey,
			"%s: there is no key: set %s, or name it in [providers.%s] of the configuration",
			c.Name, cmp.Or(how, "a variable"), c.Name)
	}
	return key, cmp.Or(how, "api_key_env of [providers."+c.Name+"]"), nil
}

func expandHome(path string, getenv func(string) string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(getenv("HOME"), rest)
	}
	return path
}

// ErrNotAStep means that a blueprint exists but cannot execute steps.
var ErrNotAStep = errors.New("it cannot serve steps")

// CheckStep checks that a blueprint can execute a step: it is a program whose schema accepts the
// input of the step.
func CheckStep(lib Blueprints, blueprint string, step ace.Phase) error {
	_, check, err := stepBlueprint(lib, blueprint)
	if err != nil || check == nil {
		return err
	}
	if _, err := check(command.Sample(step)); err != nil {
		return fmt.Errorf("blueprint %s: %w of the %s: %w", blueprint, ErrNotAStep, step, err)
	}
	return nil
}

// CheckStepPrompt returns an error in one line if a blueprint does not follow a prompt of the phases that it
// executes.
func CheckStepPrompt(lib Blueprints, blueprint string) error {
	b, _, err := stepBlueprint(lib, blueprint)
	if err != nil {
		return err
	}
	return model.CheckPrompt(command.New(nil, nil, b))
}

func stepBlueprint(lib Blueprints, name string) (run.Blueprint, func(json.RawMessage) (json.RawMessage,
	error), error) {
	b, check, err := lib.Load(name)
	if err == nil && b.Type != run.Deterministic {
		err = fmt.Errorf("blueprint %s: %w: it is an agent, but a step needs a program (type deterministic)",
			name, ErrNotAStep)
	}
	return b, check, err
}

// StepProvider returns the provider of a blueprint's steps for display. It cannot execute steps.
func StepProvider(b run.BlueprintInfo) model.Provider {
	return command.New(nil, nil, run.Blueprint{Name: b.Name, Description: b.Description, Schema: b.Schema})
}

// stepProviders returns a function that returns the provider of a blueprint's steps, according to
// the current library.
func (e *Engine) stepProviders(lib Blueprints) func(blueprint string) (model.Provider, error) {
	if lib == nil {
		return nil
	}
	runs := e.Runs(lib)
	return func(name string) (model.Provider, error) {
		b, _, err := stepBlueprint(lib, name)
		switch {
		case errors.Is(err, run.ErrNoBlueprint):
			return nil, command.NoBlueprint(name, err)
		case err != nil:
			return nil, model.Errorf(model.BadRequest, "%s: %v", ace.BlueprintProvider(name), err)
		}
		return command.New(runs, e.Artifacts, b), nil
	}
}
