package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/price"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/anthropic"
	"acescope/engine/learning/model/llm"
	"acescope/engine/learning/model/llm/llmtest"
	"acescope/engine/learning/model/openai"
	"acescope/engine/learning/playbook"
)

const key = "sk-test-0123456789abcdef"

// forBothServers runs a test with each API.
func forBothServers(t *testing.T, o llm.Options, answer func(llmtest.Request) llmtest.Reply,
	test func(t *testing.T, p model.Provider, s *llmtest.Server)) {
	for _, api := range []string{"anthropic", "openai"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			answer := answer
			s := llmtest.New(answer)
			defer s.Close()
			o := o
			o.Name, o.Model = api, "m-1"
			var c llm.Completer
			if api == "anthropic" {
				c = anthropic.New(llm.Server{Name: api, BaseURL: s.URL, Key: key,
					KeyHint: "$ANTHROPIC_API_KEY"})
			} else {
				c = openai.New(llm.Server{Name: api, BaseURL: s.URL + "/v1", Key: key,
					KeyHint: "$OPENAI_API_KEY"})
			}
			test(t, llm.New(c, o), s)
		})
	}
}

func samplePlaybook() *playbook.Playbook {
	return &playbook.Playbook{NextID: 3, Bullets: []playbook.Bullet{
		{ID: "calc-00001", Section: "FORMULAS & CALCULATIONS",
			Content: "Current ratio: current assets / current liabilities.", Helpful: 2},
		{ID: "misc-00002", Section: "OTHERS", Content: "Round to two decimals."},
	}}
}

const generated = `{"reasoning": "Divide.", "bullet_ids": ["calc-00001", "calc-00099"], "final_answer": "2.5"}`

func generate(t *testing.T, p model.Provider) (ace.GeneratorResult, error) {
	t.Helper()
	return p.Generate(t.Context(), ace.GeneratorInput{Prompt: "Assets 5, liabilities 2: current ratio?"},
		samplePlaybook())
}

