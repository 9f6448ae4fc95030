//go:build unix

package agentclitest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"
)

// oneShot is the stand-in of Codex, Gemini or OpenCode, which run one turn per process.
type oneShot struct {
	*process
	tool int // number of the last call of a tool
}

// history counts the turns and calls of a session.
type history struct {
	Turns int `json:"turns"`
	Calls int `json:"calls"`
}

func (p *process) oneShot() int {
	resume := cmp.Or(p.flags["resume"], p.flags["session"])
	if i := slices.Index(p.words, "resume"); i >= 0 {
		resume = p.words[i+1]
	}
	p.session = cmp.Or(resume, uuid.NewString())
	stdin, _ := io.ReadAll(os.Stdin)
	instruction := p.flags["prompt"] + string(stdin)
	path := filepath.Join(p.dir, "sessions-"+p.cli+"-"+p.session+".json")
	var h history
	if resume != "" {
		data, err := os.ReadFile(path)
		if err != nil || json.Unmarshal(data, &h) != nil {
			p.emit("nosession", object{})
			return exitCode
		}
	}
	save := func() { check(os.WriteFile(path, []byte(toJSON(h)), 0o600)) }
	p.emit("begin", object{"text": instruction})
	p.handleSignals(func() { os.Exit(130) }, func() {})
	p.journal("turn", Entry{Text: instruction})
	h.Turns++
	save()
	e := p.steps(&oneShot{process: p}, instruction, h.Turns)
	h.Calls += p.apiCalls
	save()
	switch {
	case e.kind != "":
		p.emit("fail", object{"kind": e.kind, "failure": failures[e.kind], "calls": p.apiCalls})
		return exitCode
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
		o.tool++
		id, args := fmt.Sprintf("%s_%d", t.name, o.tool), json.RawMessage(t.args)
		o.journal("tool", Entry{Tool: t.name, ToolID: id, Args: args})
		o.emit("tool", object{
			"id": id, "name": t.name, "args": args, "output": t.output, "failed": t.failed,
			"denied": t.denied,
		})
	}
	o.emit("tools_end", object{})
	return true
}
