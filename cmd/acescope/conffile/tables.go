package conffile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/learning/grade"
	"acescope/engine/learning/prompts"
	"acescope/engine/trace/adapter"
	"acescope/sources/runs"
)

// readFilters reads the tables [[filters]].
func (p *parser) readFilters(value any) {
	seen, chosen := map[string]bool{}, ""
	p.readList("filters", "name and query", value, func(at string, e any) error {
		var f runs.SavedFilter
		if err := p.decode(at, e, &f); err != nil {
			return err
		}
		switch {
		case strings.TrimSpace(f.Name) == "" || strings.TrimSpace(f.Query) == "":
			return errors.New("needs a name and a query")
		case seen[f.Name]:
			return fmt.Errorf("duplicate name %q", f.Name)
		case f.Default && chosen != "":
			p.mistake(at, "filter %q: %q is already the default", f.Name, chosen)
			f.Default = false
		case f.Default:
			chosen = f.Name
		}
		seen[f.Name] = true
		p.Filters = append(p.Filters, f)
		return nil
	})
}

// Price is the price of a model in US dollars per million tokens. A missing field is 0.
type Price struct {
	Model        string  `toml:"model"`
	Input        float64 `toml:"input"`
	Output       float64 `toml:"output"`
	CacheRead    float64 `toml:"cache_read"`
	CacheWrite5m float64 `toml:"cache_write_5m"`
	CacheWrite1h float64 `toml:"cache_write_1h"`
}

// readPrices reads the tables [[prices]].
func (p *parser) readPrices(value any) {
	p.readList("prices", "model, input and output", value, func(at string, e any) error {
		var price Price
		if err := p.decode(at, e, &price); err != nil {
			return err
		}
		if strings.TrimSpace(price.Model) == "" {
			return errors.New("needs a model")
		}
		for _, usd := range []float64{price.Input, price.Output, price.CacheRead, price.CacheWrite5m,
			price.CacheWrite1h} {
			if !(usd >= 0) || math.IsInf(usd, 0) {
				return errors.New("every price must be 0 or more")
			}
		}
		p.Prices = append(p.Prices, price)
		return nil
	})
}

// readAdapters reads the tables [[adapters]], which say where the activities of the user's workers have what
// agents did.
func (p *parser) readAdapters(value any) {
	p.readList("adapters", "activity, model, messages and usage", value, func(at string, e any) error {
		var a adapter.Adapter
		if err := p.decode(at, e, &a); err != nil {
			return err
		}
		if err := a.Check(); err != nil {
			return err
		}
		p.Adapters = append(p.Adapters, a)
		return nil
	})
}

// readList calls read for each table of an array of tables and reports its errors.
func (p *parser) readList(name, keys string, value any, read func(at string, e any) error) {
	list, ok := value.([]any)
	if !ok {
		p.mistake(name, "%s must be an array of tables: [[%s]], then %s", name, name, keys)
	}
	for i, e := range list {
		at := name + "[" + strconv.Itoa(i) + "]"
		if err := read(at, e); err != nil {
			p.mistake(at, "%s: %v", strings.TrimSuffix(name, "s"), err)
		}
	}
}

// Provider is a server of models: a further OpenAI-compatible or Anthropic-compatible server, or settings of
// a built-in provider. A missing field is empty. It never holds an API key.
type Provider struct {
	Name    string `toml:"-"`
	Kind    string `toml:"kind"` // openai or anthropic
	BaseURL string `toml:"base_url"`
	Model   string `toml:"model"`
	KeyEnv  string `toml:"api_key_env"`  // environment variable that holds the key
	KeyFile string `toml:"api_key_file"` // file that holds the key
	Dir     string `toml:"working_dir"`
	Tokens  int64  `toml:"max_tokens"`
	Rate    int    `toml:"max_requests_per_minute"`
	Vectors string `toml:"embedding_model"`
}

