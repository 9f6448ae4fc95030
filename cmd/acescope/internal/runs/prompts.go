package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/ace/calls"
	"acescope/engine/store/artifact"
	"acescope/engine/trace"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

func PromptsCommand(a *cli.App) *cobra.Command {
	var f callFilter
	cmd := &cobra.Command{
		Use:   "prompts RUN [RUN]",
		Short: "Show the requests that a run sent to its models and their answers, or compare those of two runs",
		Long: "Show the requests of a run to its models (system prompt, messages, tools, parameters) and their answers, as\n" +
			"they were recorded, without secrets. With two runs, print how the requests and answers of the second differ\n" +
			"from those of the first, step by step.\n\n" +
			"Of agents of frameworks the history has the requests, as their workers wrote them. Each is shown with the\n" +
			"messages since the answer before, and texts of more than 16 KB are cut.",
		Example: "acescope prompts finance-1-e1-0042 --phase curator\n" +
			"acescope prompts finance-1-e1-0042 finance-1-e2-0042\n" +
			"acescope prompts finance-1 --item 17\n" +
			"acescope prompts finance-1-e1-0042 --json | jq -r 'select(.phase == \"reflector\").response.text.text'",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return showPrompts(a, cmd.Context(), args, f) },
	}
	f.addFlags(cmd)
	return cmd
}

// callFilter selects steps of a run, or an item of the evaluations of an experiment.
type callFilter struct {
	phase, run string
	item       int
}

func (f *callFilter) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.phase, "phase", "", "only this phase, this step of a flow, or this agent")
	cmd.Flags().StringVar(&f.run, "run", "", "run ID, if the workflow has several runs")
	cmd.Flags().IntVar(&f.item, "item", 0,
		"of an experiment: the item of its evaluations with this number, from 1")
}

// PromptLine is one request to a model.
type PromptLine struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	Phase      string `json:"phase"` // or the name of the step of a flow
	EventID    int64  `json:"event_id"`
	Number     int    `json:"number"` // in the phase, from 1
	ace.ModelCall
}

// AgentRequestLine is one request of an agent of a framework to a model.
type AgentRequestLine struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	Number     int    `json:"number"` // of the agent, from 1
	*trace.Call
}

// stepPrompts are the requests of a step, or of an agent of a framework.
type stepPrompts struct {
	histories.StepCalls
	calls  []ace.ModelCall
	agents []*trace.Call // each of the calls, of an agent
}

func (s *stepPrompts) title() string {
	if s.Event == 0 { // of an evaluation or an agent
		return s.Step
	}
	return fmt.Sprintf("%s, event %d", s.Step, s.Event)
}

// readPrompts reads the requests of a run. There is at least one.
func readPrompts(
	a *cli.App, ctx context.Context, e *engine.Engine, name string, f callFilter,
) (list []stepPrompts, h cli.RunHistory, err error) {
	h, err = cli.ReadRun(ctx, e, name, f.run)
	if err != nil {
		return nil, h, err
	}
	kind := h.Events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()
	logs := histories.CallLogs(h.Events)
	if kind == ace.ExperimentWorkflow {
		if logs, err = evaluationLogs(ctx, e, name, f.item); err != nil {
			return nil, h, err
		}
	}
	var steps []string
	for _, step := range logs {
		steps = append(steps, step.Step)
		if f.phase != "" && f.phase != step.Step {
			continue
		}
		read, err := calls.Read(ctx, e.Artifacts.Get, step.Log)
		if errors.Is(err, artifact.ErrNotFound) {
			err = cli.NotFound("%w", err)
		}
		if err != nil {
			return nil, h, fmt.Errorf("%s: %w", step.Step, err)
		}
		if step.Log.Omitted > 0 {
			cli.Warn(a, "%s: the last %s are not on record, because the record would be larger than %d MB",
				step.Step, ace.Count(step.Log.Omitted, "request"), ace.MaxCallLog>>20)
		}
		list = append(list, stepPrompts{StepCalls: step, calls: read})
	}
	other := runs.TypeOf(kind) == runs.OtherType
	if other {
		agents, dropped := histories.RequestsOfAgents(h.Events)
		if dropped > 0 {
			cli.Warn(a, "the oldest %s of agents are left out", ace.Count(dropped, "call"))
		}
		for _, agent := range agents {
			steps = append(steps, agent.Agent)
			if f.phase == "" || f.phase == agent.Agent {
				list = append(list, agentPrompts(agent))
			}
		}
	}
	switch {
	case len(steps) == 0 && other:
		return nil, h, cli.NotFound("%s has no requests to a model that acescope recorded, and no adapter "+
			"understands calls of workflows of type %s: \"acescope timeline %s --events\" lists the activities",
			name, kind, name)
	case len(steps) == 0:
		return nil, h, cli.NotFound(
			"%s has no requests to a model on record: no step asked a model server, or "+
				"record_calls is off on its worker", name)
	case len(list) == 0:
		slices.Sort(steps)
		return nil, h, cli.NotFound("%s has no requests of %q on record; it has those of %s", name, f.phase,
			strings.Join(slices.Compact(steps), ", "))
	}
	return list, h, nil
}

