package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"acescope/engine/agents/session"
)

// TestTranscriptCost checks the cost of a turn without a result. An answer here costs 0.000828 at
// list prices.
func TestTranscriptCost(t *testing.T) {
	mine := func(uuid string) string {
		return fmt.Sprintf(`{"type":"user","uuid":"%s","message":{"role":"user","content":"do it"}}`, uuid)
	}
	answers := 0
	answer := func(model string) string {
		answers++
		return fmt.Sprintf(`{"type":"assistant","uuid":"a%d","timestamp":"2026-11-21T17:45:23.196Z","message":{"id":"m%d","model":"%s","stop_reason":"tool_use",`+
			`"content":[{"type":"text","text":"x"}],"usage":{"input_tokens":120,"cache_read_input_tokens":40,"output_tokens":17}}}`, answers, answers, model)
	}
	known := func() string { return answer("claude-opus-5-5") }
	total := func(usd float64) string {
		return fmt.Sprintf(`{"type":"cost-state","sessionId":"s","totalCostUSD":%v}`, usd)
	}
	const one = perAnswer
	for _, c := range []struct {
		what     string
		seen     float64
		lines    []string
		want     float64
		counted  float64
		unpriced bool
	}{
		{"killed", 0, []string{mine("u1"), known(), known()}, 2 * one, 0, false},
		{"no answer", 0.5, []string{total(0.5), mine("u1")}, 0, 0.5, false},
		{"previous turns are not counted", 0.5, []string{mine("u0"), known(), total(0.5), mine("u1"),
			known()}, one, 0.5, false},
		{"a total includes subagents", 0.5, []string{total(0.5), mine("u1"), known(), total(0.6)}, 0.1, 0.6,
			false},
		{"a total lacks the killed turn", 0.5, []string{total(0.4), mine("u1"), known(), total(0.4 + one)},
			one, 0.4 + one, false},
		{"killed after a total", 0.5, []string{total(0.5), mine("u1"), known(), total(0.6), mine("u2"),
			known()}, 0.1 + one, 0.6, false},
		{"two totals", 0.5, []string{mine("u1"), known(), total(0.6), mine("u2"), known(), total(0.8)}, 0.3,
			0.8, false},
		{"the conversation is older than the session", 0, []string{mine("u0"), known(), total(3), mine("u1"),
			known(), total(3 + one)}, one, 3 + one, false},
		{"one message in two lines", 0,
			[]string{mine("u1"), strings.ReplaceAll(known(), fmt.Sprint("m", answers), "m"),
				strings.ReplaceAll(known(), fmt.Sprint("m", answers), "m")}, one, 0, false},
		{"no price", 0, []string{mine("u1"), answer("house-model-1"), known()}, one, 0, true},
		{"no price, but a total", 0, []string{mine("u1"), answer("house-model-1"), total(0.25), mine("u2"),
			known()}, 0.25 + one, 0.25, false},
		{"no price after a total", 0, []string{mine("u1"), known(), total(one), mine("u2"),
			answer("house-model-1")}, one, one, true},
		{"no price, and a total that lacks it", 0.5, []string{mine("u1"), answer("house-model-1"), mine("u2"),
			known(), total(one)}, one, one, true},
		{"text that resembles a total", 0,
			[]string{`{"type":"x","content":"\"cost-state\"","totalCostUSD":9}`, total(-1),
				`{"type":"cost-state","totalCostUSD":"9"}`, mine("u1"), known()}, one, 0, false},
	} {
		in := session.TurnInput{SessionID: "s1", Turn: 1, CostSeen: c.seen}
		got, err := findTurn(t.Context(), writeTranscript(t, in, c.lines), in, []string{"u1", "u2"})
		if err != nil || !got.Started || got.Ended || !near(got.Usage.CostUSD, c.want) ||
			!near(got.Counted, c.counted) || got.Usage.Unpriced != c.unpriced {
			t.Errorf("%s: %+v, counted %v, begun %t, ended %t, %v; want %v, %v, %t", c.what, got.Usage,
				got.Counted, got.Started, got.Ended, err, c.want, c.counted, c.unpriced)
		}
	}
}

