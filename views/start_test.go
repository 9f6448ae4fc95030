package views

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/agents/transcript"
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
			t.Summary.Days = append(t.Summary.Days, transcript.DayUse{Day: day, Model: "m", CostUSD: 1.25, Priced: true,
				Tokens: transcript.Tokens{Input: 1000}})
		}
		s.Transcripts.Rows[i].Transcript = &t
		s.Transcripts.Sessions = append(s.Transcripts.Sessions, &t)
	}
	return s
}

func TestStartScreen(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		t.Run(fmt.Sprint(size[0]), func(t *testing.T) {
			golden.RequireEqual(t, newScreen(t, withoutRuns(3), plainLook, size[0], size[1]).plain())
		})
	}
	sc := newScreen(t, withoutRuns(3), plainLook, 80, 24)
	sc.has("3 sessions")
	sc.has("today $3.75")
	sc.has("this week $3.75") // noon is a Monday
	sc.has("this month $7.50")
	sc.press("]", "enter")
	sc.has("Conversation")
	sc.press("esc", "H", "]", "]", "j", "enter")
	sc.has("Agents")
	sc.press("H", "j", "j")
	sc.press("y")
	sc.has("acescope observe install")
}

// The start screen is left when the first run appears, unless the user has pressed a key.
func TestStartScreenGivesWayToRuns(t *testing.T) {
	sc := newScreen(t, ready(), plainLook, 80, 24)
	sc.has("Next steps")
	sc.show(ready(many(3)...))
	if strings.Contains(sc.plain(), "Next steps") {
		t.Errorf("the start screen is shown beside runs:\n%s", sc.plain())
	}
	sc.has("q-00001")

	sc = newScreen(t, ready(), plainLook, 80, 24)
	sc.press("j")
	sc.show(ready(many(3)...))
	sc.has("Next steps")
	sc.has("1 lists the runs")
	sc.press("1")
	sc.show(ready())
	sc.has("no runs yet")
	sc.has("H is the start screen")
}

// The demo starts after a confirmation, and the list of runs waits for it.
func TestStartDemo(t *testing.T) {
	sc := newScreen(t, ready(), plainLook, 80, 24)
	sc.press("d", "n")
	if told := sc.store.heard(); slices.Contains(told, "demo") {
		t.Errorf("told %q", told)
	}
	sc.press("d")
	sc.has("Start the demo?")
	sc.model.Update(sc.press("y")())
	sc.has("▸1 runs")
	sc.has("the demo has started")
	if told := sc.store.heard(); !slices.Contains(told, "demo") {
		t.Errorf("told %q", told)
	}
}