func TestGenerate(t *testing.T) {
	prices, err := price.ParsePrices(
		[]byte(`{"prices": [{"models": ["m-1"], "input": 1, "output": 10, "cache_read": 0.1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	forBothServers(t, llm.Options{Prices: prices},
		llmtest.Script(llmtest.Reply{Text: generated, In: 100, Out: 20, Cached: 1000}),
		func(t *testing.T, p model.Provider, s *llmtest.Server) {
			var said strings.Builder
			p = p.(model.Streamer).Live(func(text string) { said.WriteString(text) })
			r, err := generate(t, p)
			if err != nil {
				t.Fatal(err)
			}
			if r.Answer != "2.5" || r.Plan != "Divide." ||
				!slices.Equal(r.BulletIDs, []string{"calc-00001"}) ||
				r.TrajectoryID == "" {
				t.Errorf("%+v", r)
			}
			if v := r.Parsed; v.Parse != ace.ParseClean || v.Attempts != 1 ||
				!strings.Contains(v.Note, "calc-00099") {
				t.Errorf("verdict %+v", v)
			}
			if u := *r.Usage; u != (ace.Usage{InputTokens: 100, OutputTokens: 20, CacheReadTokens: 1000,
				CostUSD: 0.0004}) {
				t.Errorf("usage %+v", u)
			}
			if said.String() != generated {
				t.Errorf("streamed %q", said.String())
			}
			q := s.Seen()[0]
			if q.Key != key || q.Model != "m-1" || !strings.Contains(llmtest.Between(q.System, "playbook"),
				"[calc-00001] helpful=2 harmful=0 :: Current ratio") {
				t.Errorf("asked %+v", q)
			}
			if llmtest.Between(q.Last(), "task") != "Assets 5, liabilities 2: current ratio?" {
				t.Errorf("the task is not between tags: %q", q.Last())
			}
			if q.API == "anthropic" && !q.Cached {
				t.Error("the playbook is not marked to be cached")
			}
		})
}

func TestUnpriced(t *testing.T) {
	forBothServers(t, llm.Options{Prices: price.Shipped()}, llmtest.Script(llmtest.Reply{Text: generated}),
		func(t *testing.T, p model.Provider, _ *llmtest.Server) {
			r, err := generate(t, p)
			if err != nil || r.Usage.CostUSD != 0 || !r.Usage.Unpriced {
				t.Errorf("%+v, %v", r.Usage, err)
			}
		})
}

func TestRepairsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		first llmtest.Reply
		say   string
	}{
		"prose":    {llmtest.Reply{Text: "The answer is two and a half."}, "no JSON object"},
		"empty":    {llmtest.Reply{}, "it is empty"},
		"half":     {llmtest.Reply{Text: `{"reasoning": "Divide", "final_an`, Stop: "length"}, "token limit"},
		"no field": {llmtest.Reply{Text: `{"reasoning": "Divide"}`}, `no "final_answer"`},
	} {
		t.Run(name, func(t *testing.T) {
			forBothServers(t, llm.Options{}, func(q llmtest.Request) llmtest.Reply {
				if strings.Contains(q.Last(), "could not be read") {
					return llmtest.Reply{Text: generated}
				}
				return c.first
			}, func(t *testing.T, p model.Provider, s *llmtest.Server) {
				r, err := generate(t, p)
				if err != nil {
					t.Fatal(err)
				}
				if v := r.Parsed; v.Parse != ace.ParseAsked || v.Attempts != 2 ||
					!strings.Contains(v.Note, c.say) || r.Answer != "2.5" {
					t.Errorf("%+v of %+v", v, r)
				}
				if q := s.Seen()[1]; !strings.Contains(q.Last(), c.say) || q.Messages[0].Role != "user" {
					t.Errorf("the model was told %q", q.Last())
				}
			})
		})
	}
}

// TestFailures checks that every error is one sentence of the right kind.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		reply llmtest.Reply
		kind  model.ErrorKind
		say   string
		tries int
	}{
		"prose twice": {llmtest.Reply{Text: "I would rather talk."}, model.BadAnswer,
			"after two requests", 2},
		"refusal": {llmtest.Reply{Text: "I will not.", Stop: "refusal"}, model.Refused,
			"refused to answer", 1},
		"rate limit": {llmtest.Reply{Status: 429, Type: "rate_limit_error", Text: "slow down"},
			model.RateLimited, "rate limited (429): slow down", 1},
		"rate limit after": {llmtest.Reply{Status: 429, Type: "rate_limit_error", RetryAfter: "42",
			Text: "slow down"}, model.RateLimited, "retry after 42s", 1},
		"overloaded": {llmtest.Reply{Status: 529, Type: "overloaded_error", Text: "busy"},
			model.Overloaded, "overloaded (529)", 3},
		"server error": {llmtest.Reply{Status: 500, Type: "api_error", Text: "oops"}, model.ServerError,
			"the server failed (500): oops", 3},
		"broken off": {llmtest.Reply{Text: generated, Break: true}, model.Network, "broke after", 3},
		"overloaded later": {llmtest.Reply{Text: generated, ErrorInside: "overloaded_error"},
			model.Overloaded, "overloaded", 3},
		"bad key": {llmtest.Reply{Status: 401, Type: "authentication_error", Text: "key " + key +
			" is wrong"}, model.Auth, "check $", 1},
		"no model": {llmtest.Reply{Status: 404, Type: "not_found_error", Text: "model: m-1"},
			model.NoModel, `no model "m-1"`, 1},
		"too long": {llmtest.Reply{Status: 400, Type: "invalid_request_error",
			Text: "prompt is too long: 300000 tokens > 200000 maximum"}, model.TooLong,
			"shorten the playbook", 1},
		"bad request": {llmtest.Reply{Status: 400, Type: "invalid_request_error", Text: "no"},
			model.BadRequest, "rejected the request (400): no", 1},
		"a web page": {llmtest.Reply{Body: "<html>hello</html>"}, model.BadRequest,
			"check the base URL", 1},
	} {
		t.Run(name, func(t *testing.T) {
			forBothServers(t, llm.Options{}, llmtest.Script(c.reply),
				func(t *testing.T, p model.Provider, s *llmtest.Server) {
					_, err := generate(t, p)
					var e *model.Error
					if !errors.As(err, &e) || e.Kind != c.kind || !strings.Contains(err.Error(), c.say) ||
						strings.Contains(err.Error(), "\n") {
						t.Fatalf("%T %v", err, err)
					}
					if strings.Contains(err.Error(), key) {
						t.Errorf("the key is in %q", err)
					}
					if got := len(s.Seen()); got != c.tries {
						t.Errorf("%d requests, want %d", got, c.tries)
					}
					if c.say == "retry after 42s" && e.RetryAfter != 42*time.Second {
						t.Error(e.RetryAfter)
					}
				})
		})
	}
}