// TestTranscriptEnd checks that a turn counts as ended only if that is certain.
func TestTranscriptEnd(t *testing.T) {
	user := func(uuid, text string) string {
		return fmt.Sprintf(`{"type":"user","uuid":"%s","message":{"role":"user","content":%q}}`, uuid, text)
	}
	say := func(id, stop, blocks string) string {
		return fmt.Sprintf(`{"type":"assistant","uuid":"%s","message":{"id":"m%[1]s","model":"claude-opus-5-5","stop_reason":%s,"content":[%s]}}`, id, stop, blocks)
	}
	failed := func(stop string) string {
		return `{"type":"assistant","uuid":"f","isApiErrorMessage":true,"message":{"id":"mf","model":"<synthetic>","stop_reason":` + stop + `,"content":[{"type":"text","text":"API Error: 500"}]}}`
	}
	const (
		text   = `{"type":"text","text":"x"}`
		call   = `{"type":"tool_use","id":"t1","name":"Bash","input":{}}`
		other  = `{"type":"tool_use","id":"t2","name":"Bash","input":{}}`
		result = `{"type":"user","uuid":"r","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}`
		ends   = `"end_turn"`
		calls  = `"tool_use"`
	)
	for _, c := range []struct {
		what   string
		lines  []string
		ended  bool
		failed string
	}{
		{"answered", []string{user("u1", "do"), say("a", ends, text)}, true, ""},
		{"nothing yet", []string{user("u0", "do"), say("a", ends, text), user("u1", "do")}, false, ""},
		{"a message that does not look like a prompt", []string{user("u0", "do"), say("a", ends, text),
			user("u1", "<system-reminder>")}, false, ""},
		{"only thinking", []string{user("u1", "do"), say("a", calls, `{"type":"thinking","thinking":"x"}`)},
			false, ""},
		{"a call", []string{user("u1", "do"), say("a", calls, call)}, false, ""},
		{"one of two calls", []string{user("u1", "do"), say("a", calls, call), say("b", calls, other), result,
			say("c", ends, text)}, false, ""},
		{"its result", []string{user("u1", "do"), say("a", calls, call), result}, false, ""},
		{"answered after it", []string{user("u1", "do"), say("a", calls, call), result, say("b", ends, text)},
			true, ""},
		{"no stop reason", []string{user("u1", "do"), say("a", "null", text)}, false, ""},
		{"continued", []string{user("u1", "do"), say("a", ends, text), user("u2", "continue")}, false, ""},
		{"the API failed", []string{user("u1", "do"), failed(`"stop_sequence"`)}, true, "API Error: 500"},
		{"the API failed, older format", []string{user("u1", "do"), failed("null")}, true, "API Error: 500"},
		{"the CLI retried the call", []string{user("u1", "do"),
			`{"type":"system","subtype":"api_error","level":"error"}`}, false, ""},
		{"a subagent answered", []string{user("u1", "do"), say("a", calls, call),
			strings.Replace(say("b", ends, text), "{", `{"isSidechain":true,`, 1)}, false, ""},
	} {
		in := session.TurnInput{SessionID: "s1", Turn: 1}
		got, err := findTurn(t.Context(), writeTranscript(t, in, c.lines), in, []string{"u1", "u2"})
		if err != nil || got.Ended != c.ended || got.Failed != c.failed {
			t.Errorf("%s: %+v, %v", c.what, got, err)
		}
	}
}

// writeTranscript returns a configuration directory with one transcript.
func writeTranscript(t *testing.T, in session.TurnInput, lines []string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "projects", "-x", agentSession(in)+".jsonl")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
		os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestInterruptedAndResumed checks a transcript that Claude Code resumed after an interrupted turn:
// its synthetic answer is not the end of the turn.
func TestInterruptedAndResumed(t *testing.T) {
	in := session.TurnInput{SessionID: "s1", Turn: 1}
	lines := []string{
		`{"type":"queue-operation"}`,
		`{"type":"user","uuid":"u1","message":{"role":"user","content":"do it"}}`,
		`{"type":"assistant","uuid":"a1","message":{"id":"m1","model":"claude","stop_reason":"tool_use","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}],"usage":{"input_tokens":100,"output_tokens":20}}}`,
		`{"type":"user","uuid":"u2","isMeta":true,"message":{"role":"user","content":[{"type":"text","text":"Continue from where you left off."}]}}`,
		`{"type":"assistant","uuid":"a2","message":{"id":"m2","model":"<synthetic>","stop_reason":"stop_sequence","content":[{"type":"text","text":"No response requested."}],"usage":{}},"isApiErrorMessage":false}`,
	}
	m := writeTranscript(t, in, lines)
	got, err := findTurn(t.Context(), m, in, []string{"u1"})
	if err != nil || !got.Started || got.Ended || got.Usage.OutputTokens != 20 || !got.Usage.Unpriced {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := findTurn(t.Context(), m, in, []string{"other"}); err != nil || !got.Exists || got.Started {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := findTurn(t.Context(), m, session.TurnInput{AgentSessionID: "../../x"}, nil); err != nil ||
		got.Exists {
		t.Errorf("%+v, %v", got, err)
	}
	end := `{"type":"user","uuid":"u3","message":{"role":"user","content":"[Request interrupted by user]"}}`
	m = writeTranscript(t, in, append(lines[:3:3], end))
	if got, err := findTurn(t.Context(), m, in, []string{"u1"}); err != nil || !got.Ended ||
		!got.Interrupted {
		t.Errorf("%+v, %v", got, err)
	}
}
