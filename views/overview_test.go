package views

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	"acescope/engine/agents/transcript"
	"acescope/engine/learning/playbook"
	"acescope/sources/cluster"
	"acescope/sources/costs"
	"acescope/sources/playbooks"
	"acescope/sources/runs"
	"acescope/views/console"
)

// withoutRuns has no runs, but transcripts with usage today, three days ago, and last month.
func withoutRuns(rows int) *snapshot {
	s := ready()
	s.Transcripts = someTranscripts()
	s.Transcripts.Rows = s.Transcripts.Rows[:rows]
	for i := range s.Transcripts.Rows {
		t := *s.Transcripts.Rows[i].Transcript
		for _, ago := range []int{0, 3, 40} {
			day := noon.AddDate(0, 0, -ago).Local().Format(time.DateOnly)
			t.Summary.Days = append(t.Summary.Days, transcript.DayUse{Day: day, Model: "m", CostUSD: 1.25,
				Priced: true,
				Tokens: transcript.Tokens{Input: 1000}})
		}
		s.Transcripts.Rows[i].Transcript = &t
		s.Transcripts.Sessions = append(s.Transcripts.Sessions, &t)
	}
	return s
}

// busy has a running demo, an approval that waits, every kind of finding, a playbook and costs.
func busy() *snapshot {
	live := learnt("demo-7", "finance", 40, 6, 0.002)
	live.Status, live.Close, live.Progress.TotalTasks = ace.Running, time.Time{}, 120
	live.Progress.Status, live.Progress.Stage = ace.Running, ace.StageLearning
	s := listed(learnt("plain", "finance", 100, 5, 0.009), live)
	s.Triage = ailing().Triage
	s.Approvals = engineSnap().Approvals
	s.Costs = &costs.Costs{Rows: someCosts().Transcripts.Sessions}
	version := func(seq int, why string) playbook.Version {
		return playbook.Version{Added: 1, Bullets: seq, Source: playbook.Source{
			TaskID: fmt.Sprint("demo-7-e1-000", seq), Rationale: why, At: noon.Add(-time.Minute)}}
	}
	s.Books = &playbooks.Playbooks{Branch: playbook.Branch{Name: "demo-7", Versions: 9}, From: 8,
		Versions: []playbook.Version{
			version(8, "a formula \x1b[31mwas missing"), version(9, ""),
		}}
	return s
}

func TestOverview(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
		t.Run(fmt.Sprint(size[0]), func(t *testing.T) {
			golden.RequireEqual(t, newOverview(t, busy(), size[0], size[1]).plain())
		})
	}
	for size := range 8 {
		newOverview(t, busy(), 40+20*size, 10+3*size).plain()
	}
}

// Open runs outside experiments have a section of their own.
func TestOverviewOpenRuns(t *testing.T) {
	s := busy()
	alone := many(1)[0]
	alone.TaskID, alone.Experiment = "alone-1", ""
	s.Runs.Rows = append([]runs.Run{alone, many(2)[1]}, s.Runs.Rows...)
	sc := newOverview(t, s, 120, 40)
	sc.has("Other open runs")
	sc.press("]", "]", "enter")
	sc.has("▸2 run")
	if got := sc.last("select "); got != "ace/q-00001 run-q-00001" {
		t.Errorf("opened %s", got)
	}
}

// Each row opens what it speaks of, and esc leads back.
func TestOverviewOpens(t *testing.T) {
	for screen, keys := range map[string][]string{
		"0 agents":      {"g", "enter"},
		"5 experiments": {"]", "enter"},
		"2 run":         {"]", "]", "enter"},
		"4 playbook":    {"]", "]", "]", "enter"},
		"$ cost":        {"]", "]", "]", "]", "enter"},
	} {
		sc := newOverview(t, busy(), 200, 50)
		sc.press(keys...)
		sc.has("▸" + screen)
		sc.press("esc")
		sc.has("▸H overview")
	}
	sc := newOverview(t, busy(), 120, 40)
	sc.has("+69.5 pp)")
	for row, title := range []string{"Cost by day", "Cost by experiment", "Cost by model"} {
		opened := newOverview(t, busy(), 200, 50)
		opened.press(append([]string{"]", "]", "]", "]"}, append(repeated("j", row), "enter")...)...)
		opened.has(title)
	}
	sc.press("]", "j")
	sc.has("100/100")
	if got := sc.last("experiments "); got != "[ace-experiment/plain]" {
		t.Errorf("the curve of the experiment under the cursor was not requested, but %s", got)
	}
}

