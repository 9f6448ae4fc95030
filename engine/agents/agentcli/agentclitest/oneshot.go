//go:build unix

package agentclitest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// oneShot is the stand-in of Codex, Gemini or OpenCode, which run one turn per process.
type oneShot struct {
	*process
	calls int // of tools
}

// message is a message on standard error, and the exit code after it.
type message struct {
	code int
	text string
}

// oneShots is how the CLIs fail. Failures that are not listed are events in the stream.
var oneShots = map[string]struct {
	noSession message // the session to resume does not exist
	failures  map[string]message
	code      int // after other failures
}{
	"codex": {message{1, "Error: thread/resume failed: no rollout found for thread id %s"}, map[string]message{
		"tooold": {1, "Error: this version of codex is no longer supported, please upgrade"},
		"usage":  {2, "error: unexpected argument '--no-such-option' found"},
	}, 1},
	"gemini": {message{42, "Error resuming session: Invalid session identifier %q."}, map[string]message{
		"notloggedin": {41, "Please set an Auth method in your settings.json or specify GEMINI_API_KEY"},
		"usage":       {1, "Unknown argument: no-such-option"},
		"maxturns":    {53, "Reached max session turns for this session."},
	}, 144},
	"opencode": {message{1, "Session not found: %s"}, map[string]message{
		"usage": {1, "Unknown argument: no-such-option"},
	}, 0},
}

// history counts the earlier turns and calls of a session.
type history struct {
	Turns int `json:"turns"`
	Calls int `json:"calls"`
}

func (p *process) historyPath() string {
	return filepath.Join(p.dir, "sessions-"+p.cli+"-"+filepath.Base(p.session)+".json")
}

func (p *process) save(h history) {
	data, err := json.Marshal(h)
	check(err)
	check(os.WriteFile(p.historyPath(), data, 0o600))
}

func (p *process) oneShot() int {
	cli := oneShots[p.cli]
	flags, words := p.flags()
	resume := cmp.Or(flags["resume"], flags["session"])
	if i := slices.Index(words, "resume"); i >= 0 {
		resume = words[i+1]
	}
	instruction := flags["prompt"] + stdin()
	p.session = cmp.Or(resume, newUUID())
	var h history
	if resume != "" {
		data, err := os.ReadFile(p.historyPath())
		if err != nil || json.Unmarshal(data, &h) != nil {
			return fail(cli.noSession.code, cli.noSession.text, resume)
		}
	}
	p.emit("begin", object{"text": instruction})
	onSignals(func() { os.Exit(130) }, func() {})
	p.journal("turn", Entry{Text: instruction})
	h.Turns++
	p.save(h)
	e := p.steps(&oneShot{process: p}, instruction, h.Turns)
	h.Calls += p.apiCalls
	p.save(h)
	m, listed := cli.failures[e.kind]
	switch {
	case listed:
		return fail(m.code, "%s", m.text)
	case e.kind != "":
		f := failures[e.kind]
		text := cmp.Or(f.text, "it failed: "+e.kind)
		p.emit("failure", object{"text": text, "status": f.fields["api_error_status"], "calls": p.apiCalls})
		return cli.code
	case !e.noResult:
		for range e.extra + 1 {
			p.emit("end", object{"calls": p.apiCalls, "all": h.Calls})
		}
	}
	return max(0, e.code)
}

func (o *oneShot) text(text string)  { o.emit("text", object{"text": text}) }
func (o *oneShot) delta(text string) { o.emit("delta", object{"text": text}) }
func (o *oneShot) subagent()         { o.text("there are no subagents") }

func (o *oneShot) tools(calls ...toolCall) bool {
	for _, t := range calls {
		o.calls++
		id, args := fmt.Sprintf("%s_%d", t.name, o.calls), json.RawMessage(t.args)
		o.journal("tool", Entry{Tool: t.name, ToolID: id, Args: args})
		o.emit("tool", object{
			"id": id, "name": t.name, "args": args, "output": t.output, "failed": t.failed, "denied": t.denied,
		})
	}
	o.emit("tools_end", object{})
	return true
}
