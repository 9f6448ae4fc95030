package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A host whose data directory is removed, emptied or hosted by another process has lost its data.
func TestLost(t *testing.T) {
	t.Parallel()
	mine := newEndpoint(1, "1.0.0")
	other := newEndpoint(2, "1.0.0")
	for name, c := range map[string]struct {
		endpoint *Endpoint
		database bool
		want     string
	}{
		"present":          {&mine, true, ""},
		"no database":      {&mine, false, "temporal.db is missing"},
		"no endpoint":      {nil, true, "endpoint.json of process"},
		"another host":     {&other, true, "hosts it now"},
		"removed directly": {nil, false, "temporal.db is missing"},
	} {
		dir := t.TempDir()
		if c.endpoint != nil {
			if err := writeJSON(dir, endpointFile, c.endpoint); err != nil {
				t.Fatal(err)
			}
		}
		if c.database {
			if err := os.WriteFile(filepath.Join(dir, databaseFile), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := mine.Lost(dir); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
