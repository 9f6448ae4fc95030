package agents

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/tui/text"
)

func agentResultCommand(a *cli.App) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:   "result ID",
		Short: "Show what came of a run",
		Long: "Shows what came of a run: what its program wrote, as it is, or an agent's last message. ID is a run's, or a session's, which\n" +
			"stands for its newest run. It exits with 0 where the run was completed and with 1 where it failed, was stopped or has not\n" +
			"ended.",
		Example:           "acescope agent result ses_0123456789ab --wait\nacescope agent result r-1 --json | jq .output",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeRunIDs(a, false, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return ofRun(a, cmd.Context(), args[0], !wait, func(v *AgentRuns) error { return v.Result(cmd.Context(), args[0], wait) })
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the end of the run")
	return cmd
}

func (v *AgentRuns) Result(ctx context.Context, id string, wait bool) error {
	state, err := v.State(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case state.Result != nil && state.Status.Over():
		return v.WriteResult(state.Input, *state.Result)
	case wait:
		return v.await(ctx, state.Input)
	case state.Status.Over():
		return fmt.Errorf("run %s is %s and left no result", state.Input.RunID, state.Status)
	}
	return fmt.Errorf("run %s has not ended, it is %s: --wait waits for it", state.Input.RunID, state.Status)
}

// AgentResult is what came of a run.
type AgentResult struct {
	Type            string          `json:"type"` // agent_result
	RunID           string          `json:"run_id"`
	SessionID       string          `json:"session_id"`
	RunType         run.Type        `json:"run_type"`
	AgentName       string          `json:"agent_name"`
	Status          run.Status      `json:"status"`
	Reason          run.Reason      `json:"reason,omitempty"`
	Error           string          `json:"error,omitempty"`
	Output          json.RawMessage `json:"output,omitempty"`
	OutputIs        string          `json:"output_is,omitempty"`
	Stdout          string          `json:"stdout"`
	Stderr          string          `json:"stderr"`
	ExitCode        *int            `json:"exit_code,omitempty"`
	Signal          string          `json:"signal,omitempty"`
	DurationSeconds float64         `json:"duration_seconds"`
	StartedAt       *time.Time      `json:"started_at,omitempty"`
	OutputRef       *ace.Ref        `json:"output_ref,omitempty"`
	StdoutRef       *ace.Ref        `json:"stdout_ref,omitempty"`
	StderrRef       *ace.Ref        `json:"stderr_ref,omitempty"`
	DroppedBytes    int64           `json:"dropped_bytes,omitempty"`
	Log             *ace.Ref        `json:"log,omitempty"`
	LogPath         string          `json:"log_path,omitempty"`
	Usage           ace.Usage       `json:"usage"`
	Turn            int             `json:"turn,omitempty"`
	RunnerID        string          `json:"runner_id,omitempty"`
}

// WriteResult writes what came of a run. The error is that of a run that was not completed.
func (v *AgentRuns) WriteResult(in run.Input, r run.Result) error {
	a := v.App
	if a.JSON {
		l := AgentResult{"agent_result", in.RunID, in.SessionID, in.Type, in.Name(), r.Status, r.Reason, r.Error, v.output(r), r.OutputIs, r.Stdout, r.Stderr, r.ExitCode, r.Signal,
			r.DurationSeconds, timeOf(r.StartedAt), r.OutputRef, r.StdoutRef, r.StderrRef, r.Dropped, r.Log, r.LogPath, r.Usage, r.Turn, r.Runner}
		if err := cli.NewLines(a.Out).Write(l); err != nil {
			return err
		}
		return runError(in, r)
	}
	said, ref := r.Stdout, r.StdoutRef
	if !in.IsProgram() {
		said, ref = answerOf(r.Output), r.OutputRef
	}
	if err := v.pour(a.Out, said, ref, !in.IsProgram()); err != nil {
		return err
	}
	if err := v.pour(a.Err, r.Stderr, r.StderrRef, false); err != nil {
		return err
	}
	if r.Dropped > 0 {
		fmt.Fprintf(a.Err, "acescope: run %s wrote %d bytes more than are kept\n", in.RunID, r.Dropped)
	}
	return runError(in, r)
}

// output is the whole output of a run, as JSON; nil where it is long and not on this machine.
func (v *AgentRuns) output(r run.Result) json.RawMessage {
	if r.OutputRef == nil {
		return r.Output
	}
	text, err := v.whole(r.OutputRef, "")
	if err != nil || text == "" {
		return nil
	}
	if data := json.RawMessage(text); r.OutputIs == "json" && json.Valid(data) {
		return data
	}
	data, err := json.Marshal(text)
	if err != nil {
		return nil
	}
	return data
}

// runError is the error of a run that was not completed.
func runError(in run.Input, r run.Result) error {
	if r.Status == run.Completed {
		return nil
	}
	why := cmp.Or(r.Error, string(r.Reason))
	switch {
	case r.Status == run.Stopped:
		return fmt.Errorf("run %s: %s", in.RunID, cmp.Or(why, "it was stopped"))
	case why == "":
		return fmt.Errorf("run %s %s", in.RunID, r.Status)
	}
	return fmt.Errorf("run %s %s: %s", in.RunID, r.Status, why)
}

// answerOf is the text of an agent's answer.
func answerOf(output json.RawMessage) string {
	var said string
	if json.Unmarshal(output, &said) == nil {
		return said
	}
	return string(output)
}

// pour writes what a run wrote: as it is into a file or a pipe, made safe on a terminal. The
// whole is an artifact, where it is longer than the text and lies on this machine.
func (v *AgentRuns) pour(to io.Writer, said string, ref *ace.Ref, line bool) error {
	if whole, err := v.whole(ref, said); err == nil {
		said = whole
	} else {
		fmt.Fprintf(v.App.Err, "acescope: only the beginning and the end is shown: %s\n", cli.OneLine(err))
	}
	f, ok := to.(*os.File)
	if terminal := ok && cli.IsTerminal(f); terminal || line {
		out := bufio.NewWriter(to)
		for _, l := range resultLines(said, terminal) {
			fmt.Fprintln(out, l)
		}
		return out.Flush()
	}
	_, err := io.WriteString(to, said)
	return err
}

// resultLines are the lines of a text, none of an empty one, fit for a terminal or as they are.
func resultLines(said string, terminal bool) []string {
	said = trimEnd(said)
	switch {
	case said == "":
		return nil
	case terminal:
		return text.Lines(said)
	}
	return []string{said}
}

func trimEnd(s string) string {
	for len(s) > 0 && (s[len(s)-1] == '\n' || s[len(s)-1] == '\r') {
		s = s[:len(s)-1]
	}
	return s
}

// whole is the text of an artifact, or what is known where there is none.
func (v *AgentRuns) whole(ref *ace.Ref, said string) (string, error) {
	if ref == nil || v.Artifacts == nil {
		return said, nil
	}
	r, err := v.Artifacts.Open(*ref)
	if err != nil {
		return "", err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, run.MaxCapture+1))
	return string(data), err
}
