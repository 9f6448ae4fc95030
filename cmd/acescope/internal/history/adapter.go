package history

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/trace/adapter"
)

const adapterTryHelp = `Shows for each type of activity of a run which requests to models and calls of tools an
adapter understood, with the tokens, and what not. For types that no adapter knows it shows the paths in the payloads
that look like the model, messages, answer, tokens or tools, proposes an adapter for the configuration, and tries that
adapter on the same run.

RUN is a task or a workflow ID; FILE is an exported history, FILE#2 the second one of a file, - standard input.`

// AdapterCommand is the group of commands about adapters.
func AdapterCommand(a *cli.App) *cobra.Command {
	var runID string
	try := &cobra.Command{
		Use:     "try RUN|FILE",
		Short:   "Show what adapters understand of a run's activities, and propose adapters for the rest",
		Long:    adapterTryHelp,
		Example: "acescope adapter try desk-42\nacescope adapter try history.json --json | jq -r .proposal",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return adapterTry(a, cmd.Context(), args[0], runID)
		},
	}
	try.Flags().StringVar(&runID, "run", "", "run ID, if the workflow has several runs")
	return cli.Group(&cobra.Command{Use: "adapter",
		Short: "Read the agents of any worker: which activities call models and tools"}, try)
}

// AdapterLine is what adapters understand of a type of activity.
type AdapterLine struct {
	Activity  string          `json:"activity"`
	Scheduled int             `json:"scheduled"`
	Framework string          `json:"framework,omitempty"`
	Requests  int             `json:"requests"`
	ToolCalls int             `json:"tool_calls"`
	Tokens    int64           `json:"tokens"`
	Problems  []string        `json:"not_understood,omitempty"`
	Found     []adapter.Found `json:"found,omitempty"`
	Proposal  string          `json:"proposal,omitempty"`
	Tried     *AdapterTried   `json:"tried,omitempty"`
}

// AdapterTried is what the proposed adapter understands of the run that it was proposed for.
type AdapterTried struct {
	Requests  int      `json:"requests"`
	ToolCalls int      `json:"tool_calls"`
	Tokens    int64    `json:"tokens"`
	Problems  []string `json:"not_understood,omitempty"`
}

func adapterTry(a *cli.App, ctx context.Context, name, runID string) error {
	h, err := cli.HistoryOf(a, ctx, name, runID)
	if err != nil {
		return err
	}
	studies := adapter.Studies(h.Events)
	var proposed []adapter.Adapter
	for _, s := range studies {
		if s.Proposal != nil {
			proposed = append(proposed, *s.Proposal)
		}
	}
	var tried []adapter.Study
	adapter.With(proposed, func() { tried = adapter.Studies(h.Events) })
	out := cli.NewLines(a)
	for i, s := range studies {
		line := AdapterLine{Activity: s.Activity, Scheduled: s.Scheduled, Framework: s.Framework, Requests: s.Chats,
			ToolCalls: s.Tools, Tokens: s.Tokens, Problems: s.Problems, Found: s.Found}
		if s.Proposal != nil {
			line.Proposal = s.Proposal.TOML()
		}
		if t := tried[i]; s.Proposal != nil || t.Chats+t.Tools > s.Chats+s.Tools { // a tool that answers ask for
			line.Tried = &AdapterTried{t.Chats, t.Tools, t.Tokens, t.Problems}
		}
		if a.JSON {
			out.Put(line)
			continue
		}
		printAdapterLine(out, line)
	}
	if len(studies) == 0 && !a.JSON {
		out.Printf("%s has no activities", name)
	}
	return out.Flush()
}

func printAdapterLine(out *cli.Lines, l AdapterLine) {
	understood := fmt.Sprintf("%d of %s understood", l.Requests+l.ToolCalls, ace.Count(l.Scheduled, "call"))
	switch {
	case l.Requests > 0:
		out.Printf("%s: %s by %s, %s tokens", l.Activity, understood, l.Framework, ace.Number(l.Tokens))
	case l.ToolCalls > 0:
		out.Printf("%s: %s as a tool", l.Activity, understood)
	case len(l.Problems) == 0:
		out.Printf("%s: no adapter knows it (%s)", l.Activity, ace.Count(l.Scheduled, "call"))
	default:
		out.Printf("%s: %s", l.Activity, understood)
	}
	for _, p := range l.Problems {
		out.Printf("  not understood: %s", p)
	}
	for _, f := range l.Found {
		out.Printf("  looks like %-18s %s = %s", f.Key, f.Path, f.Value)
	}
	if l.Tried == nil {
		return
	}
	if l.Proposal != "" {
		out.Printf("Proposal for the configuration:")
	}
	for line := range strings.Lines(l.Proposal) {
		out.Printf("%s", strings.TrimSuffix(line, "\n"))
	}
	tokens := ""
	if l.Tried.Requests > 0 {
		tokens = ", " + ace.Number(l.Tried.Tokens) + " tokens"
	}
	out.Printf("With what is proposed: %d of %s understood%s", l.Tried.Requests+l.Tried.ToolCalls,
		ace.Count(l.Scheduled, "call"), tokens)
	for _, p := range l.Tried.Problems {
		out.Printf("  not understood: %s", p)
	}
	out.Printf("")
}