func agentPrompts(agent histories.AgentCalls) stepPrompts {
	s := stepPrompts{StepCalls: histories.StepCalls{Step: agent.Agent}, agents: agent.Calls}
	for _, c := range agent.Calls {
		s.calls = append(s.calls, histories.ModelCallOf(c))
	}
	return s
}

// text formats the requests of a step.
func (s *stepPrompts) text() string {
	if s.agents == nil {
		return calls.Text(s.calls)
	}
	var b strings.Builder
	for i, c := range s.agents {
		fmt.Fprintf(&b, "request %d of %d: %s\n", i+1, len(s.agents), agentTitle(c))
		if len(c.Tools) > 0 {
			fmt.Fprintf(&b, "tools: %s\n", strings.Join(c.Tools, ", "))
		}
		if c.Asked == nil && c.Problem == "" {
			fmt.Fprintf(&b, "\n--- note\n%s\n", notRecorded(c))
		}
		b.WriteString(calls.Request(s.calls[i].Request))
		if r := s.calls[i].Response; r != nil {
			b.WriteString(calls.Response(*r))
		}
		for _, part := range [][2]string{{"error", c.Error}, {"not understood", c.Problem}} {
			if part[1] != "" {
				fmt.Fprintf(&b, "\n--- %s\n%s\n", part[0], part[1])
			}
		}
		b.WriteString("\n\n")
	}
	return strings.TrimSuffix(b.String(), "\n\n")
}

// notRecorded says why the messages of a request are unknown.
func notRecorded(c *trace.Call) string {
	if c.Where == trace.InLocalActivity {
		return "the input of a local activity is not recorded"
	}
	return "the history does not record the messages of this request"
}

// agentTitle returns what a request of an agent took in one line.
func agentTitle(c *trace.Call) string {
	words := []string{cmp.Or(strings.TrimSpace(c.Provider+" "+c.ModelName()), "unnamed model"),
		fmt.Sprintf("event %d", c.Event)}
	if c.Answered != "" && c.Answered != c.ModelName() {
		words[0] += " (answered by " + c.Answered + ")"
	}
	if at := cmp.Or(c.Started, c.Began); !at.IsZero() {
		words = append(words, at.Local().Format(time.DateTime))
		if !c.Over.IsZero() {
			words = append(words, c.Over.Sub(at).Round(time.Millisecond).String())
		}
	}
	if c.Attempts > 1 {
		words = append(words, fmt.Sprintf("attempt %d", c.Attempts))
	}
	if u := c.Usage; u != nil {
		words = append(words, ace.Count(u.Tokens()-u.Output, "token")+" in", ace.Number(u.Output)+" out")
	} else if c.Outcome != trace.Failed {
		words = append(words, "tokens not recorded")
	}
	if c.CostUSD != nil {
		words = append(words, ace.Dollars(*c.CostUSD))
	}
	if c.Finish != "" {
		words = append(words, "finish: "+c.Finish)
	}
	if c.Outcome != trace.OK {
		words = append(words, string(c.Outcome))
	}
	return strings.Join(words, ", ")
}

// notRead says that acescope cannot tell which calls a run of a type that the contract does not have has
// made.
func notRead(calls, kind, name string) string {
	return fmt.Sprintf("it does not read the %s calls of workflows of type %s: "+
		"\"acescope timeline %s --events\" lists the activities", calls, kind, name)
}

