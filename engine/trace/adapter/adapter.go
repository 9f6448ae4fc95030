// Package adapter reads the trace of an agent from the history of a workflow of any framework. An adapter
// says which activities are calls of models and tools, by type and shape, and where their payloads have what
// a trace holds. The adapters of frameworks are in adapters.toml; users add theirs in the configuration.
//
// The package does no I/O and starts no goroutine.
package adapter

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
// (https://github.com/tidwall/gjson/blob/master/SYNTAX.md). Of several paths, the first with a value counts.
type Adapter struct {
	Framework string `toml:"framework"`
	// Operation is "chat" (or ""), "execute_tool", or "node" for an activity whose messages hold any number
	// of answers and results of tools.
	Operation string   `toml:"operation"`
	Activity  []string `toml:"activity"` // patterns of activity types, with * for any characters
	Needs     []string `toml:"needs"`    // paths that must have a value

	Agent, Provider, Model, System, Messages, Tools []string
	// Key is the name under which the worker configured the model, if the history does not name the model.
	Key                             []string
	Answer, Answered, Finish, Usage []string
	// InputTokens and the others are figures outside an object that Usage could name. Input is with cached
	// tokens unless Exclusive is set, and output is with reasoning.
	InputTokens     []string `toml:"input_tokens"`
	CacheReadTokens []string `toml:"cache_read_tokens"`
	OutputTokens    []string `toml:"output_tokens"`
	ReasoningTokens []string `toml:"reasoning_tokens"`
	Exclusive       bool
	// PreviousCost is the cost in US dollars of the agent's answer before, as a later request says it.
	PreviousCost []string `toml:"previous_cost"`
	Error        []string // of an activity that completes though its call failed

	Name, ID, Arguments, Result, Server []string
	ToolError                           string `toml:"tool_error"` // beginning of the result of a failed tool

	patterns []*regexp.Regexp
}

//go:embed adapters.toml
var builtin []byte

// set holds adapters by what they are found by, and prices.
type set struct {
	exact    map[string][]*Adapter // by activity type
	patterns []*Adapter
	prices   *price.Prices
	digest   string
}

var current atomic.Pointer[set]

func init() {
	if err := Use(nil, price.Shipped()); err != nil {
		panic(err)
	}
}

// Use sets what all later events are read with: the adapters of the user, which come before those of
// frameworks, and the prices of models.
func Use(users []Adapter, prices *price.Prices) error {
	all, err := Parse(builtin)
	if err != nil {
		return fmt.Errorf("adapters.toml: %w", err)
	}
	s := &set{exact: map[string][]*Adapter{}, prices: prices}
	for _, a := range slices.Concat(users, all) {
		if err := a.compile(); err != nil {
			return err
		}
		for i, pattern := range a.Activity {
			one := a
			one.patterns = a.patterns[i : i+1]
			if strings.Contains(pattern, "*") {
				s.patterns = append(s.patterns, &one)
			} else {
				s.exact[pattern] = append(s.exact[pattern], &one)
			}
		}
	}
	written, err := json.Marshal(users)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(slices.Concat(builtin, written, []byte(prices.Digest())))
	s.digest = hex.EncodeToString(sum[:8])
	current.Store(s)
	return nil
}

// Digest identifies the adapters and prices. Traces that were read with others are not comparable.
func Digest() string { return current.Load().digest }

// Parse reads adapters in TOML: a list "adapter".
func Parse(data []byte) ([]Adapter, error) {
	var file struct {
		Adapter []Adapter `toml:"adapter"`
	}
	err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&file)
	return file.Adapter, err
}

// Operations of adapters besides those of a trace.
const node = "node"

// compile checks an adapter.
func (a *Adapter) compile() error {
	if len(a.Activity) == 0 {
		return fmt.Errorf("adapter %q names no activity", a.Framework)
	}
	switch trace.Operation(a.Operation) {
	case "":
		a.Operation = string(trace.Chat)
	case trace.Chat, trace.Tool, node:
	default:
		return fmt.Errorf("adapter %q: operation %q is not chat, execute_tool or node", a.Framework,
			a.Operation)
	}
	for _, paths := range a.paths() {
		for _, path := range paths {
			if root, _, _ := strings.Cut(path, "."); !slices.Contains(roots, root) {
				return fmt.Errorf("adapter %q: path %q does not begin with %s", a.Framework, path,
					strings.Join(roots, ", "))
			}
		}
	}
	for _, pattern := range a.Activity {
		quoted := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `(.+?)`)
		a.patterns = append(a.patterns, regexp.MustCompile("^"+quoted+"$"))
	}
	return nil
}

