// Package adapter reads the trace of an agent from the history of a workflow of any framework. An adapter
// says which activities are calls of models and tools, by type and shape, and where their payloads have what
// a trace holds. The adapters of frameworks are in adapters.toml; users add theirs in the configuration.
//
// The package does no I/O and starts no goroutine.
package adapter

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pelletier/go-toml/v2"
	"github.com/tidwall/gjson"
	commonpb "go.temporal.io/api/common/v1"

	"acescope/engine/agents/price"
	"acescope/engine/temporal/history"
	"acescope/engine/trace"
)

// Adapter maps activities to calls. A path is "summary", "activity.N" (what the Nth * of the pattern stands
// for, from 1), "input.N" (the Nth payload, from 0) or "result", the latter two followed by a path of gjson
// (https://github.com/tidwall/gjson/blob/master/SYNTAX.md).
type Adapter struct {
	Framework string `toml:"framework"`
	// Operation is "chat" (or ""), "execute_tool", or "node" for an activity whose messages hold any number
	// of answers and results of tools.
	Operation string `toml:"operation"`
	Activity  Paths  `toml:"activity"` // patterns of activity types, with * for any characters
	Needs     Paths  `toml:"needs"`    // all of them must have a value

	Agent    Paths `toml:"agent"`
	Provider Paths `toml:"provider"`
	Model    Paths `toml:"model"`
	// Key is the name under which the worker configured the model, if the history does not name the model.
	Key      Paths `toml:"key"`
	System   Paths `toml:"system"`
	Messages Paths `toml:"messages"`
	Tools    Paths `toml:"tools"`
	Answer   Paths `toml:"answer"`
	Answered Paths `toml:"answered"` // the model that answered
	Finish   Paths `toml:"finish"`
	Error    Paths `toml:"error"` // of an activity that completes though its call failed
	Usage    Paths `toml:"usage"` // an object in the form of any provider

	// InputTokens and the others are figures outside such an object. Input is with cached tokens unless
	// Exclusive is set, and output is with reasoning.
	InputTokens     Paths `toml:"input_tokens"`
	CacheReadTokens Paths `toml:"cache_read_tokens"`
	OutputTokens    Paths `toml:"output_tokens"`
	ReasoningTokens Paths `toml:"reasoning_tokens"`
	Exclusive       bool  `toml:"exclusive"`
	// PreviousCost is the cost in US dollars of the agent's answer before, as a later request says it.
	PreviousCost Paths `toml:"previous_cost"`

	// Of a tool.
	Name      Paths  `toml:"name"`
	ID        Paths  `toml:"id"`
	Arguments Paths  `toml:"arguments"`
	Result    Paths  `toml:"result"`
	Server    Paths  `toml:"server"`     // of MCP
	ToolError string `toml:"tool_error"` // beginning of the result of a failed tool

	pattern *regexp.Regexp // of the activity; nil if it is a plain name
}

// Paths are paths of which the first with a value counts. In TOML, one path may be a string.
type Paths []string

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Paths) UnmarshalText(text []byte) error {
	*p = Paths{string(text)}
	return nil
}

//go:embed adapters.toml
var builtin []byte

// set holds the adapters, one for each pattern, in the order in which they are tried, and the prices.
type set struct {
	adapters []*Adapter
	prices   *price.Prices
}

// settings are what all events are read with; the set is compiled when the first of them is read.
type settings struct {
	users  []Adapter
	prices func() *price.Prices
	once   sync.Once
	set    *set
}

var current atomic.Pointer[settings]

func init() { Use(nil, price.Shipped) }

// Use sets what all later events are read with: the adapters of the user, which [Adapter.Check] accepts and
// which come before those of frameworks, and the prices of models.
func Use(users []Adapter, prices func() *price.Prices) {
	current.Store(&settings{users: users, prices: prices})
}

