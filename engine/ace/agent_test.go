package ace

import "testing"

// Sources of observed runs name agents as providers do, except those of earlier versions.
func TestAgentOf(t *testing.T) {
	for _, agent := range Agents() {
		if got := AgentOf(agent); got != agent {
			t.Errorf("%s is %q", agent, got)
		}
	}
	for name, want := range map[string]string{ClaudeCode: "claude", "pipeline": "", "": ""} {
		if got := AgentOf(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
