package mcp

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"acescope/engine/tasks/run"
)

// FuzzArguments checks that arguments are decoded unchanged, or refused with a one-line error.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{``, `null`, `{}`, `[]`, `{"agent_name":"a","prompt":"p"}`,
		`{"agent_name":"a","parameters":{}}`, `{"agent_name":null}`,
		`{"agent_name":"a","parameters":{"a":1e999,"b":[{"c":null}]},"mode":"sync"}`,
		`{"agent_name":"a","agent_name":"b"}`, `{"agent_name":"a","additional_demands":{"tags":["x",1]}}`,
		`{"Agent_Name":"a"}`, `{"agent_name":"\ud800"}`, `{"agent_name":"a","\u0000":1}`,
		strings.Repeat("[", 10_000), `{"agent_name":"a","limit":1E400}`} {
		f.Add([]byte(s))
	}
	check := newDecoder(inputSchema("start_agent_session"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var a startArgs
		err := check.decode(raw, &a)
		if err != nil {
			if l := oneLine(err.Error()); l == "" || strings.ContainsAny(l, "\n\r\x00\x1b") {
				t.Fatalf("an error that is not one line: %q", l)
			}
			return
		}
		if a.Parameters != nil {
			var compact bytes.Buffer
			if err := json.Compact(&compact, a.Parameters); err != nil {
				t.Fatalf("parameters are not JSON: %q", a.Parameters)
			}
		}
		if a.Prompt != nil && len([]rune(*a.Prompt)) > run.MaxPrompt {
			t.Fatal("a prompt that is too long was accepted")
		}
		if a.Execution != "" && a.Execution != run.Sync && a.Execution != run.AsyncPoll &&
			a.Execution != run.AsyncCallback {
			t.Fatalf("mode %q", a.Execution)
		}
	})
}

// FuzzHeaders checks that headers are decoded, or refused with a one-line error.
func FuzzHeaders(f *testing.F) {
	f.Add(`{"tags":["a"]}`, "a,b", "ses_1")
	f.Add(`[]`, ",, ,", "../x")
	f.Add(`{"hostname":1}`, "\x00", "")
	f.Fuzz(func(t *testing.T, requirements, tags, session string) {
		h := map[string][]string{HeaderRequirements: {requirements}}
		if _, err := headerRequirements(h); err != nil && strings.ContainsAny(oneLine(err.Error()),
			"\n\x00") {
			t.Fatalf("%q", err)
		}
		for _, tag := range ParseTags(tags) {
			if tag == "" || strings.Contains(tag, ",") {
				t.Fatalf("tag %q", tag)
			}
		}
		if err := (Caller{Session: session}).Check(); err == nil && session != "" && !run.ValidName(session) {
			t.Fatalf("session %q", session)
		}
	})
}
