package executor

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestInvocations checks that each version is read, and written as 2.2.
func TestInvocations(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Invocation
	}{
		{`{"schema_version":"2.0","mode":"start","session_id":"ses_1","prompt":"hello","unknown":[1]}`,
			Invocation{Mode: Start, SessionID: "ses_1", Prompt: "hello"}},
		{"\xef\xbb\xbf {\"schema_version\":\"2.1\",\"mode\":\"resume\",\"session_id\":\"ses_1\",\"prompt\":\"on\",\"project_dir\":\"/p\",\"agent_blueprint\":{\"name\":\"a\"},\"metadata\":null}\n",
			Invocation{Mode: Resume, SessionID: "ses_1", Prompt: "on", ProjectDir: "/p",
				Agent: json.RawMessage(`{"name":"a"}`)}},
		{`{"schema_version":"2.2","mode":"start","session_id":"ses_1","parameters":{"prompt":"hi","extra":1},"executor_config":{"model":"x"}}`,
			Invocation{Mode: Start, SessionID: "ses_1", Prompt: "hi",
				Parameters: json.RawMessage(`{"prompt":"hi","extra":1}`),
				Config:     json.RawMessage(`{"model":"x"}`)}},
		{`{"schema_version":"2.2","mode":"start","session_id":"ses_1","prompt":"hi"}`,
			Invocation{Mode: Start, SessionID: "ses_1", Prompt: "hi"}},
	} {
		got, err := ParseInvocation([]byte(c.in))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n%+v, %v", c.in, got, err)
		}
	}
	// The document's own example.
	got, err := ParseInvocation(
		[]byte(`{"schema_version":"2.1","mode":"execute","session_id":"ses_abc123","parameters":{"url":"https://docs","depth":2},
		"project_dir":"/path/to/project","task_blueprint":{"name":"web-crawler","type":"deterministic","command":"python -m 'crawler main'",
		"parameters_schema":{"type":"object"},"timeout_seconds":3600}}`))
	if err != nil || got.Task == nil ||
		!reflect.DeepEqual(got.Task.Argv, []string{"python", "-m", "crawler main"}) ||
		got.Task.TimeoutSeconds != 3600 {
		t.Errorf("%+v, %v", got, err)
	}
	again := roundTrip(t, got)
	if !reflect.DeepEqual(got, again) {
		t.Errorf("%+v", again)
	}
}

func roundTrip(t *testing.T, in Invocation) Invocation {
	t.Helper()
	data, err := in.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), `"schema_version":"2.2"`) ||
		strings.Contains(string(data), `"prompt":`) != (in.Mode != Execute) {
		t.Errorf("%s", data)
	}
	again, err := ParseInvocation(data)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return again
}

