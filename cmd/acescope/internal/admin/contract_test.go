package admin_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	historypb "go.temporal.io/api/history/v1"

	"acescope/cmd/acescope/internal/admin"
	"acescope/cmd/acescope/internal/admin/contracttest"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/historyfile"
)

// oddPayloads are recorded payloads that do not fit on purpose, by history and name.
var oddPayloads = map[string]string{
	"experiment.json AceExperimentWorkflow.result": "an earlier version wrote it: exit_status instead of status",
	"session-reports.json deliver":                 "some are unreadable: the test of the session sent them",
	"review-rejected.json review_operations":       "some are unreadable: the test of reviews sent them",
}

// TestRecordedPayloads checks that every payload of the contract in the recorded histories fits its schema
// and has no field that the schema does not know, and so do the answers of queries at every event.
func TestRecordedPayloads(t *testing.T) {
	schemas := contracttest.Compile(t, true)
	seen := map[string]int{}
	for _, file := range recordedHistories(t) {
		for _, events := range readHistories(t, file) {
			contracttest.Payloads(t, events, func(event int64, name string, data []byte) {
				known, err := schemas.Check(name, data)
				if known {
					seen[name]++
				}
				if err != nil && oddPayloads[filepath.Base(file)+" "+name] == "" {
					t.Errorf("%s, event %d: %s: %v\n%.400s", file, event, name, err, data)
				}
			})
		}
	}
	unrecorded := []string{ace.ActivityAgentCLI, ace.ActivityReadLog, ace.ActivityBreakdown,
		ace.ActivityReadPlaybook, session.SignalWithdraw, session.SignalAttempt, ace.QueryExperiment,
		run.QueryRun,
		"memo." + ace.MemoObserved, "memo." + ace.MemoBy}
	for name := range schemas {
		base := strings.TrimSuffix(strings.TrimSuffix(name, ".input"), ".result")
		if seen[name] == 0 && !slices.Contains(unrecorded, base) {
			t.Errorf("no recorded history has a %s", name)
		}
	}
}

// TestSchemasOfPage checks that every name in the table of the contract page has a schema.
func TestSchemasOfPage(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/reference/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	known, checked := admin.ContractNames(), 0
	row := regexp.MustCompile(`(?m)^\| (workflow type|activit|signal|quer|update|memo)[^|]*\|(.*)\|$`)
	for _, cells := range row.FindAllStringSubmatch(string(page), -1) {
		prefix := ""
		if cells[1] == "memo" {
			prefix = "memo."
		}
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(cells[2], -1) {
			if checked++; !slices.Contains(known, prefix+name[1]) {
				t.Errorf("\"acescope schema contract\" lacks %s", prefix+name[1])
			}
		}
	}
	if checked < 25 {
		t.Errorf("the page has %d names", checked)
	}
}

func recordedHistories(t *testing.T) []string {
	t.Helper()
	const dir = "../../../../engine/workflows/testdata/"
	files, err := filepath.Glob(dir + "*.json")
	if err != nil {
		t.Fatal(err)
	}
	released, err := filepath.Glob(dir + "released/*/*.json")
	if err != nil || len(files) < 20 || len(released) == 0 {
		t.Fatalf("%d recorded and %d released histories, %v", len(files), len(released), err)
	}
	return append(files, released...)
}

func readHistories(t *testing.T, file string) (list [][]*historypb.HistoryEvent) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	histories, err := historyfile.Read(f)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for _, h := range histories {
		list = append(list, h.Events)
	}
	return list
}

// TestContractSchemaRefuses checks that the published schemas accept unknown fields and null, and refuse what
// readers would have to guess.
func TestContractSchemaRefuses(t *testing.T) {
	schemas := contracttest.Compile(t, false)
	for _, c := range []struct {
		name, data string
		fits       bool
	}{
		{"run_curator.result", `{"accepted":[],"rejected":null,"rationale":"","new":1}`, true},
		{"run_curator.result", `{"accepted":"all","rejected":[],"rationale":""}`, false},
		{"run_skills_session.result", `{"invocations":[{"name":"x"}]}`, false},
		{ace.SignalToolEvent, `{"event_id":"1","kind":"tool_use"}`, true},
		{ace.SignalToolEvent, `[{"event_id":"1","kind":"tool_use","at":"yesterday"}]`, false},
		{"AceTaskWorkflow.input", `{"task_id":7}`, false},
	} {
		if known, err := schemas.Check(c.name, []byte(c.data)); !known || (err == nil) != c.fits {
			t.Errorf("%s %s: %v", c.name, c.data, err)
		}
	}
	one, err := admin.ContractSchema("run_curator", false)
	if err != nil || len(one.Defs) != 2 {
		t.Errorf("%v, %v", one, err)
	}
	if _, err := admin.ContractSchema("run_cur", false); err == nil ||
		!strings.Contains(err.Error(), "run_curator") {
		t.Errorf("an unknown name: %v", err)
	}
}
