package agentcall

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"acescope/engine/agents/agentcli"
	"acescope/engine/internal/redact"
	"acescope/engine/store/artifact"
)

// TestPartsAreRedacted checks that a secret in several parts of a text does not get into the log, and
// that the log has the rest of the text.
func TestPartsAreRedacted(t *testing.T) {
	store, err := artifact.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	logs := artifact.NewLogs(t.TempDir(), store)
	file, err := logs.Create(artifact.LogName{WorkflowID: "w", RunID: "r", Activity: "a"})
	if err != nil {
		t.Fatal(err)
	}
	log := EventLog{LiveLog: file, Redact: redact.New()}
	parser := agentcli.NewParser(agentcli.Claude)
	text := "the password is password=hunter2 and the key sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWx, as I said"
	for rest := text; rest != ""; rest = rest[min(7, len(rest)):] {
		part, err := json.Marshal(rest[:min(7, len(rest))])
		if err != nil {
			t.Fatal(err)
		}
		line := []byte(`{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":` + string(part) + `}}}`)
		for _, e := range parser.Line(line) {
			e.Raw = line
			log.Add(e)
		}
	}
	log.AddOwn(ownLine{Type: lineEnd})
	data, err := os.ReadFile(logs.Path(log.Path()))
	if err != nil || log.Err != nil {
		t.Fatal(err, log.Err)
	}
	var got strings.Builder
	for line := range bytes.Lines(data) {
		for _, e := range parser.Line(bytes.TrimSpace(line)) {
			got.WriteString(e.Text)
		}
	}
	if want := "the password is password=[redacted:password] and the key [redacted:anthropic], as I said"; got.String() != want {
		t.Errorf("%q in\n%s", got.String(), data)
	}
}