// TestBadInvocations checks the errors of invalid payloads.
func TestBadInvocations(t *testing.T) {
	const task = `"task_blueprint":{"name":"x","command":"y"}`
	for _, c := range []struct{ in, want string }{
		{``, "$: EOF"},
		{`[]`, "$: not a JSON object"},
		{`{"a":`, "$: unexpected EOF"},
		{`{} {}`, "$: invalid character"},
		{"{\"a\":\"\xff\"}", "$: is not valid UTF-8"},
		{`{}`, "$.schema_version: is missing"},
		{`{"schema_version":2.1}`, "$.schema_version: value must be one of '2.0', '2.1', '2.2'"},
		{`{"schema_version":"3.0"}`, "$.schema_version: value must be one of '2.0', '2.1', '2.2'"},
		{`{"schema_version":"2.0"}`, "$.mode: is missing"},
		{`{"schema_version":"2.0","mode":"start"}`, "$.session_id: is missing"},
		{`{"schema_version":"2.0","mode":"start","session_id":""}`, "$.session_id: minLength: got 0, want 1"},
		{`{"schema_version":"2.0","mode":"start","session_id":"a\nb"}`,
			`$.session_id: 'a\nb' does not match pattern`},
		{`{"schema_version":"2.0","mode":"walk","session_id":"s"}`,
			"$.mode: value must be one of 'start', 'resume', 'execute'"},
		{`{"schema_version":"2.0","mode":"start","session_id":"s"}`, "$.prompt: is missing"},
		{`{"schema_version":"2.0","mode":"start","session_id":"s","prompt":" "}`,
			"$.prompt: is missing or empty"},
		{`{"schema_version":"2.0","mode":"start","session_id":"s","prompt":1}`,
			"$.prompt: got number, want string"},
		{`{"schema_version":"2.2","mode":"start","session_id":"s","parameters":{}}`,
			"$.prompt: is missing or empty; version 2.2 has it in $.parameters.prompt"},
		{`{"schema_version":"2.2","mode":"start","session_id":"s","parameters":{"prompt":[]}}`,
			"$.parameters.prompt: got array, want string"},
		{`{"schema_version":"2.2","mode":"start","session_id":"s","prompt":"a","parameters":{"prompt":"b"}}`,
			"$.prompt: differs from"},
		{`{"schema_version":"2.2","mode":"start","session_id":"s","parameters":[]}`,
			"$.parameters: got array, want object"},
		{`{"schema_version":"2.1","mode":"start","session_id":"s","prompt":"a","project_dir":"rel"}`,
			`$.project_dir: "rel" is not absolute`},
		{`{"schema_version":"2.1","mode":"start","session_id":"s","prompt":"a","agent_blueprint":"x"}`,
			`$.agent_blueprint: got string, want object`},
		{`{"schema_version":"2.0","mode":"execute","session_id":"s","parameters":{},` + task + `}`,
			"$.schema_version: value must be one of '2.1', '2.2'"},
		{`{"schema_version":"2.1","mode":"execute","session_id":"s",` + task + `}`,
			"$.parameters: is missing"},
		{`{"schema_version":"2.1","mode":"execute","session_id":"s","parameters":{}}`,
			"$.task_blueprint: is missing"},
		{`{"schema_version":"2.1","mode":"execute","session_id":"s","parameters":{},"prompt":"x",` + task +
			`}`, "$.prompt: is not allowed"},
		{`{"schema_version":"2.1","mode":"execute","session_id":"s","parameters":{},"task_blueprint":{"command":[1]}}`, "$.task_blueprint.command: got array, want string"},
		{`{"schema_version":"2.1","mode":"execute","session_id":"s","parameters":{},"task_blueprint":{"type":"agent","command":"x"}}`, "$.task_blueprint.type"},
		{`{"schema_version":"2.1","mode":"execute","session_id":"s","parameters":{},"task_blueprint":{"name":"../x","command":"x"}}`, "$.task_blueprint.name"},
		{`{"schema_version":"2.1","mode":"execute","session_id":"s","parameters":{},"task_blueprint":{"command":"x 'y"}}`, "$.task_blueprint.command: has invalid quotes"},
		{`{"schema_version":"2.1","mode":"execute","session_id":"s","parameters":{},"task_blueprint":{"name":"x"}}`, "$.task_blueprint.command: is required"},
		{`{"schema_version":"2.1","mode":"execute","session_id":"s","parameters":{},"task_blueprint":{"command":"x","parameter_strategy":"eval"}}`, "$.task_blueprint.parameter_strategy: value must be one of"},
		{`{"schema_version":"2.1","mode":"execute","session_id":"s","parameters":{},"task_blueprint":{"command":"x","timeout_seconds":-1}}`, "$.task_blueprint.timeout_seconds: minimum: got -1, want 0"},
		{`{"schema_version":"2.2","mode":"start","Mode":"execute","session_id":"s","parameters":{"prompt":"a"}}`, `$.Mode: write mode`},
		{`{"schema_version":"2.1","mode":"execute","session_id":"s","parameters":{},"task_blueprint":{"command":"x","Timeout_Seconds":-1}}`, `$.task_blueprint.Timeout_Seconds: write timeout_seconds`},
		{`{"schema_version":"2.1","mode":"execute","session_id":"s","parameters":{},"task_blueprint":{"command":"x","timeout_seconds":1.5}}`, "$.task_blueprint.timeout_seconds: got number, want integer"},
	} {
		if _, err := ParseInvocation([]byte(c.in)); err == nil ||
			!strings.HasPrefix(err.Error(), "invocation: $") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n%v", c.in, err)
		}
	}
	if _, err := ReadInvocation(strings.NewReader(strings.Repeat(" ", MaxInvocation+10) + "{}")); err == nil {
		t.Error("a payload without end is taken")
	}
}

// FuzzInvocation checks that an invocation is the same after it is written and read.
func FuzzInvocation(f *testing.F) {
	f.Add(`{"schema_version":"2.2","mode":"start","session_id":"ses_1","parameters":{"prompt":"hi","extra":1}}`)
	f.Add(`{"schema_version":"2.1","mode":"execute","session_id":"s","parameters":{"a":1},"task_blueprint":{"command":"a 'b c' \"d\""}}`)
	f.Add(`{"schema_version":"2.0","mode":"resume","session_id":"s","prompt":"<&>"}`)
	f.Fuzz(func(t *testing.T, in string) {
		got, err := ParseInvocation([]byte(in))
		if err != nil {
			return
		}
		again := roundTrip(t, got)
		if got.Mode != again.Mode || got.SessionID != again.SessionID || got.Prompt != again.Prompt ||
			got.ProjectDir != again.ProjectDir ||
			(got.Task == nil) != (again.Task == nil) || got.Task != nil &&
			!reflect.DeepEqual(got.Task.Argv, again.Task.Argv) {
			t.Errorf("%q:\n%+v\n%+v", in, got, again)
		}
	})
}
