package runs

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/sources/flows"
	"acescope/tui/text"
)

// flow writes the steps of a flow as a tree, then its outputs. taskID names the run in commands.
func (p *page) flow(taskID string, v *flows.View) {
	p.heading("Flow  %s  digest %.12s", v.Name, v.Digest)
	if v.ChainRun > 0 {
		p.field("chain", "run %d, and run 1 began %s; steps, operations and usage are those since run 1",
			v.ChainRun, v.ChainStart.Local().Format(time.DateTime))
		p.field("", "\"acescope lineage %s --json\" lists the runs, \"acescope show %[1]s --run RUN_ID\" shows one", taskID)
	}
	p.text("directory", v.Dir)
	p.text("started by", v.By)
	p.text("inputs", string(v.Inputs))
	p.text("unread", v.Problem)
	ended, all := v.Counts()
	p.heading("Steps  %d of %d ended, %s", ended, all, ace.Count(v.Operations, "operation"))
	for i := range v.Steps {
		p.flowStep(&v.Steps[i])
	}
	if v.Dropped > 0 {
		p.Printf("  %s no longer listed; see \"acescope show %s --operations\"",
			ace.Count(v.Dropped, "older step"), taskID)
	}
	if v.Usage != (ace.Usage{}) {
		since := ""
		if v.ChainRun > 0 {
			since = "  since run 1 of the chain"
		}
		p.heading("Usage%s", since)
		p.field("tokens", "%s in, %s out", ace.Number(v.Usage.InputTokens), ace.Number(v.Usage.OutputTokens))
		p.field("cost", "%s", v.Usage.Cost())
	}
	if len(v.Outputs) == 0 {
		return
	}
	p.heading("Outputs")
	for _, name := range slices.Sorted(maps.Keys(v.Outputs)) {
		data, _ := json.Marshal(v.Outputs[name])
		p.text(name, string(data))
	}
}

func (p *page) flowStep(s *flows.Step) {
	if s.Earlier > 0 {
		p.Printf("  %s%s, not listed", text.Spaces(10+2*s.Depth), ace.Count(s.Earlier, "earlier iteration"))
		return
	}
	status := string(s.Status)
	if s.Waits() {
		status = "approval"
	}
	took := ""
	if !s.Start.IsZero() && !s.End.IsZero() {
		took = text.Duration(s.End.Sub(s.Start))
	}
	name := text.Fit(strings.Repeat("  ", s.Depth)+cli.SafeText(s.Label), 32, "~")
	line := "  " + text.Fit(cmp.Or(status, "-"), 10, "~") + name + " " + text.Fit(s.Kind, 10, "~") +
		text.FitLeft(took, 8, "")
	for _, more := range []string{s.Progress(), stepCost(s), stepAttempts(s), s.Name,
		cmp.Or(s.Error, s.Detail)} {
		if more != "" {
			line += "  " + more
		}
	}
	p.Printf("%s", line)
	if s.Waits() {
		p.Printf("  decide with \"acescope flow approve\" or \"acescope flow reject\", and --step %s if several wait", s.Path)
	}
}

func stepCost(s *flows.Step) string {
	if s.Usage == nil || *s.Usage == (ace.Usage{}) {
		return ""
	}
	return s.Usage.Cost()
}

func stepAttempts(s *flows.Step) string {
	if s.Op == nil || s.Op.Attempt < 2 {
		return ""
	}
	return ace.Count(s.Op.Attempt, "attempt")
}
