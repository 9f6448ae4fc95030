package adapter

import (
	"fmt"
	"math"
	"strconv"

	"github.com/tidwall/gjson"

	"acescope/engine/trace"
)

// Bounds of the tokens and the cost in US dollars of a request that are believed.
const (
	maxTokens = 1e12
	maxCost   = 1e9
)

// Names of the figures of a usage, as providers and frameworks write them. A figure may be nested: "a.b".
var (
	inputNames = []string{"input_tokens", "prompt_tokens", "inputTokens.total", "inputTokens", "promptTokens",
		"prompt_token_count", "promptTokenCount", "PromptTokens", "inputTokenCount", "tokens"}
	outputNames = []string{"output_tokens", "completion_tokens", "outputTokens.total", "outputTokens",
		"completionTokens", "candidates_token_count", "candidatesTokenCount", "CompletionTokens",
		"outputTokenCount"}
	readNames = []string{"cache_read_tokens", "cache_read_input_tokens", "input_tokens_details.cached_tokens",
		"prompt_tokens_details.cached_tokens", "inputTokensDetails.cached_tokens",
		"inputTokensDetails.0.cached_tokens", "inputTokens.cacheRead", "cachedInputTokens",
		"cached_content_token_count", "cachedContentTokenCount", "input_token_details.cache_read",
		"cacheReadInputTokens", "PromptCachedTokens", "cached_prompt_tokens"}
	writeNames = []string{"cache_write_tokens", "cache_creation_input_tokens",
		"input_tokens_details.cache_write_tokens", "prompt_tokens_details.cache_write_tokens",
		"inputTokens.cacheWrite", "input_token_details.cache_creation", "cacheWriteInputTokens"}
	write1hNames = []string{"cache_write_1h_tokens", "cache_creation.ephemeral_1h_input_tokens",
		"input_token_details.ephemeral_1h_input_tokens"}
	reasoningNames = []string{"output_reasoning_tokens", "output_tokens_details.reasoning_tokens",
		"completion_tokens_details.reasoning_tokens", "outputTokensDetails.reasoning_tokens",
		"outputTokensDetails.0.reasoning_tokens", "outputTokens.reasoning", "reasoningTokens",
		"thoughts_token_count", "thoughtsTokenCount", "output_token_details.reasoning", "ReasoningTokens",
		"reasoning_tokens"}
	toolNames = []string{"tool_use_prompt_token_count", "toolUsePromptTokenCount"}
	costNames = []string{"cost", "cost_usd"}
)

// figure returns the first figure that a usage has, or nil.
func figure(v gjson.Result, names []string) (*int64, error) {
	for _, name := range names {
		n := v.Get(name)
		if n.Type != gjson.Number {
			continue
		}
		if f := n.Float(); f < 0 || f > maxTokens || f != math.Trunc(f) {
			return nil, fmt.Errorf("%s is %s", name, n.Raw)
		}
		return new(n.Int()), nil
	}
	return nil, nil
}

// usageOf reads a usage of any provider or framework. It returns nil for another value, and an error if a
// figure cannot be one. Their meanings differ: docs/reference/adapters.md has the table.
func usageOf(v gjson.Result) (*trace.Usage, error) {
	if !v.IsObject() {
		return nil, nil
	}
	var all [7]*int64
	for i, names := range [][]string{inputNames, outputNames, readNames, writeNames, write1hNames,
		reasoningNames, toolNames} {
		n, err := figure(v, names)
		if err != nil {
			return nil, fmt.Errorf("usage: %w", err)
		}
		all[i] = n
	}
	input, output, read, write, write1h, reasoning, tool := all[0], all[1], all[2], all[3], all[4], all[5],
		all[6]
	if input == nil && output == nil {
		return nil, nil
	}
	u := &trace.Usage{Input: count(input), CacheRead: read, CacheWrite: write, CacheWrite1h: write1h,
		Output: count(output), Reasoning: reasoning}
	if cached := count(read) + count(write); !exclusive(v, u.Input, cached) {
		if u.Input -= cached; u.Input < 0 {
			return nil, fmt.Errorf("usage: %d cached tokens of %d", cached, u.Input+cached)
		}
	}
	u.Input += count(tool)
	if apart(v) {
		u.Output += count(reasoning)
	}
	if u.Reasoning != nil && *u.Reasoning > u.Output {
		return nil, fmt.Errorf("usage: %d reasoning tokens of %d", *u.Reasoning, u.Output)
	}
	for _, name := range costNames {
		c := v.Get(name)
		if usd, err := strconv.ParseFloat(c.String(), 64); err == nil && usd >= 0 && usd < maxCost {
			u.Cost = &usd
			break
		}
	}
	return u, nil
}

func count(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// exclusive reports whether the input of a usage is without cached tokens: in the form of Anthropic's API,
// and in that of Bedrock's, which Strands also uses for providers whose input includes them.
func exclusive(v gjson.Result, input, cached int64) bool {
	return v.Get("cache_read_input_tokens").Exists() || v.Get("cache_creation_input_tokens").Exists() ||
		v.Get("cacheReadInputTokens").Exists() && cached > input
}

// apart reports whether the output of a usage is without reasoning, as in Gemini's API.
func apart(v gjson.Result) bool {
	return v.Get("candidates_token_count").Exists() || v.Get("candidatesTokenCount").Exists() ||
		v.Get("thoughts_token_count").Exists() || v.Get("thoughtsTokenCount").Exists()
}
