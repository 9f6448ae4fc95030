package replayer

import (
	"encoding/json"
	"errors"
	"fmt"

	"acescope/engine/ace"
)

// MaxLine bounds a line of the output of a replayer, in bytes. maxQuoted bounds what a reason quotes of it.
const (
	MaxLine   = 1 << 20
	maxQuoted = 100
)

// Verdicts of a replayer.
const (
	deterministic    = "deterministic"
	nondeterministic = "nondeterministic"
	failed           = "error"
)

// answer is a line of the output of a replayer.
type answer struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	Verdict    string `json:"verdict"`
	EventID    int64  `json:"event_id"` // 0 if unknown
	Message    string `json:"message"`
	Command    string `json:"command"` // what the code does instead
}

// parseAnswer parses a line. It ignores fields that it does not know.
func parseAnswer(line []byte) (a answer, err error) {
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("wrote a line that is no answer: %q", ace.Cut(string(line), maxQuoted))
	}
	switch {
	case a.WorkflowID == "" || a.RunID == "":
		return a, errors.New("wrote an answer without workflow_id or run_id")
	case a.Verdict != deterministic && a.Verdict != nondeterministic && a.Verdict != failed:
		return a, fmt.Errorf("wrote the unknown verdict %q; verdicts are %s, %s and %s",
			ace.Cut(a.Verdict, maxQuoted), deterministic, nondeterministic, failed)
	}
	return a, nil
}

// encode returns a line of the input of a replayer.
func encode(workflowID, runID string, history []byte) []byte {
	line, err := json.Marshal(struct {
		WorkflowID string          `json:"workflow_id"`
		RunID      string          `json:"run_id"`
		History    json.RawMessage `json:"history"`
	}{workflowID, runID, history})
	if err != nil { // the history is JSON
		panic(err)
	}
	return append(line, '\n')
}