var roots = []string{"summary", "activity", "input", "result"}

func (a *Adapter) paths() [][]string {
	return [][]string{a.Needs, a.Agent, a.Provider, a.Model, a.System, a.Messages, a.Tools, a.Key, a.Answer,
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
}

// get returns the value at the first path that has one.
func (s *source) get(paths []string) gjson.Result {
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
			if n, err := strconv.Atoi(number); err == nil && n >= 0 && n < len(s.inputs) {
				v = at(history.PayloadJSON(s.inputs[n]), rest)
			}
		case "result":
			v = at(history.JSON(s.results), rest)
		}
		if v.Exists() && v.Type != gjson.Null && (v.Type != gjson.String || v.Str != "") &&
			(!v.IsArray() || v.Raw != "[]") {
			return v
		}
	}
	return gjson.Result{}
}

func (s *source) text(paths []string) string { return s.get(paths).String() }

// at returns the value at a path of gjson in JSON; all of it for "".
func at(data []byte, path string) gjson.Result {
	if path == "" {
		return gjson.ParseBytes(data)
	}
	return gjson.GetBytes(data, path)
}

// find returns the adapter of an activity, or nil; then problem says why a known type has none.
func (s *source) find() (a *Adapter, problem string) {
	all := current.Load()
	for _, a := range all.exact[s.activity] {
		missing := s.missing(a)
		if missing == "" {
			return a, ""
		}
		if problem == "" {
			problem = missing + " is missing"
		} else {
			problem = "no adapter fits the shape of " + s.activity
		}
	}
	if problem != "" {
		return nil, problem
	}
	for _, a := range all.patterns {
		if s.captures = a.patterns[0].FindStringSubmatch(s.activity); s.captures != nil && s.missing(a) == "" {
			return a, ""
		}
	}
	s.captures = nil
	return nil, ""
}

// missing returns the first path of a value that an adapter needs and the activity lacks, or "". An activity
// whose input is not recorded lacks nothing.
func (s *source) missing(a *Adapter) string {
	if !s.recorded {
		return ""
	}
	needs := a.Needs
	if a.Operation == string(trace.Tool) && !s.get(a.Name).Exists() {
		return "the name of the tool"
	}
	for _, path := range needs {
		if !s.get([]string{path}).Exists() {
			return path
		}
	}
	return ""
}

// usage reads the usage of a response.
func (a *Adapter) usage(s *source, own gjson.Result) (*trace.Usage, error) {
	v := own
	if !v.Exists() {
		v = s.get(a.Usage)
	}
	if len(a.InputTokens)+len(a.OutputTokens) == 0 {
		return usageOf(v)
	}
	figures := map[string]int64{}
	for name, paths := range map[string][]string{"input_tokens": a.InputTokens, "output_tokens": a.OutputTokens,
		"cache_read_tokens": a.CacheReadTokens, "output_reasoning_tokens": a.ReasoningTokens} {
		if n := s.get(paths); n.Type == gjson.Number {
			figures[name] = n.Int()
		}
	}
	if a.Exclusive {
		figures["cache_read_input_tokens"] = figures["cache_read_tokens"]
	}
	data, err := json.Marshal(figures)
	if err != nil {
		return nil, err
	}
	return usageOf(gjson.ParseBytes(data))
}

// modelOf splits a model as frameworks write it into provider and name: "openai-responses:gpt-5",
// "models/gemini-3-flash:generateContent".
func modelOf(text string) (provider, model string) {
	if rest, ok := strings.CutPrefix(text, "models/"); ok {
		model, _, _ = strings.Cut(rest, ":")
		return "", model
	}
	if before, after, ok := strings.Cut(text, ":"); ok && !strings.ContainsAny(before, "/.") {
		provider, _, _ = strings.Cut(before, "-responses")
		return provider, after
	}
	return "", text
}