func TestRetriesAfterShortRateLimit(t *testing.T) {
	var mu sync.Mutex
	limited := map[string]bool{}
	forBothServers(t, llm.Options{}, func(q llmtest.Request) llmtest.Reply {
		mu.Lock()
		defer mu.Unlock()
		if !limited[q.API] {
			limited[q.API] = true
			return llmtest.Reply{Status: 429, Type: "rate_limit_error", RetryAfter: "0.01"}
		}
		return llmtest.Reply{Text: generated}
	}, func(t *testing.T, p model.Provider, s *llmtest.Server) {
		if r, err := generate(t, p); err != nil || r.Parsed.Attempts != 1 || len(s.Seen()) != 2 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestUnreachableServer(t *testing.T) {
	p := llm.New(openai.New(llm.Server{Name: "ollama", BaseURL: "http://127.0.0.1:1/v1"}),
		llm.Options{Name: "ollama", Model: "m"})
	if _, err := generate(t, p); model.KindOf(err) != model.Network ||
		!strings.Contains(err.Error(), "cannot reach http://127.0.0.1:1/v1") {
		t.Error(err)
	}
}

func TestCancellation(t *testing.T) {
	forBothServers(t, llm.Options{}, llmtest.Script(llmtest.Reply{Text: generated, Hang: true}),
		func(t *testing.T, p model.Provider, s *llmtest.Server) {
			ctx, cancel := context.WithCancel(t.Context())
			p = p.(model.Streamer).Live(func(string) { cancel() })
			_, err := p.Generate(ctx, ace.GeneratorInput{Prompt: "x"}, nil)
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			<-s.Left
		})
}

func TestIdleTimeout(t *testing.T) {
	forBothServers(t, llm.Options{IdleTimeout: 20 * time.Millisecond},
		llmtest.Script(llmtest.Reply{Text: generated, Hang: true}),
		func(t *testing.T, p model.Provider, _ *llmtest.Server) {
			if _, err := generate(t, p); model.KindOf(err) != model.Network ||
				!strings.Contains(err.Error(), "sent no data for 20ms") {
				t.Error(err)
			}
		})
}

// box records calls like the toolbox of the activity.
type box struct {
	mu     sync.Mutex
	denied string
	names  []string
}

func (b *box) Call(ctx context.Context, name string, _ any, fn func(context.Context) (any, error)) (any,
	error) {
	b.mu.Lock()
	b.names = append(b.names, name)
	b.mu.Unlock()
	if name == b.denied {
		return nil, model.ErrDenied
	}
	return fn(ctx)
}

func TestSkills(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "data.txt"), []byte("assets 5"), 0o600); err != nil {
		t.Fatal(err)
	}
	forBothServers(t, llm.Options{Dir: dir}, func(q llmtest.Request) llmtest.Reply {
		switch len(q.Messages) {
		case 1:
			return llmtest.Reply{Text: "I look.",
				Calls: []llmtest.Call{{ID: "c1", Name: "look_up", Args: `{"words": "current ratio"}`},
					{ID: "c2", Name: "calculate", Args: `{"expression": "5/0"}`},
					{ID: "c3", Name: "read_file", Args: `{"path": "data.txt"}`},
					{ID: "c4", Name: "read_file", Args: `{"path": "../../etc/passwd"}`},
					{ID: "c5", Name: "delete_all", Args: `{}`},
					{ID: "c6", Name: "calculate", Args: `{"expression`}}}
		case 3:
			return llmtest.Reply{Calls: []llmtest.Call{{ID: "c7", Name: "calculate",
				Args: `{"expression": "a/b", "values": {"a": 5, "b": 2}}`}}}
		}
		return llmtest.Reply{Text: "Done.\n```json\n{\"final_answer\": 2.5}\n```"}
	}, func(t *testing.T, p model.Provider, s *llmtest.Server) {
		b := &box{denied: "look_up"}
		r, err := p.Skills(t.Context(), ace.SkillsInput{Prompt: "Assets 5, liabilities 2: current ratio?",
			Plan: "Divide.", Answer: "2"}, samplePlaybook(), b)
		if err != nil {
			t.Fatal(err)
		}
		if r.Answer != "2.5" || r.Parsed.Parse != ace.ParseExtracted || len(b.names) != 7 {
			t.Errorf("%+v %v", r, b.names)
		}
		told := s.Seen()[1].Messages[2].Results
		for i, want := range []string{"denied", "not a finite number", `"text":"assets 5"`,
			"outside of the working directory", "unknown tool", "failed"} {
			if i >= len(told) || !strings.Contains(told[i], want) {
				t.Errorf("result %d is %v, want %q", i, told, want)
			}
		}
		if got := s.Seen()[2].Messages[4].Results; len(got) != 1 ||
			!strings.Contains(got[0], `"text":"2.5"`) {
			t.Errorf("calculated %v", got)
		}
	})
}

func TestSkillsTurnLimit(t *testing.T) {
	forBothServers(t, llm.Options{}, func(q llmtest.Request) llmtest.Reply {
		if strings.Contains(q.Last(), "could not be read") {
			return llmtest.Reply{Text: `{"final_answer": "7"}`}
		}
		return llmtest.Reply{Calls: []llmtest.Call{{ID: "c", Name: "calculate",
			Args: `{"expression": "1+1"}`}}}
	}, func(t *testing.T, p model.Provider, s *llmtest.Server) {
		r, err := p.Skills(t.Context(),
			ace.SkillsInput{Prompt: "x", Task: ace.TaskContext{SkillsConfig: ace.SkillsConfig{AllowedTools: []string{"calculate"}}}}, nil, &box{})
		if err != nil {
			t.Fatal(err)
		}
		seen := s.Seen()
		if r.Answer != "7" || len(seen) != llm.MaxTurns+1 || !strings.Contains(seen[llm.MaxTurns-1].Last(),
			"last turn") {
			t.Errorf("%d requests, %+v", len(seen), r)
		}
		if !slices.Equal(seen[0].Tools, []string{"calculate"}) {
			t.Errorf("tools %v were offered", seen[0].Tools)
		}
	})
}

func TestModelWithoutTools(t *testing.T) {
	forBothServers(t, llm.Options{}, func(q llmtest.Request) llmtest.Reply {
		if len(q.Tools) > 0 {
			return llmtest.Reply{Status: 400, Type: "invalid_request_error",
				Text: "m-1 does not support tools"}
		}
		return llmtest.Reply{Text: `{"final_answer": "7"}`}
	}, func(t *testing.T, p model.Provider, _ *llmtest.Server) {
		r, err := p.Skills(t.Context(), ace.SkillsInput{Prompt: "x"}, nil, &box{})
		if err != nil || r.Answer != "7" || !strings.Contains(r.Parsed.Note, "does not accept tools") {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

const reflection = "Here is what I think:\n{\"reasoning\": \"r\", \"mistake\": \"wrong denominator\", \"error_identification\": \"none\", \"key_insight\": \"Divide assets by liabilities.\", \"correct\": true, " +
	"\"bullet_tags\": [{\"id\": \"calc-00001\", \"tag\": \"Helpful\"}, {\"id\": \"nope-1\", \"tag\": \"harmful\"}, {\"id\": \"misc-00002\", \"tag\": \"great\"}]}"

func TestReflect(t *testing.T) {
	forBothServers(t, llm.Options{}, llmtest.Script(llmtest.Reply{Text: reflection}),
		func(t *testing.T, p model.Provider, s *llmtest.Server) {
			label := "3.0"
			r, err := p.Reflect(t.Context(), ace.ReflectorInput{Prompt: "ratio?", Answer: "2.5",
				Label:     &label,
				BulletIDs: []string{"calc-00001"}}, samplePlaybook())
			if err != nil {
				t.Fatal(err)
			}
			if r.Correct == nil || *r.Correct {
				t.Error("the model's word decided what is correct")
			}
			if r.Cause != "wrong denominator" {
				t.Errorf("cause %q", r.Cause)
			}
			if !slices.Equal(r.BulletTags, []ace.BulletTag{{ID: "calc-00001", Tag: "helpful"}}) ||
				r.Parsed.Parse != ace.ParseExtracted ||
				!strings.Contains(r.Parsed.Note, "nope-1") || !strings.Contains(r.Parsed.Note, "great") {
				t.Errorf("%+v %+v", r.BulletTags, r.Parsed)
			}
			if q := s.Seen()[0].Last(); !strings.Contains(q, "WRONG") ||
				llmtest.Between(q, "expected") != "3.0" {
				t.Errorf("the model was told %q", q)
			}
			r, err = p.Reflect(t.Context(), ace.ReflectorInput{Prompt: "ratio?", Answer: "2.5"},
				samplePlaybook())
			if err != nil || r.Correct != nil {
				t.Errorf("without a label: %+v, %v", r.Correct, err)
			}
		})
}

// TestL7Curate reads MERGE and DELETE with the field names that other curators use.
func TestL7Curate(t *testing.T) {
	ops := `{"reasoning": "Same.", "operations": [
		{"type": "MERGE", "source_ids": ["[calc-00001]", "misc-00002"], "keep_id": "misc-00002", "merged_content": "Divide, then round."},
		{"type": "DELETE", "skill_id": "misc-00002"}]}`
	forBothServers(t, llm.Options{}, llmtest.Script(llmtest.Reply{Text: ops}),
		func(t *testing.T, p model.Provider, s *llmtest.Server) {
			r, err := p.Curate(t.Context(), ace.CuratorInput{}, samplePlaybook())
			if err != nil || len(r.Accepted) != 2 {
				t.Fatalf("%+v, %v", r, err)
			}
			merge, remove := r.Accepted[0], r.Accepted[1]
			if merge.Type != ace.OpMerge || merge.BulletID != "misc-00002" ||
				merge.Content != "Divide, then round." ||
				!slices.Equal(merge.SourceIDs, []string{"calc-00001"}) || remove.Type != ace.OpRemove {
				t.Errorf("%+v", r.Accepted)
			}
		})
}

func TestCurate(t *testing.T) {
	ops := `{"reasoning": "New.", "operations": [
		{"type": "add", "section": "formulas and calculations", "content": "Quick ratio: (assets - stock) / liabilities.", "bullet_id": "x-1"},
		{"type": "ADD", "section": "OTHERS", "content": "Round to two decimals."},
		{"type": "UPDATE", "bullet_id": "[misc-00002]", "content": "Round to three decimals."},
		{"type": "REMOVE", "bullet_id": "calc-00077"},
		{"type": "TAG", "bullet_id": "calc-00001", "tag": "harmful"},
		{"type": "MERGE", "bullet_id": "calc-00001"},
		{"type": "PAINT", "content": "it"},
		"ADD something"]}`
	forBothServers(t, llm.Options{}, llmtest.Script(llmtest.Reply{Text: ops}),
		func(t *testing.T, p model.Provider, s *llmtest.Server) {
			in := ace.CuratorInput{Insights: "Divide.",
				BulletTags: []ace.BulletTag{{ID: "calc-00001", Tag: "helpful"}},
				Findings:   json.RawMessage(`{"question": "ratio?"}`)}
			r, err := p.Curate(t.Context(), in, samplePlaybook())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, op := range append(append([]ace.Operation{}, r.Accepted...), r.Rejected...) {
				got = append(got, strings.TrimSpace(string(op.Outcome)+" "+string(op.Type)+" "+op.BulletID))
			}
			want := []string{"accepted TAG calc-00001", "accepted ADD", "accepted UPDATE misc-00002",
				"unparsable", "ignored TAG calc-00001", "rejected ADD",
				"rejected REMOVE calc-00077", "rejected MERGE calc-00001", "unparsable PAINT"}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("fates\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			for _, op := range r.Rejected {
				if op.Reason == "" {
					t.Errorf("%+v says no reason", op)
				}
			}
			if q := s.Seen()[0].Last(); llmtest.Between(q, "insights") != "Divide." ||
				llmtest.Between(q, "task") != "ratio?" {
				t.Errorf("the model was told %q", q)
			}
		})
}

func TestMissingKey(t *testing.T) {
	why := model.Errorf(model.NoKey, "anthropic: there is no key: set ANTHROPIC_API_KEY")
	p := llm.New(nil, llm.Options{Name: "anthropic", Missing: why})
	if _, err := generate(t, p); !errors.Is(err, why) || errors.Is(err, model.ErrPermanent) {
		t.Error(err)
	}
	if p.(model.Checker).Ready() == nil {
		t.Error("it says it is ready")
	}
}

// TestLongAnswersAreCut checks that long answers do not enlarge a history.
func TestLongAnswersAreCut(t *testing.T) {
	long := strings.Repeat("so and ", 20_000)
	forBothServers(t, llm.Options{},
		llmtest.Script(llmtest.Reply{Text: `{"reasoning": "` + long + `", "key_insight": "` + long +
			`", "operations": [], "final_answer": "` + long + `"}`}),
		func(t *testing.T, p model.Provider, _ *llmtest.Server) {
			g, err := generate(t, p)
			if err != nil || !strings.Contains(g.Parsed.Note, "reasoning had") {
				t.Fatal(err, g.Parsed)
			}
			r, err := p.Reflect(t.Context(), ace.ReflectorInput{Prompt: long}, nil)
			if err != nil {
				t.Fatal(err)
			}
			c, err := p.Curate(t.Context(), ace.CuratorInput{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range []any{g, r, c} {
				if data, err := json.Marshal(v); err != nil || len(data) > ace.InlineBytes {
					t.Errorf("%T has %d bytes, %v", v, len(data), err)
				}
			}
		})
}
