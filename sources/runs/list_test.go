package runs

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"

	"acescope/engine/ace"
)

func TestNewest(t *testing.T) {
	for query, want := range map[string]string{
		"":                                   `ExecutionStatus != "ContinuedAsNew"`,
		`ExitStatus = "a" OR TaskId="b"`:     `(ExitStatus = "a" OR TaskId="b") AND ExecutionStatus != "ContinuedAsNew"`,
		`ExecutionStatus = "ContinuedAsNew"`: `ExecutionStatus = "ContinuedAsNew"`,
		`RunId = "r"`:                        `RunId = "r"`,
	} {
		if got := Newest(query); got != want {
			t.Errorf("%q becomes %q, want %q", query, got, want)
		}
	}
}

// A query that the server rejects is sent once, as written.
func TestNewestOfAQueryThatIsRefused(t *testing.T) {
	s := newSim(simRuns(3)...)
	s.pageErr = serviceerror.NewInvalidArgument("invalid query")
	for query, want := range map[string]int{"nonsense": 2, `RunId = nonsense`: 1} {
		s.lists = 0
		err := ListNewest(t.Context(), s, query, 0, func(Run) error { return nil })
		if err == nil || s.lists != want {
			t.Errorf("%q: %d listings, %v", query, s.lists, err)
		}
	}
}

func TestAnd(t *testing.T) {
	if got := And(" ", "b"); got != "b" {
		t.Error(got)
	}
	if got := And("a OR c", "b"); got != "(a OR c) AND b" {
		t.Error(got)
	}
}

// The server's status outranks the attribute, which only tells a wrong answer; the memo holds the verdict.
func TestStatusIsTheServers(t *testing.T) {
	text := func(s string) *commonpb.Payload {
		return &commonpb.Payload{Metadata: simJSON, Data: []byte(s)}
	}
	for _, c := range []struct {
		status     enumspb.WorkflowExecutionStatus
		exit, memo string
		want       string
	}{
		{enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, `"success"`, "", "running/"},
		{enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, `"failed"`, "", "completed/"},
		{enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, `"running"`, "", "terminated/"},
		{enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, `"wrong"`, "", "completed/wrong"},
		{enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, `"success"`, `{"verdict": "unlabeled"}`,
			"completed/unlabeled"},
		{enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, `"success"`, `{"verdict": "correct"}`, "failed/correct"},
		{enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT, `7`, `[]`, "timed_out/"},
		{enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW, ``, ``, "continued_as_new/"},
	} {
		r := Of(&workflowpb.WorkflowExecutionInfo{Status: c.status,
			SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{ace.AttrExit: text(c.exit)}},
			Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{ace.MemoSummary: text(
				c.memo)}}})
		if got := string(r.Status) + "/" + string(r.Verdict); got != c.want {
			t.Errorf("%s, %s, %s: %s, want %s", c.status, c.exit, c.memo, got, c.want)
		}
	}
}

// TestDeepMemo checks that a memo of another worker cannot end the process.
func TestDeepMemo(t *testing.T) {
	for _, deep := range []string{"[", `{"a":`} {
		var s *ace.Summary
		memo := `{"subject":"s","x":` + strings.Repeat(deep, 1_000_000)
		if err := unmarshal(&commonpb.Payload{Metadata: simJSON, Data: []byte(memo)}, &s); err == nil {
			t.Errorf("a million of %s is decoded", deep)
		}
	}
}

// FuzzMemo checks that memos are decoded as encoding/json decodes them.
func FuzzMemo(f *testing.F) {
	f.Add([]byte(`{"verdict":"correct","subject":"a\u00e9","skills":3,"usage":{"input_tokens":216,"cost_usd":1e-2},` +
		`"metered":{"m":{"input_tokens":1}},"phase_ms":{"generator":0.18},"ended_at":"2026-05-04T12:00:00Z"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want *ace.Summary
		err := unmarshal(&commonpb.Payload{Metadata: simJSON, Data: data}, &got)
		if json.Unmarshal(data, &want) == nil && (err != nil || !reflect.DeepEqual(got, want)) {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	})
}
