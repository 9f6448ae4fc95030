package operation_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"acescope/engine/temporal/historyfile"
	"acescope/engine/temporal/operation"
)

func raw(list []json.RawMessage) (out [][]byte) {
	for _, one := range list {
		out = append(out, one)
	}
	return out
}

// FuzzProject checks that no history makes the projection panic and that its events encode as
// JSON.
func FuzzProject(f *testing.F) {
	files, err := filepath.Glob("example/testdata/*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no histories: %v", err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		var h struct{ Events []json.RawMessage }
		if err := json.Unmarshal(data, &h); err != nil {
			f.Fatal(err)
		}
		for i := 3; i < len(h.Events); i += 5 { // a few events each: long inputs are slow to vary
			f.Add([]byte(`{"events":[` + string(bytes.Join(raw(h.Events[i-3:i]), []byte(","))) + `]}`))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		histories, _ := historyfile.Read(bytes.NewReader(data))
		for _, h := range histories {
			for _, e := range operation.Project(h.Events) {
				if _, err := json.Marshal(e); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
