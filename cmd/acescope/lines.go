package main

import (
	"bufio"
	"encoding/json"
	"io"
	"time"

	"acescope/engine/ace"
	"acescope/sources"
)

// lines writes one JSON object a line. What docs/json.md says of each is held by the
// types below.
type lines struct {
	buf *bufio.Writer
	enc *json.Encoder
}

func newLines(w io.Writer) *lines {
	buf := bufio.NewWriterSize(w, 1<<16)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	return &lines{buf, enc}
}

// put writes one object; it may stay in the buffer until flush.
func (l *lines) put(v any) error { return l.enc.Encode(v) }
func (l *lines) flush() error    { return l.buf.Flush() }
func (l *lines) write(v any) error {
	if err := l.put(v); err != nil {
		return err
	}
	return l.flush()
}

// runLine is a task run or an experiment in a list, and a task that ended.
type runLine struct {
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

func listLine(r sources.Run) runLine {
	l := runLine{Type: "run", TaskID: r.TaskID, WorkflowID: r.WorkflowID, RunID: r.RunID, WorkflowType: r.Type,
		ExperimentID: r.Experiment, DatasetID: r.Dataset, Model: r.Model, Adapter: r.Adapter, Phase: r.Phase,
		ExitStatus: r.Exit, Start: &r.Start, Events: r.Events, Summary: r.Summary, Attempt: r.Attempt, LastError: r.LastError, ForkedFrom: r.Fork,
		Blueprint: r.Blueprint, RunnerID: r.Runner, SessionID: r.Session, Parent: r.Parent}
	if r.Type == ace.ExperimentWorkflow {
		l.Type, l.TaskID = "experiment", ""
	}
	if !r.Open() {
		l.Close = &r.Close
		l.DurationMS = millis(r.Close.Sub(r.Start))
	}
	return l
}

func finishedLine(f sources.Finished, in ace.ExperimentInput) runLine {
	r := f.Result
	return runLine{Type: "run", TaskID: r.TaskID, WorkflowID: f.WorkflowID, RunID: f.RunID, ExperimentID: in.ExperimentID,
		DatasetID: in.DatasetID, Model: in.Model, Adapter: string(in.Adapter), ExitStatus: r.ExitStatus, Close: &f.At,
		DurationMS: millis(f.Took), Summary: &r.Summary, Answer: r.Answer, Correct: r.Correct,
		Playbook: r.PlaybookHash, Failure: f.Failure}
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
