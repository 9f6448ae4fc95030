package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/kind"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/detail"
	"acescope/tui/text"
)

// AnswerLine is the answer to a query.
type AnswerLine struct {
	WorkflowID string          `json:"workflow_id"`
	RunID      string          `json:"run_id"`
	Query      string          `json:"query"`
	Answer     json.RawMessage `json:"answer"`
}

func QueryCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "query RUN [NAME [JSON|-]]",
		Short: "Ask the worker of a run a query, with a JSON argument; without a name list what it offers",
		Long: "Ask the worker of a run a query and print the answer. The argument is JSON; - reads it from standard\n" +
			"input. Without a name it lists the queries, updates and signals that the workflow offers.",
		Example: "acescope query order-7\nacescope query order-7 items '\"open\"' --json | jq .answer",
		Args:    cobra.RangeArgs(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			argument, err := jsonArgument(cmd, args[min(2, len(args)):])
			if err != nil {
				return err
			}
			return query(a, cmd.Context(), args, argument)
		},
	}
}

func query(a *cli.App, ctx context.Context, args []string, argument string) error {
	e, exec, err := cli.OpenRun(a, ctx, args[0], "")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	id, runID := exec.GetWorkflowId(), exec.GetRunId()
	if len(args) == 1 {
		offers, err := detail.ReadOffers(ctx, e.Client, id, runID)
		if err != nil {
			return queryError(id, "what it offers", err)
		}
		out := cli.NewLines(a)
		for _, o := range offers.List {
			out.Line(o, "%-6s  %s  %s", o.Kind, o.Name, o.Description)
		}
		return out.Flush()
	}
	var arguments []any
	if argument != "" {
		arguments = append(arguments, json.RawMessage(argument))
	}
	v, err := e.Client.QueryWorkflow(ctx, id, runID, args[1], arguments...)
	if err != nil {
		return queryError(id, args[1], err)
	}
	var raw converter.RawValue
	answer := json.RawMessage("null")
	if v.HasValue() {
		if err := v.Get(&raw); err != nil {
			return fmt.Errorf("the answer of %s to %s cannot be read: %w", id, args[1], err)
		}
		payloads := history.PayloadList(raw.Payload())
		var ok bool
		if answer, ok = history.Values(payloads); !ok {
			return fmt.Errorf("the answer of %s to %s cannot be read: %s", id, args[1], history.Unread(payloads))
		}
	}
	out := cli.NewLines(a)
	out.Line(AnswerLine{id, runID, args[1], answer}, "%s", text.Indented(kind.Plain(answer)))
	return out.Flush()
}

// queryError says why a query of a run has no answer.
func queryError(id, query string, err error) error {
	var failed *serviceerror.QueryFailed
	var idle *serviceerror.FailedPrecondition // nothing polls the task queue
	var late *serviceerror.DeadlineExceeded
	switch {
	case errors.As(err, &failed):
		return fmt.Errorf("the worker of %s did not answer %s: %s; \"acescope query %s\" lists what it offers",
			id, query, failed.Message, id)
	case errors.As(err, &idle), errors.As(err, &late), errors.Is(err, context.DeadlineExceeded):
		return &cli.ExitError{Code: cli.ExitUnreachable, Err: fmt.Errorf("no worker of %s answers %s; "+
			"\"acescope doctor\" shows which task queues have workers", id, query)}
	}
	return err
}