// maxRate bounds max_requests_per_minute.
const maxRate = 1_000_000

var providerName = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,39}$`)

// readTables calls read for each table of a table of tables and reports its errors.
func (p *parser) readTables(group, keys string, value any, read func(name string, table any) error) {
	tables, ok := value.(map[string]any)
	if !ok {
		p.mistake(group, "%s must be tables: [%s.NAME], then %s", group, group, keys)
	}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		if err := read(name, tables[name]); err != nil {
			p.mistake(group+"."+name, "%s %.40q: %v", strings.TrimSuffix(group, "s"), name, err)
		}
	}
}

// readProviders reads the tables [providers.NAME].
func (p *parser) readProviders(value any) {
	p.readTables("providers", "base_url and model", value, func(name string, table any) error {
		provider := Provider{Name: name}
		if err := p.readProvider(&provider, table); err != nil {
			return err
		}
		p.Providers = append(p.Providers, provider)
		return nil
	})
}

func (p *parser) readProvider(provider *Provider, value any) error {
	if !providerName.MatchString(provider.Name) || provider.Name == ace.Builtin {
		return errors.New("a name has lower-case letters, digits, dots, dashes and underscores, and must not be builtin")
	}
	table, _ := value.(map[string]any)
	if table["api_key"] != nil {
		return errors.New("an API key must not be in this file: " +
			"name the variable that holds it in api_key_env, or the file in api_key_file")
	}
	if err := p.decode("providers."+provider.Name, value, provider); err != nil {
		return err
	}
	if table["max_tokens"] != nil && provider.Tokens < 1 {
		return errors.New("max_tokens must be above 0")
	}
	if provider.Vectors != "" && (provider.Name == "anthropic" || provider.Kind == "anthropic") {
		return errors.New("embedding_model: Anthropic's API has no embeddings")
	}
	if table["max_requests_per_minute"] != nil && (provider.Rate < 1 || provider.Rate > maxRate) {
		return fmt.Errorf("max_requests_per_minute must be from 1 to %d", maxRate)
	}
	return provider.check()
}

func (p Provider) check() error {
	builtin := p.Name == "openai" || p.Name == "anthropic" || p.Name == "ollama"
	switch {
	case p.Kind != "" && p.Kind != "openai" && p.Kind != "anthropic":
		return fmt.Errorf("unknown kind %.40q; use openai or anthropic", p.Kind)
	case builtin && p.Kind != "" && (p.Kind == "anthropic") != (p.Name == "anthropic"):
		return errors.New("the kind of this provider cannot be changed")
	case !builtin && p.BaseURL == "":
		return errors.New("needs a base_url")
	}
	if p.BaseURL != "" {
		u, err := url.Parse(p.BaseURL)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			return errors.New(`base_url must be a URL such as "http://127.0.0.1:8000/v1"`)
		case u.User != nil || u.RawQuery != "":
			return errors.New("base_url must not contain a user or a query, which could be secrets")
		}
	}
	for _, path := range []string{p.KeyFile, p.Dir} {
		if path != "" && !Absolute(path) {
			return fmt.Errorf("%q must be an absolute path", path)
		}
	}
	return nil
}

// Grader is a program that grades answers.
type Grader struct {
	Name    string        `toml:"-"`
	Command []string      `toml:"command"` // the program and its arguments
	Timeout string        `toml:"timeout"`
	After   time.Duration `toml:"-"` // the timeout
}

// readGraders reads the tables [graders.NAME].
func (p *parser) readGraders(value any) {
	p.readTables("graders", "command and timeout", value, func(name string, table any) error {
		g := Grader{Name: name, Timeout: "10s"}
		if err := p.decode("graders."+name, table, &g); err != nil {
			return err
		}
		var err error
		g.After, err = time.ParseDuration(g.Timeout)
		switch {
		case grade.Check("program:"+name) != nil:
			return errors.New("a name has lower-case letters, digits, dots, dashes and underscores")
		case len(g.Command) == 0 || strings.TrimSpace(g.Command[0]) == "":
			return errors.New(`needs a command such as ["python3", "grade.py"]`)
		case err != nil || g.After <= 0 || g.After > 5*time.Minute:
			return errors.New(`timeout must be a duration up to 5m, such as "10s"`)
		}
		p.Graders = append(p.Graders, g)
		return nil
	})
}

// readPrompts reads the table [prompts]: generator = "brief" or "brief@2".
func (p *parser) readPrompts(value any) {
	table, ok := value.(map[string]any)
	if !ok {
		p.mistake("prompts", `prompts must be a table: [prompts], then generator = "NAME"`)
		return
	}
	for _, phase := range slices.Sorted(maps.Keys(table)) {
		name, _ := table[phase].(string)
		base, _, _ := strings.Cut(name, "@")
		switch {
		case !slices.Contains(ace.PromptedPhases(), ace.Phase(phase)):
			p.mistake("prompts."+phase, "prompts: unknown phase %.40q; use generator, skills, reflector or curator", phase)
		case base != ace.DefaultPrompt && prompts.CheckName(base) != nil:
			p.mistake("prompts."+phase, `prompts: %s must be the name of a prompt, such as "brief" or "brief@2"`, phase)
		default:
			if p.Prompts == nil {
				p.Prompts = map[string]string{}
			}
			p.Prompts[phase] = name
		}
	}
}

// Absolute reports whether path is absolute or begins with ~/.
func Absolute(path string) bool { return strings.HasPrefix(path, "~/") || filepath.IsAbs(path) }

// Agent says how acescope calls the CLI of an agent. A missing field is empty.
type Agent struct {
	Name       string   `toml:"-"` // claude, codex, gemini or opencode
	Command    string   `toml:"command"`
	Model      string   `toml:"model"`
	WorkingDir string   `toml:"working_dir"`
	Env        []string `toml:"env"` // names of further variables to pass on
	AllowFull  bool     `toml:"allow_full"`
}

// envName matches the name of a variable, or a prefix of names that ends with a star.
var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\*?$`)

