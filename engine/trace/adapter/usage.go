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

// figure returns a number of tokens, or nil if the value is no number.
func figure(name string, v gjson.Result) (*int64, error) {
	if v.Type != gjson.Number {
		return nil, nil
	}
	if f := v.Float(); f < 0 || f > maxTokens || f != math.Trunc(f) {
		return nil, fmt.Errorf("usage: %s is %s", name, v.Raw)
	}
	return new(v.Int()), nil
}

// figures are those of a source, nil where it records none.
type figures struct {
	input, output, read, write, write1h, reasoning *int64
	tool                                           *int64 // input besides that of the prompt
	exclusive                                      bool   // the input is without cached tokens
	apart                                          bool   // the output is without reasoning
}

// usageOf reads a usage of any provider or framework. It returns nil for another value, and an error if a
// figure cannot be one. Their meanings differ: docs/reference/adapters.md has the table.
func usageOf(value gjson.Result) (*trace.Usage, error) {
	if !value.IsObject() {
		return nil, nil
	}
	v := objectOf(value)
	var f figures
	for _, of := range []struct {
		names []string
		to    **int64
	}{{inputNames, &f.input}, {outputNames, &f.output}, {readNames, &f.read}, {writeNames, &f.write},
		{write1hNames, &f.write1h}, {reasoningNames, &f.reasoning}, {toolNames, &f.tool}} {
		for _, name := range of.names {
			n, err := figure(name, v.Get(name))
			if err != nil {
				return nil, err
			}
			if n != nil {
				*of.to = n
				break
			}
		}
	}
	f.exclusive, f.apart = exclusive(v, &f), apart(v)
	u, err := f.usage()
	if u == nil {
		return nil, err
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

// usage returns the usage of the figures; nil without input and output.
func (f *figures) usage() (*trace.Usage, error) {
	if f.input == nil && f.output == nil {
		return nil, nil
	}
	u := &trace.Usage{Input: count(f.input), CacheRead: f.read, CacheWrite: f.write, CacheWrite1h: f.write1h,
		Output: count(f.output), Reasoning: f.reasoning}
	if cached := count(f.read) + count(f.write); !f.exclusive {
		if u.Input -= cached; u.Input < 0 {
			return nil, fmt.Errorf("usage: %d cached tokens of %d", cached, u.Input+cached)
		}
	}
	u.Input += count(f.tool)
	if f.apart {
		u.Output += count(f.reasoning)
	}
	if count(f.reasoning) > u.Output {
		return nil, fmt.Errorf("usage: %d reasoning tokens of %d", *f.reasoning, u.Output)
	}
	if count(f.write1h) > count(f.write) {
		return nil, fmt.Errorf("usage: %d tokens written for an hour of %d", *f.write1h, count(f.write))
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
func exclusive(v valuer, f *figures) bool {
	return v.Get("cache_read_input_tokens").Exists() || v.Get("cache_creation_input_tokens").Exists() ||
		v.Get("cacheReadInputTokens").Exists() && count(f.read)+count(f.write) > count(f.input)
}

// apart reports whether the output of a usage is without reasoning, as in Gemini's API.
func apart(v valuer) bool {
	return v.Get("candidates_token_count").Exists() || v.Get("candidatesTokenCount").Exists() ||
		v.Get("thoughts_token_count").Exists() || v.Get("thoughtsTokenCount").Exists()
}
