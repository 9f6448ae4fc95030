package cli

import (
	"bufio"
	"encoding/json"
	"io"
	"time"

	"acescope/engine/ace"
	"acescope/sources/experiments"
	"acescope/sources/runs"
)

// Lines writes one JSON object a line. What docs/reference/json.md says of each is held by the
// types below.
type Lines struct {
	Buf *bufio.Writer
	enc *json.Encoder
}

func NewLines(w io.Writer) *Lines {
	buf := bufio.NewWriterSize(w, 1<<16)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	return &Lines{buf, enc}
}

// Put writes one object; it may stay in the buffer until flush.
func (l *Lines) Put(v any) error { return l.enc.Encode(v) }
func (l *Lines) Flush() error    { return l.Buf.Flush() }
func (l *Lines) Write(v any) error {
	if err := l.Put(v); err != nil {
		return err
	}
	return l.Flush()
}

// RunLine is a task run or an experiment in a list, and a task that ended.
type RunLine struct {
	Type         string         `json:"type"` // run, or experiment
	TaskID       string         `json:"task_id"`
	WorkflowID   string         `json:"workflow_id"`
	RunID        string         `json:"run_id"`
	WorkflowType string         `json:"workflow_type,omitempty"`
	ExperimentID string         `json:"experiment_id,omitempty"`
	DatasetID    string         `json:"dataset_id,omitempty"`
	Model        string         `json:"model,omitempty"`
	Adapter      string         `json:"adapter,omitempty"`
	Phase        ace.Phase      `json:"phase,omitempty"`
	ExitStatus   ace.ExitStatus `json:"exit_status"`
	Start        *time.Time     `json:"start,omitempty"`
	Close        *time.Time     `json:"close,omitempty"`
	DurationMS   float64        `json:"duration_ms,omitempty"`
	Events       int64          `json:"events,omitempty"`
	Summary      *ace.Summary   `json:"summary,omitempty"`
	Answer       string         `json:"answer,omitempty"`
	Correct      *bool          `json:"correct,omitempty"`
	Playbook     string         `json:"playbook,omitempty"`
	Failure      *ace.Failure   `json:"failure,omitempty"`
	Attempt      int32          `json:"attempt,omitempty"`
	LastError    string         `json:"last_error,omitempty"`
	ForkedFrom   *ace.Forked    `json:"forked_from,omitempty"`
	// Of a run of a blueprint.
	Blueprint string `json:"blueprint,omitempty"`
	RunnerID  string `json:"runner_id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	Parent    string `json:"parent_session_id,omitempty"`
}

func ListLine(r runs.Run) RunLine {
	l := RunLine{Type: "run", TaskID: r.TaskID, WorkflowID: r.WorkflowID, RunID: r.RunID, WorkflowType: r.Type,
		ExperimentID: r.Experiment, DatasetID: r.Dataset, Model: r.Model, Adapter: r.Adapter, Phase: r.Phase,
		ExitStatus: r.Exit, Start: &r.Start, Events: r.Events, Summary: r.Summary, Attempt: r.Attempt, LastError: r.LastError, ForkedFrom: r.Fork,
		Blueprint: r.Blueprint, RunnerID: r.Runner, SessionID: r.Session, Parent: r.Parent}
	if r.Type == ace.ExperimentWorkflow {
		l.Type, l.TaskID = "experiment", ""
	}
	if !r.Open() {
		l.Close = &r.Close
		l.DurationMS = Millis(r.Close.Sub(r.Start))
	}
	return l
}

func FinishedLine(f experiments.Finished, in ace.ExperimentInput) RunLine {
	r := f.Result
	return RunLine{Type: "run", TaskID: r.TaskID, WorkflowID: f.WorkflowID, RunID: f.RunID, ExperimentID: in.ExperimentID,
		DatasetID: in.DatasetID, Model: in.Model, Adapter: string(in.Adapter), ExitStatus: r.ExitStatus, Close: &f.At,
		DurationMS: Millis(f.Took), Summary: &r.Summary, Answer: r.Answer, Correct: r.Correct,
		Playbook: r.PlaybookHash, Failure: f.Failure}
}

func Millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
