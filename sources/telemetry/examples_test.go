package telemetry

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const examples = "../../docs/examples/telemetry/"

var metricName = regexp.MustCompile(`\bacescope_[a-z_]+`)

func readExample(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(examples + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestExamplesNameMetrics: the dashboard, the alert rules and the guide name only metrics that exist, and
// every metric that acescope exports is in the dashboard or in the guide's table.
func TestExamplesNameMetrics(t *testing.T) {
	known := metricNames(t)
	all := ""
	files := []string{"dashboard.json", "alerts.yml", "alerts_test.yml", "../../guides/telemetry.md"}
	for _, name := range files {
		text := readExample(t, name)
		all += text
		names := metricName.FindAllString(text, -1)
		if len(names) < 5 {
			t.Errorf("%s names only %d metrics", name, len(names))
		}
		for _, n := range names {
			if !slices.Contains(known, n) {
				t.Errorf("%s: there is no metric %s", name, n)
			}
		}
	}
	for _, n := range known {
		base := strings.NewReplacer("_bucket", "", "_sum", "", "_count", "").Replace(n)
		if strings.HasPrefix(n, "acescope_") && !strings.Contains(all, base) {
			t.Errorf("no example and no guide names %s", n)
		}
	}
}

// TestDashboard checks the structure of the dashboard as Grafana imports it.
func TestDashboard(t *testing.T) {
	var d struct {
		UID    string `json:"uid"`
		Title  string `json:"title"`
		Panels []struct {
			ID      int    `json:"id"`
			Type    string `json:"type"`
			Title   string `json:"title"`
			GridPos struct {
				H, W, X, Y int
			} `json:"gridPos"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal([]byte(readExample(t, "dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || len(d.Panels) < 20 {
		t.Errorf("dashboard %q with %d panels", d.Title, len(d.Panels))
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d %q: the ID is not unique, or it is empty", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("panels %q and %q overlap", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			if strings.Count(target.Expr, "(") != strings.Count(target.Expr, ")") ||
				!strings.Contains(target.Expr, `namespace="$namespace"`) {
				t.Errorf("panel %q: expression %s", p.Title, target.Expr)
			}
		}
	}
}
