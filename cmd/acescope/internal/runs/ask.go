package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/ace/calls"
	"acescope/engine/learning/model"
	"acescope/engine/trace"
	"acescope/engine/trace/adapter"
	"acescope/sources/histories"
)

type askFlags struct {
	callFilter
	request         int
	provider, model string
}

func AskCommand(a *cli.App) *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use:   "ask RUN --phase PHASE",
		Short: "Send a recorded request to a model again, the same or another one, and show how the answer differs",
		Long: "Send a request of a run to a model again, with the messages and parameters on record, and compare the answer\n" +
			"with the recorded one. Nothing is merged: the run and its playbook stay as they are. Tools are offered as\n" +
			"they were, but the tool calls of the answer are only shown.\n\n" +
			"Of an agent of a framework, which --phase names, the history has the request: its texts, tool calls, results\n" +
			"and tools are sent, but no images or files, and no parameters such as the temperature.",
		Example: "acescope ask finance-1-e1-0042 --phase curator\n" +
			"acescope ask finance-1-e1-0042 --phase generator --provider local --model qwen3 --json | jq .cost_usd",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return ask(a, cmd.Context(), args[0], f) },
	}
	f.addFlags(cmd)
	cmd.Flags().IntVar(&f.request, "request", 0,
		"number of the request in the phase, from 1 (default the last)")
	cmd.Flags().StringVar(&f.provider, "provider", "", "provider to ask (default that of the request)")
	cmd.Flags().StringVar(&f.model, "model", "",
		"model to ask (default that of the request, or of --provider)")
	_ = cmd.MarkFlagRequired("phase")
	return cmd
}

// AskLine is a request that was sent again.
type AskLine struct {
	WorkflowID string             `json:"workflow_id"`
	Phase      string             `json:"phase"`
	Number     int                `json:"number"`
	Recorded   ace.ModelCall      `json:"recorded"`
	Provider   string             `json:"provider"`
	Model      string             `json:"model"`
	Response   *ace.ModelResponse `json:"response"`
	DurationMS float64            `json:"duration_ms"`
	CostUSD    float64            `json:"cost_usd"`
	Equal      bool               `json:"equal"` // the answers
	// Call is the request of an agent of a framework as the history has it.
	Call *trace.Call `json:"recorded_call,omitempty"`
}

func ask(a *cli.App, ctx context.Context, name string, f askFlags) error {
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	list, h, err := readPrompts(a, ctx, e, name, f.callFilter)
	if err != nil {
		return err
	}
	step := list[len(list)-1]
	number := cmp.Or(f.request, len(step.calls))
	if number < 1 || number > len(step.calls) {
		return cli.NotFound("%s of %s has %s on record, not a request %d", step.Step, name,
			ace.Count(len(step.calls), "request"), number)
	}
	recorded := step.calls[number-1]
	title := calls.Title(recorded)
	var call *trace.Call
	if step.agents != nil {
		call = step.agents[number-1]
		title = agentTitle(call)
		if recorded, err = wholeRequest(h.Events, call, recorded); err != nil {
			return cli.UsageError("request %d of %s cannot be sent again: %w", number, step.Step, err)
		}
	}
	p, sender, err := findSender(a, cmp.Or(f.provider, recorded.Provider))
	if err != nil {
		return err
	}
	again := recorded.Request
	switch {
	case f.model != "":
		again.Model = f.model
	case f.provider != "" && f.provider != recorded.Provider:
		again.Model = p.DefaultModel()
	}
	began := time.Now()
	answer, err := sender.Send(ctx, again)
	if err != nil {
		return err
	}
	line := AskLine{WorkflowID: name, Phase: step.Step, Number: number, Recorded: recorded,
		Provider: p.Name(), Model: again.Model, Call: call, Response: &answer, CostUSD: answer.Usage.CostUSD,
		DurationMS: float64(time.Since(began).Microseconds()) / 1000}
	before := "(no answer: " + cmp.Or(recorded.Error, "the request has not ended") + ")\n"
	if recorded.Response != nil {
		before = calls.Response(*recorded.Response)
	}
	after := calls.Response(answer)
	if call != nil {
		before = callNumbers(recorded).Replace(before)
		after = callNumbers(ace.ModelCall{Response: &answer}).Replace(after)
	}
	line.Equal = before == after
	out := cli.NewLines(a)
	if a.JSON {
		out.Line(line, "")
		return out.Flush()
	}
	out.Printf("recorded: %s", title)
	out.Printf("again:    %s", calls.Title(ace.ModelCall{Provider: p.Name(), StartedAt: began,
		DurationMS: line.DurationMS, Request: again, Response: &answer}))
	if line.Equal {
		out.Printf("The answers are equal.")
		printLines(out, strings.TrimPrefix(after, "\n"))
	} else {
		printLines(out, udiff.Unified("recorded", "again", before, after))
	}
	return out.Flush()
}

// wholeRequest returns a request of an agent with its whole conversation and the tools that were offered.
func wholeRequest(events []*historypb.HistoryEvent, c *trace.Call, m ace.ModelCall) (ace.ModelCall, error) {
	i := slices.IndexFunc(events, func(e *historypb.HistoryEvent) bool { return e.GetEventId() == c.Event })
	if i < 0 || c.Asked == nil {
		return m, errors.New(cmp.Or(c.Problem, notRecorded(c)))
	}
	whole, ok := adapter.RequestAt(events[i])
	if !ok || len(whole.Messages) == 0 {
		return m, errors.New(notRecorded(c))
	}
	m.Request.System = nil
	if whole.System != "" {
		m.Request.System = []ace.ModelText{{Text: whole.System}}
	}
	m.Request.Messages, m.Request.Tools = histories.ModelMessages(whole.Messages), whole.Tools
	for _, message := range m.Request.Messages {
		for _, call := range message.Calls {
			if call.ID == "" {
				return m, fmt.Errorf("its call of %s has no ID", call.Name)
			}
		}
	}
	return m, nil
}

// findSender returns a provider that can send recorded requests.
func findSender(a *cli.App, name string) (model.Provider, model.Sender, error) {
	var names []string
	for _, p := range a.Providers() {
		sender, ok := p.(model.Sender)
		if ok {
			names = append(names, p.Name())
		}
		if ok && p.Name() == name {
			return p, sender, nil
		}
	}
	if name == "" {
		return nil, nil, cli.UsageError("the history does not name the provider of the request: choose one "+
			"with --provider; these can send it: %s", strings.Join(names, ", "))
	}
	return nil, nil, cli.UsageError("provider %q cannot send a recorded request; these can: %s", name,
		strings.Join(names, ", "))
}
