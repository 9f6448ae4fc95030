package agentcall

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"acescope/engine/agents/agentcli"
)

// FuzzReadLog checks that any data is read to its end with a valid outcome.
func FuzzReadLog(f *testing.F) {
	head, err := json.Marshal(ownLine{Type: lineCall, Call: &Header{ID: "x", Provider: "claude", Attempt: 1}})
	if err != nil {
		f.Fatal(err)
	}
	end, err := json.Marshal(ownLine{Type: lineEnd, End: &footer{Success: true, ExitClass: "ok"}})
	if err != nil {
		f.Fatal(err)
	}
	said := `{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"hi"}]}}` + "\n" +
		`{"type":"result","subtype":"success","is_error":false,"result":"hi"}` + "\n"
	f.Add([]byte(string(head) + "\n" + said + string(end) + "\n"))
	f.Add([]byte(string(head) + "\n" + `{"type":"acescope_garbage","name":"text","text":"x"}` + "\n" +
		`{"type":"acescope_end","end":3}` + "\n{\"ty"))
	f.Add([]byte(strings.Replace(string(head), "claude", "opencode", 1) + "\n" +
		`{"type":"acescope_stderr","text":"Error: no"}` + "\n"))
	f.Add([]byte("\n\n[{}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		next := int64(0)
		l, err := ReadLog(bytes.NewReader(data), func(n int64, e agentcli.Event) {
			if n != next || e.Kind == "" {
				t.Errorf("event %d is %d: %+v", next, n, e)
			}
			next++
		})
		if err != nil {
			return
		}
		if l.Events != next || l.Outcome.Class == "" || strings.ContainsAny(l.Outcome.Sentence, "\n\r") {
			t.Errorf("%+v after %d events", l, next)
		}
	})
}
