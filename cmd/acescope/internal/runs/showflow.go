package runs

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/sources/flows"
	"acescope/tui/text"
)

// flow writes the steps of a flow as a tree, then its outputs.
func (p *page) flow(v *flows.View) {
	p.heading("Flow  %s  digest %.12s", v.Name, v.Digest)
	p.text("directory", v.Dir)
	p.text("started by", v.By)
	p.text("inputs", string(v.Inputs))
	p.text("unread", v.Problem)
	ended, all := v.Counts()
	p.heading("Steps  %d of %d ended, %s", ended, all, cli.Numbered(int64(v.Operations), "operation"))
	for i := range v.Steps {
		p.flowStep(&v.Steps[i])
	}
	if v.Dropped > 0 {
		p.Printf("  %d older steps are no longer listed; the timeline has them", v.Dropped)
	}
	if v.Usage != (ace.Usage{}) {
		p.heading("Usage")
		p.field("tokens", "%s in, %s out", text.Count(v.Usage.InputTokens), text.Count(v.Usage.OutputTokens))
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
	return cli.Numbered(int64(s.Op.Attempt), "attempt")
}
