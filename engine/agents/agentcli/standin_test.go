package agentcli_test

import (
	"bytes"
	"os/exec"
	"testing"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/agentcli/agentclitest"
)

// callResult is the outcome of a call of a stand-in.
type callResult struct {
	agentcli.Outcome
	events []agentcli.Event
	stderr string
}

// call runs a stand-in with the command of its adapter.
func call(t *testing.T, a *agentclitest.Agent, cli agentcli.CLI, c agentcli.Call) callResult {
	t.Helper()
	adapter, err := agentcli.For(cli)
	if err != nil {
		t.Fatal(err)
	}
	c.Binary = a.Binary()
	if c.WorkingDir == "" {
		c.WorkingDir = a.Dir()
	}
	how, err := adapter.Command(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), how.Argv[0], how.Argv[1:]...)
	cmd.Dir, cmd.Env = how.Dir, append(cmd.Environ(), how.Env...)
	cmd.Stdin = bytes.NewReader(how.Input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	runErr := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(runErr)
	}
	var judge agentcli.Judge
	var events []agentcli.Event
	err = agentcli.NewReader(&out, cli).All(func(e agentcli.Event) error {
		e.Raw = nil
		events = append(events, e)
		judge.Add(e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	exit := agentcli.Exit{Code: cmd.ProcessState.ExitCode()}
	if exit.Code < 0 {
		exit.Signal = "killed"
	}
	return callResult{judge.Outcome(exit, errs.String()), events, errs.String()}
}

// TestOutcomes checks the class of every scenario of every CLI.
func TestOutcomes(t *testing.T) {
	type want struct {
		class agentcli.Class
		retry bool
	}
	ok := want{agentcli.ClassOK, false}
	same := func(w want) map[agentcli.CLI]want {
		return map[agentcli.CLI]want{agentcli.Claude: w, agentcli.Codex: w, agentcli.Gemini: w, agentcli.OpenCode: w}
	}
	for step, wants := range map[string]map[agentcli.CLI]want{
		"say hello":            same(ok),
		"tools":                same(ok),
		"parallel":             same(ok),
		"badtool":              same(ok),
		"garbage; say well":    same(ok),
		"unknown; say well":    same(ok),
		"longline 9; say well": same(ok),
		"slow 3 1":             same(ok),
		"tworesults":           same(ok),
		"say well; exit 3": {
			agentcli.Claude: ok, agentcli.Codex: ok, agentcli.Gemini: ok,
			agentcli.OpenCode: {agentcli.ClassNoResult, true}, // only its exit code reports the failure
		},
		"partial":     same(want{agentcli.ClassNoResult, true}),
		"noresult 0":  same(want{agentcli.ClassNoResult, true}),
		"kill":        same(want{agentcli.ClassKilled, true}),
		"notloggedin": same(want{agentcli.ClassNotLoggedIn, false}),
		"overloaded":  same(want{agentcli.ClassOverloaded, true}),
		"ratelimit":   same(want{agentcli.ClassRateLimited, true}),
		"apierror":    same(want{agentcli.ClassAPIError, false}),
		"servererror": same(want{agentcli.ClassAPIError, true}),
		"usage":       same(want{agentcli.ClassUsage, false}),
		"error":       same(want{agentcli.ClassFailed, false}),
		"tooold":      {agentcli.Claude: {agentcli.ClassTooOld, false}, agentcli.Codex: {agentcli.ClassTooOld, false}},
		"denied":      {agentcli.Claude: {agentcli.ClassDenied, false}, agentcli.Codex: {agentcli.ClassDenied, false}},
		"refusal":     {agentcli.Claude: {agentcli.ClassRefusal, false}},
		"maxturns":    {agentcli.Claude: {agentcli.ClassMaxTurns, false}, agentcli.Gemini: {agentcli.ClassMaxTurns, false}},
		"budget":      {agentcli.Claude: {agentcli.ClassBudget, false}},
		"maxtokens":   {agentcli.Claude: {agentcli.ClassMaxTokens, false}},
	} {
		for cli, w := range wants {
			t.Run(step+"/"+string(cli), func(t *testing.T) {
				t.Parallel()
				a := agentclitest.New(t, string(cli))
				got := call(t, a, cli, agentcli.Call{Instruction: "SCENARIO: " + step})
				if got.Class != w.class || got.Retry != w.retry || got.OK != w.class.OK() {
					t.Errorf("class %s, retry %v, ok %v; want %v\n%s\n%s", got.Class, got.Retry, got.OK, w, got.Sentence, got.stderr)
				}
				if len(got.Sentence) < 10 || len(got.Sentence) > 600 {
					t.Errorf("sentence %q", got.Sentence)
				}
				t.Log(got.Sentence)
			})
		}
	}
}