// Without runs there are the agents of this machine and what to do next. Runs from files are listed.
func TestOverviewWithoutRuns(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		t.Run(fmt.Sprint(size[0]), func(t *testing.T) {
			golden.RequireEqual(t, newOverview(t, withoutRuns(3), size[0], size[1]).plain())
		})
	}
	sc := newOverview(t, withoutRuns(3), 80, 24)
	sc.has("needs no API key")
	sc.has("3 sessions")
	sc.has("today $3.75")
	sc.has("this week $3.75") // noon is a Monday
	sc.has("this month $7.50")
	sc.press("]", "enter")
	sc.has("Conversation")
	sc.press("esc", "]", "j", "j", "j", "enter")
	sc.has("Agents")
	sc.press("H")
	sc.has("acescope observe install")
	sc.show(ready(many(3)...))
	sc.has("1 lists the runs")
	sc.press("1")
	sc.show(ready())
	sc.has("no runs yet")
	sc.has("n starts an experiment or a task")
	sc = newOverview(t, withoutRuns(0), 80, 24)
	sc.has("┃▸ d ") // without sessions, the next steps come first
	sc.has("Next steps 1/7")

	files := full(3)
	files.Connection.Mode = cluster.ModeFile
	newOverview(t, files, 80, 24).has("▸1 runs")
}

// The demo starts after a confirmation.
func TestStartDemo(t *testing.T) {
	sc := newOverview(t, ready(), 80, 24)
	sc.press("d", "n")
	if told := sc.store.heard(); slices.Contains(told, "demo") {
		t.Errorf("told %q", told)
	}
	sc.press("d")
	sc.has("Start the demo?")
	sc.model.Update(sc.press("y")())
	sc.has("▸H overview")
	sc.has("the demo has started")
	if told := sc.store.heard(); !slices.Contains(told, "demo") {
		t.Errorf("told %q", told)
	}
}

// A hidden list of experiments does not request its own curves.
func TestOverviewKeepsItsCurve(t *testing.T) {
	sc := newScreen(t, three(), plainLook, 120, 40)
	sc.press("5", "j", "H")
	want := "experiments [ace-experiment/night-3]"
	for range 2 {
		if got := sc.lastHeard("experiments "); got != want {
			t.Errorf("the store heard %q, want %q", got, want)
		}
		sc.show(three())
	}
}

// Actions apply to the run or the experiment under the cursor, and not to marks of another screen.
func TestActionsUnderTheCursor(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want string
	}{
		{[]string{"5", "x"}, "ace-experiment/night-3"},
		{[]string{"5", "j", "x"}, "tuned has already closed"},
		{[]string{"5", "f"}, "an experiment cannot be forked"},
		{[]string{"5", "t"}, "▸9 replay"},
		{[]string{"5", "W"}, "opened experiment night-3"},
		{[]string{"H", "g", "x"}, "ace-experiment/night-3"},
		{[]string{"H", "g", "t"}, "▸9 replay"},
		{[]string{"H", "]", "x"}, "this row has no run"},
		{[]string{"H", "]", "t"}, "this row has no run"},
		{[]string{"H", "]", "f"}, "this row has no run"},
		{[]string{"2", "x"}, "Cancel this run?"},
	} {
		s := three()
		s.Books = busy().Books
		st := newStore(s)
		web := func(context.Context, runs.ID) (string, bool, error) { return "", true, nil }
		sc := newScreenOf(t, st, console.Options{Controls: st, Actions: st.actions(), Location: time.UTC,
			Web: web}, plainLook, 120, 40)
		sc.press("g", "space", "j")
		sc.run(sc.press(c.keys...))
		sc.has(c.want)
	}
}

// w answers what waits on the row: it opens the question about a tool call, or the run.
func TestOverviewAnswers(t *testing.T) {
	sc := newOverview(t, busy(), 120, 40)
	sc.has("w answer")
	sc.run(sc.press("w"))
	sc.has("Allow Bash?")
	sc.press("n")
	sc.has("▸0 agents")
	sc.press("H", "]", "w")
	sc.lacks("w answer")
	sc.has("nothing waits on this row")
	sc = newOverview(t, waitingForReview(t), 120, 40)
	sc.press("w")
	sc.has("▸2 run")
	sc.has("press w again to approve or reject")
	sc.press("w")
	sc.has("The ratio was inverted.")
}

// The costs say that they do not include an evaluation that is in progress.
func TestOverviewCostOfAnEvaluation(t *testing.T) {
	s := busy()
	newOverview(t, s, 120, 40).lacks("without evaluations in progress")
	s.Experiments.Rows[1].Progress.Stage = ace.StageEvaluating
	newOverview(t, s, 120, 40).has("without evaluations in progress")
}

// A narrow overview names the experiments. Without runs of the filter, it says how to clear the filter.
func TestSmallOverview(t *testing.T) {
	sc := newOverview(t, three(), 40, 10)
	sc.has("night-3")
	s := ready()
	s.Runs.Query = `TaskId="none"`
	sc = newOverview(t, s, 40, 10)
	sc.has("no run matches; esc clears the filter")
	sc.press("esc")
	if got := sc.last("query "); got != "" {
		t.Errorf("the filter is %q", got)
	}
}