// Frameworks returns the names of the frameworks that the adapters know, each once.
func Frameworks() (names []string) {
	for _, a := range load().adapters {
		if a.Framework != "" && !slices.Contains(names, a.Framework) {
			names = append(names, a.Framework)
		}
	}
	return names
}

func load() *set {
	c := current.Load()
	c.once.Do(func() {
		var err error
		if c.set, err = c.compile(); err != nil {
			panic(fmt.Sprintf("adapters: %v", err)) // checked by a test, and by Check
		}
	})
	return c.set
}

func (c *settings) compile() (*set, error) {
	frameworks, err := parse(builtin)
	if err != nil {
		return nil, err
	}
	s := &set{prices: c.prices()}
	for _, a := range slices.Concat(c.users, frameworks) {
		if err := a.Check(); err != nil {
			return nil, fmt.Errorf("%s: %w", a.Framework, err)
		}
		for _, pattern := range a.Activity {
			one := a
			one.Activity = Paths{pattern}
			if strings.Contains(pattern, "*") {
				one.pattern = regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`,
					`(.+?)`) + "$")
			}
			s.adapters = append(s.adapters, &one)
		}
	}
	return s, nil
}

func parse(data []byte) ([]Adapter, error) {
	var file struct {
		Adapters []Adapter `toml:"adapters"`
	}
	err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&file)
	return file.Adapters, err
}

// Operations of adapters besides those of a trace.
const node = "node"

// Check returns what is wrong with an adapter, or nil. It completes the operation.
func (a *Adapter) Check() error {
	if len(a.Activity) == 0 {
		return errors.New("names no activity")
	}
	switch a.Operation {
	case "":
		a.Operation = string(trace.Chat)
	case string(trace.Chat), string(trace.Tool), node:
	default:
		return fmt.Errorf("operation %q is not chat, execute_tool or node", a.Operation)
	}
	for _, path := range slices.Concat(a.paths()...) {
		if root, _, _ := strings.Cut(path, "."); !slices.Contains(roots, root) {
			return fmt.Errorf("path %q does not begin with %s", path, strings.Join(roots, ", "))
		}
	}
	return nil
}

var roots = []string{"summary", "activity", "input", "result"}

func (a *Adapter) paths() []Paths {
	return []Paths{a.Needs, a.Agent, a.Provider, a.Model, a.System, a.Messages, a.Tools, a.Key, a.Answer,
		a.Answered, a.Finish, a.Usage, a.InputTokens, a.CacheReadTokens, a.OutputTokens, a.ReasoningTokens,
		a.PreviousCost, a.Error, a.Name, a.ID, a.Arguments, a.Result, a.Server}
}

// source is what a history says of an activity.
type source struct {
	event    int64
	activity string
	summary  string
	inputs   []*commonpb.Payload
	recorded bool // whether the input is
	results  *commonpb.Payloads
	captures []string // of the adapter's pattern

	asked    []*object // the inputs that were read, by number
	answered *object   // the result, once it was read
}

// input returns the input with a number, or nil.
func (s *source) input(n int) *object {
	if n < 0 || n >= len(s.inputs) {
		return nil
	}
	if s.asked == nil {
		s.asked = make([]*object, len(s.inputs))
	}
	if s.asked[n] == nil {
		s.asked[n] = objectOf(gjson.ParseBytes(history.PayloadJSON(s.inputs[n])))
	}
	return s.asked[n]
}

// result returns the result.
func (s *source) result() *object {
	if s.answered == nil {
		s.answered = objectOf(gjson.ParseBytes(history.JSON(s.results)))
	}
	return s.answered
}

// get returns the value at the first path that has one.
func (s *source) get(paths Paths) gjson.Result {
	for _, path := range paths {
		root, rest, _ := strings.Cut(path, ".")
		var v gjson.Result
		switch root {
		case "summary":
			v = gjson.Result{Type: gjson.String, Str: s.summary}
		case "activity":
			if n, err := strconv.Atoi(rest); err == nil && n > 0 && n < len(s.captures) {
				v = gjson.Result{Type: gjson.String, Str: s.captures[n]}
			}
		case "input":
			number, rest, _ := strings.Cut(rest, ".")
			if n, err := strconv.Atoi(number); err == nil {
				v = s.input(n).at(rest)
			}
		case "result":
			v = s.result().at(rest)
		}
		if v.Exists() && v.Type != gjson.Null && (v.Type != gjson.String || v.Str != "") &&
			(!v.IsArray() || v.Raw != "[]") {
			return v
		}
	}
	return gjson.Result{}
}

// text returns the first value as a text that does not keep the payload in memory.
func (s *source) text(paths Paths) string { return strings.Clone(s.get(paths).String()) }

// find returns the adapter of an activity, or nil; then problem says why no adapter fits a known type.
func (s *source) find() (a *Adapter, problem string) {
	for _, a := range load().adapters {
		if s.captures = nil; a.pattern != nil {
			s.captures = a.pattern.FindStringSubmatch(s.activity)
		}
		if s.captures == nil && a.Activity[0] != s.activity {
			continue
		}
		missing := s.missing(a)
		switch {
		case missing == "":
			return a, ""
		case a.pattern != nil: // a pattern may match activities of any kind
		case problem == "":
			problem = missing + " is missing"
		default:
			problem = "no adapter fits the shape of " + s.activity
		}
	}
	return nil, problem
}

// missing returns the first path of a value that an adapter needs and the activity lacks, or "". An activity
// whose input is not recorded lacks nothing.
func (s *source) missing(a *Adapter) string {
	if !s.recorded {
		return ""
	}
	if a.Operation == string(trace.Tool) && !s.get(a.Name).Exists() {
		return "the name of the tool"
	}
	for _, path := range a.Needs {
		if !s.get(Paths{path}).Exists() {
			return path
		}
	}
	return ""
}

// usage reads the usage of a response; own is that of a stream, if it has one.
func (a *Adapter) usage(s *source, own gjson.Result) (*trace.Usage, error) {
	switch {
	case own.Exists():
		return usageOf(own)
	case len(a.InputTokens)+len(a.OutputTokens) == 0:
		return usageOf(s.get(a.Usage))
	}
	f := figures{exclusive: a.Exclusive}
	for _, of := range []struct {
		paths Paths
		to    **int64
	}{{a.InputTokens, &f.input}, {a.OutputTokens, &f.output}, {a.CacheReadTokens, &f.read},
		{a.ReasoningTokens, &f.reasoning}} {
		var err error
		if *of.to, err = figure(strings.Join(of.paths, ", "), s.get(of.paths)); err != nil {
			return nil, err
		}
	}
	return f.usage()
}

// providers are the names of providers that frameworks write before the name of a model.
var providers = map[string]string{"openai": "openai", "openai-responses": "openai", "openai-chat": "openai",
	"anthropic": "anthropic", "google": "google", "google-gla": "google", "google-vertex": "google",
	"google_genai": "google", "google_vertexai": "google", "bedrock": "bedrock",
	"bedrock_converse": "bedrock", "azure": "azure", "azure_openai": "azure", "groq": "groq",
	"mistral": "mistral", "mistralai": "mistral", "cohere": "cohere", "deepseek": "deepseek", "xai": "xai",
	"grok": "xai", "openrouter": "openrouter", "together": "together", "fireworks": "fireworks",
	"cerebras": "cerebras", "huggingface": "huggingface", "ollama": "ollama"}

// modelOf splits a model as frameworks write it into provider and name: "openai-responses:gpt-5",
// "models/gemini-3-flash:generateContent". Other names may hold a colon, such as "qwen3:8b".
func modelOf(text string) (provider, model string) {
	if rest, ok := strings.CutPrefix(text, "models/"); ok {
		model, _, _ = strings.Cut(rest, ":")
		return "", model
	}
	before, after, _ := strings.Cut(text, ":")
	if provider = providers[before]; provider != "" && after != "" {
		return provider, after
	}
	return "", text
}