// readAgents reads the tables [agents.NAME] and agents.allow_full, which holds for all of them.
func (p *parser) readAgents(value any) {
	tables, ok := value.(map[string]any)
	if !ok {
		p.mistake("agents", "agents must be tables: [agents.claude], then command, model, working_dir, env and allow_full")
		return
	}
	allowFull, ok := tables["allow_full"].(bool)
	if tables["allow_full"] != nil && !ok {
		p.mistake("agents.allow_full", "agents.allow_full must be true or false")
	}
	for _, name := range ace.Agents() {
		agent, table := Agent{Name: name, AllowFull: allowFull}, tables[name]
		if table == nil && !allowFull {
			continue
		}
		if table != nil {
			if err := cmp.Or(p.decode("agents."+name, table, &agent), agent.check()); err != nil {
				p.mistake("agents."+name, "agent %s: %v", name, err)
				continue
			}
		}
		p.Agents = append(p.Agents, agent)
	}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		if name != "allow_full" && !ace.IsAgent(name) {
			p.mistake("agents."+name, "unknown agent %.40q; known agents: %s", name,
				strings.Join(ace.Agents(), ", "))
		}
	}
}

func (a Agent) check() error {
	if slices.ContainsFunc(a.Env, func(name string) bool { return !envName.MatchString(name) }) {
		return errors.New("env must list names of variables, such as GH_TOKEN or MY_*, without values")
	}
	if a.WorkingDir != "" && !Absolute(a.WorkingDir) {
		return errors.New("working_dir must be an absolute path")
	}
	if strings.HasPrefix(a.Command, "-") || strings.ContainsAny(a.Command, "\x00\n") {
		return errors.New("command must be the name or path of a program, without arguments")
	}
	return nil
}
