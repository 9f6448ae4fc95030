package compare

import "testing"

// IDs that a provider generates differ in each run; other IDs and texts do not.
func TestGeneratedIDs(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"output":[{"id":"fc_0020","name":"get_weather"}],"response_id":"resp_0020"}`,
			`{"output":[{"id":"fc_0025","name":"get_weather"}],"response_id":"resp_0025"}`, true},
		{`{"tool_call_id":"toolu_01A"}`, `{"tool_call_id":"toolu_01B"}`, true},
		{`{"id":"customer 17"}`, `{"id":"customer 18"}`, false},
		{`{"text":"call_1"}`, `{"text":"call_2"}`, false},
		{`{"id":"fc_1","name":"get_weather"}`, `{"id":"fc_2","name":"convert"}`, false},
	} {
		got := fingerprint([]byte(c.a), false) == fingerprint([]byte(c.b), false)
		if got != c.same {
			t.Errorf("%s and %s: same is %v", c.a, c.b, got)
		}
		if fingerprint([]byte(c.a), true) == fingerprint([]byte(c.b), true) {
			t.Errorf("%s and %s are the same with all members", c.a, c.b)
		}
	}
}