// evaluationLogs returns the records of the answers to an item by the evaluations of an experiment.
func evaluationLogs(ctx context.Context, e *engine.Engine, name string, item int) (logs []histories.StepCalls,
	err error) {
	g, err := ReadEvaluations(ctx, e, name)
	if err != nil {
		return nil, err
	}
	recorded := map[int]bool{}
	for i, v := range g.Versions {
		for _, answer := range v.Items {
			if answer.Calls == nil {
				continue
			}
			recorded[answer.Index+1] = true
			if answer.Index+1 == item {
				logs = append(logs, histories.StepCalls{Step: fmt.Sprintf("evaluation %d", i),
					Log: *answer.Calls})
			}
		}
	}
	if item == 0 && len(recorded) > 0 {
		numbers := slices.Sorted(maps.Keys(recorded))
		return nil, cli.UsageError("%s has requests on record of %s, from %d to %d: name one with "+
			"--item; those of its tasks are with the tasks", name,
			ace.Count(len(numbers), "evaluation item"), numbers[0], numbers[len(numbers)-1])
	}
	return logs, nil
}

func showPrompts(a *cli.App, ctx context.Context, names []string, f callFilter) error {
	if len(names) == 2 && a.JSON {
		return cli.UsageError("a comparison is text: omit --json, or print each run with --json")
	}
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	first, h, err := readPrompts(a, ctx, e, names[0], f)
	if err != nil {
		return err
	}
	out := cli.NewLines(a)
	if len(names) == 2 {
		second, _, err := readPrompts(a, ctx, e, names[1], f)
		if err != nil {
			return err
		}
		differ := comparePrompts(out, names, first, second)
		if err := out.Flush(); err != nil || differ == 0 {
			return err
		}
		return cli.Diverged("the requests or answers of %s and %s differ in %s", names[0], names[1],
			ace.Count(differ, "step"))
	}
	for _, step := range first {
		if !a.JSON {
			out.Printf("=== %s", step.title())
			printLines(out, step.text())
		}
		runID := cli.RunIDOf(h.Events)
		for i, c := range step.calls {
			if step.agents != nil {
				out.Line(AgentRequestLine{h.Source, runID, i + 1, step.agents[i]}, "")
			} else {
				out.Line(PromptLine{h.Source, runID, step.Step, step.Event, i + 1, c}, "")
			}
		}
	}
	return out.Flush()
}

func printLines(out *cli.Lines, text string) {
	for line := range strings.Lines(text) {
		out.Printf("%s", strings.TrimSuffix(line, "\n"))
	}
	out.Printf("")
}

// comparePrompts writes what differs in the requests and answers of two runs, and returns the number of steps
// that differ.
func comparePrompts(out *cli.Lines, names []string, first, second []stepPrompts) (differ int) {
	var steps []string
	text := [2]map[string]string{{}, {}}
	for side, list := range [][]stepPrompts{first, second} {
		var all []ace.ModelCall
		for _, step := range list {
			if step.agents != nil {
				all = append(all, step.calls...)
			}
		}
		numbers := callNumbers(all...)
		for _, step := range list {
			if !slices.Contains(steps, step.Step) {
				steps = append(steps, step.Step)
			}
			text[side][step.Step] += numbers.Replace(exchange(step.calls))
		}
	}
	for _, step := range steps {
		a, b := text[0][step], text[1][step]
		if a == b {
			out.Printf("=== %s: equal requests and answers", step)
			continue
		}
		out.Printf("=== %s", step)
		printLines(out, udiff.Unified(names[0], names[1], a, b))
		differ++
	}
	return differ
}

// callNumbers replaces the IDs of the tool calls that answers ask for by numbers: between any two runs of an
// agent, the IDs differ.
func callNumbers(list ...ace.ModelCall) *strings.Replacer {
	var pairs []string
	for _, c := range list {
		if c.Response == nil {
			continue
		}
		for _, call := range c.Response.Calls {
			if call.ID != "" {
				pairs = append(pairs, call.ID, fmt.Sprintf("#%d", len(pairs)/2+1))
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

// exchange formats requests and answers without what differs between equal ones.
func exchange(list []ace.ModelCall) string {
	var b strings.Builder
	for i, c := range list {
		model := strings.TrimSpace(c.Provider + " " + c.Request.Model)
		fmt.Fprintf(&b, "request %d: %s\n%s", i+1, model, calls.Request(c.Request))
		if c.Response != nil {
			b.WriteString(calls.Response(*c.Response))
		} else {
			b.WriteString("\n--- error\n" + c.Error + "\n")
		}
	}
	return b.String()
}
