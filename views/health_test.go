package views

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/sources/cluster"
	"acescope/sources/system"
	"acescope/theme"
)

// testHost has no failing checks.
func testHost() *snapshot {
	s := full(60)
	poller := system.Poller{Identity: "acescope 4711@host", Last: noon.Add(-3 * time.Second), Rate: 100_000}
	s.System = &system.System{At: noon.Add(-time.Second), Mode: "embedded", Address: "127.0.0.1:40213",
		Space: "ace-dev",
		Host: cluster.Host{PID: 4711, Version: "1.4.0", Started: noon.Add(-3 * time.Hour),
			DataDir: "/home/ada/.local/share/acescope",
			Free:    60 << 30, Worker: true, Size: 712 << 20, Files: 1234},
		Server: system.ServerInfo{Version: "1.32.1", Cluster: "active", Store: "sqlite", Search: "sqlite",
			Shards: 1, AnsweredMS: 0.7},
		Queues: []system.Queue{
			{Name: "ace", Kind: "workflow", Ours: true,
				Pollers: []system.Poller{poller,
					{Identity: "acescope 4712@host", Last: noon.Add(-50 * time.Second)}}, In: 7.9, Out: 7.9},
			{Name: "ace", Kind: "activity", Ours: true, Pollers: []system.Poller{poller}, In: 30, Out: 30}},
		OpenRuns: 3, TotalRuns: 10_214,
		Sources: []system.SourceAge{{Name: "engine", State: cluster.OK, Text: "embedded, 127.0.0.1:40213",
			Since: noon.Add(-time.Minute)},
			{Name: "list of runs", State: cluster.OK, Text: "read every 2s", Since: noon.Add(-time.Second)},
			{Name: "selected run", State: cluster.OK, Text: "live query", Since: noon, Dropped: 12}},
		Calls: []cluster.CallStat{
			{Name: "RespondActivityTaskCompleted", PerMinute: 300, P50MS: 2, P95MS: 9, Total: 4000},
			{Name: "ListWorkflowExecutions", PerMinute: 30, P50MS: 1, P95MS: 4, Total: 400},
			{Name: "PollActivityTaskQueue", Waits: true, PerMinute: 12, Total: 100}},
		Process: system.Process{PID: 4711, Goroutines: 240, Heap: 60 << 20, HeapSys: 90 << 20, RSS: 150 << 20,
			GCs: 80, GCPause: 9 * time.Millisecond,
			Snapshots: 5210, Started: noon.Add(-3 * time.Hour)}}
	return s
}

func ill(change func(*system.System)) *snapshot {
	s := testHost()
	change(s.System)
	return s
}

func noWorker() *snapshot {
	return ill(func(s *system.System) {
		s.Queues[1].Pollers, s.Queues[1].Backlog, s.Queues[1].OldestMS = nil, 42, 95_000
	})
}

func TestHealthScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		for look, styles := range map[string]theme.Styles{"dark": theme.New(true, false),
			"nocolor": theme.New(true, true)} {
			t.Run(fmt.Sprintf("full-%dx%d-%s", size[0], size[1], look), func(t *testing.T) {
				sc := newScreen(t, testHost(), styles, size[0], size[1])
				sc.press("8")
				golden.RequireEqual(t, sc.drawn())
			})
		}
	}
	missing := ill(func(s *system.System) { s.Attributes = []string{"ExitStatus", "Phase"} })
	away := lost(ill(func(s *system.System) {}))
	for name, c := range map[string]struct {
		snap *snapshot
		keys []string
	}{
		"no-worker":        {noWorker(), []string{"8", "e"}},
		"no-worker-detail": {noWorker(), []string{"8", "e", "tab"}},
		"missing":          {missing, []string{"8", "e"}},
		"missing-detail":   {missing, []string{"8", "e", "tab"}},
		"away":             {away, []string{"8"}},
		"away-at-first":    {lost(&snapshot{}), []string{"8"}},
		"calls":            {testHost(), []string{"8", "]", "]", "]", "tab"}},
		"process":          {testHost(), []string{"8", "G", "tab"}},
		"loading":          {full(3), []string{"8"}},
		"failing-calls": {ill(func(s *system.System) {
			s.Calls[1].Failed, s.Calls[1].Failures, s.Calls[1].LastError, s.Calls[1].LastAt = 4, 9, "no host",
				noon.Add(-4*time.Second)
		}), []string{"8", "e", "tab"}},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScreen(t, c.snap, plainLook, 80, 24)
			sc.press(c.keys...)
			golden.RequireEqual(t, sc.plain())
		})
	}
}

func TestHealthIsExact(t *testing.T) {
	t.Parallel()
	evil := ill(func(s *system.System) {
		bad := "a\x1b[2J\x1b]0;owned\x07b財務\u202e"
		s.Queues[0].Pollers[0].Identity, s.Calls[0].Name, s.Calls[0].LastError, s.Sources[0].Text,
			s.Host.DataDir = bad, bad, bad, bad, bad
		s.Server.Version = bad
	})
	for _, snap := range []*snapshot{testHost(), noWorker(), evil, full(3), lost(&snapshot{})} {
		sc := newScreen(t, snap, theme.New(true, false), 80, 24)
		for _, keys := range [][]string{{"8"}, {"]"}, {"tab"}, {"tab", "]", "]", "a"}, {"tab"}} {
			sc.press(keys...)
			for w := 40; w <= 220; w += 9 {
				for _, h := range []int{10, 11, 17, 24, 50} {
					sc.resize(w, h)
					if out := sc.drawn(); strings.ContainsAny(out, "\a\r") || strings.Contains(out, "\x1b]") {
						t.Fatal("what came from outside reached the terminal")
					}
				}
			}
			if t.Failed() {
				t.Fatalf("after %v", keys)
			}
		}
	}
}

// Errors are shown first, and e goes there.
func TestHealthSaysWhatIsWrong(t *testing.T) {
	sc := newScreen(t, testHost(), plainLook, 80, 24)
	sc.press("8")
	sc.has("✓ all checks passed")
	sc.show(noWorker())
	sc.has("1 error")
	sc.has("no worker polls: nothing runs")
	sc.press("e")
	sc.has("▸ ‼ error ace activity")
	sc.press("tab")
	sc.has("acescope serve --data-dir")
	sc.show(lost(testHost()))
	sc.press("tab")
	sc.has("cannot be reached")
	if h := sc.store.heard(); h[0] == "" || !strings.Contains(strings.Join(h, ";"), "look health true") {
		t.Errorf("%q", h)
	}
}
