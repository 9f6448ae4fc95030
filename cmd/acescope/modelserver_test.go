package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"

	"acescope/engine/learning/model/llm/llmtest"
)

// modelServer starts a stub of a model server that answers by a scenario, and adds it to the configuration:
// modelserver PROVIDER SCENARIO
func modelServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: modelserver PROVIDER SCENARIO")
	}
	name := args[0]
	answer := map[string]func(llmtest.Request) llmtest.Reply{
		"learner": modelLearner(map[string]string{"zork": "3*x+1", "blip": "x*x"}),
		"moody":   moody(),
		"refusal": llmtest.Script(llmtest.Reply{Text: "I will not do that.", Stop: "refusal"}),
		"prose": llmtest.Script(llmtest.Reply{Text: strings.Repeat("Let us talk about something else. ",
			20)}),
		"limited": llmtest.Script(llmtest.Reply{Status: 429, Type: "rate_limit_error", RetryAfter: "6",
			Text: "slow down"},
			llmtest.Reply{Text: `{"reasoning": "r", "final_answer": "1", "key_insight": "none", "operations": []}`}),
		"locked": llmtest.Script(llmtest.Reply{
			Status: 401, Type: "authentication_error", Text: "key " + ts.Getenv("STUB_KEY") + " is wrong",
		}),
	}[args[1]]
	if answer == nil {
		ts.Fatalf("unknown scenario %q", args[1])
	}
	s := llmtest.New(answer)
	ts.Defer(s.Close)
	base := s.URL
	if !strings.HasPrefix(name, "anthropic") {
		base += "/v1"
	}
	kind := ""
	if strings.HasPrefix(name, "anthropic-") {
		kind = "kind = \"anthropic\"\n"
	}
	path := filepath.Join(ts.Getenv("HOME"), ".config", "acescope", "config.toml")
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o700))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	ts.Check(err)
	defer f.Close()
	_, err = fmt.Fprintf(
		f, "[providers.%s]\n%sbase_url = %q\nmodel = \"m-1\"\napi_key_env = \"STUB_KEY\"\n\n",
		name, kind, base)
	ts.Check(err)
}

// moody answers 1, and refuses the first two requests about a color.
func moody() func(llmtest.Request) llmtest.Reply {
	var refused atomic.Int32
	return func(r llmtest.Request) llmtest.Reply {
		if strings.Contains(r.Last(), "color") && refused.Add(1) <= 2 {
			return llmtest.Reply{Text: "No.", Stop: "refusal"}
		}
		const one = `{"reasoning": "r", "final_answer": "1", "key_insight": "none", "operations": []}`
		return llmtest.Reply{Text: one}
	}
}
