package transcript

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	if got, err := Find(dir, "a"); got != "" || err != nil {
		t.Errorf("without projects: %q, %v", got, err)
	}
	want := filepath.Join(dir, "projects", "-b", "a"+Ext)
	// the first is not a file
	for _, d := range []string{filepath.Join(dir, "projects", "-a", "a"+Ext), filepath.Dir(want)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(want, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Find(dir, "a"); got != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := Find(dir, "b"); got != "" || err != nil {
		t.Errorf("missing session: %q, %v", got, err)
	}
}

func TestCostState(t *testing.T) {
	for line, want := range map[string]float64{
		`{"type":"cost-state","sessionId":"s","totalCostUSD":0.0048000000000000004,"modelUsage":{"m":{"costUSD":9}}}`: 0.0048,
		`{"totalCostUSD":0,"type":"cost-state"}`:                           0,
		`{"type":"cost-state"}`:                                            -1,
		`{"type":"cost-state","totalCostUSD":1`:                            -1,
		`{"type":"cost-state","totalCostUSD":1e999}`:                       -1,
		`{"type":"user","totalCostUSD":1,"message":"of a \"cost-state\""}`: -1,
		`{"type":"user","totalCostUSD":1,"of":"cost-state"}`:               -1,
	} {
		got, ok := CostState([]byte(line))
		if ok != (want >= 0) || ok && (got-want > 1e-9 || want-got > 1e-9) {
			t.Errorf("%s: %v, %t", line, got, ok)
		}
	}
}

func TestConfigDir(t *testing.T) {
	t.Setenv("HOME", "/home/ann")
	for want, environ := range map[string][]string{
		"/c":                nil,
		"/home/ann/.claude": {"CLAUDE_CONFIG_DIR="},
	} {
		if got := ConfigDir(append([]string{"A=b", "CLAUDE_CONFIG_DIR=/c"}, environ...)); got != want {
			t.Errorf("%v: %q, want %q", environ, got, want)
		}
	}
}
