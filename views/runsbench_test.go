package views

import (
	"fmt"
	"testing"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
)

// events returns snapshots thirty times a second with 1,000 tool events a second on the selected run: its
// log, calls and counts change each time, the list every second time.
func events(n int) []*snapshot {
	out := moving(n)
	var log []runs.LogLine
	for i, s := range out {
		if i%2 == 1 {
			s.Runs = out[i-1].Runs
		}
		for e := range 33 {
			log = append(log, runs.LogLine{Event: int64(33*i + e), At: noon, Kind: "skill",
				Text: fmt.Sprintf(`lookup ok 2.4ms {"name":"formula %d"}`, 33*i+e)})
		}
		s.Detail.Log = append([]runs.LogLine(nil), log[max(0, len(log)-histories.MaxLog):]...)
		s.Detail.Events = int64(33 * i)
		s.Detail.Skills.Total += 33 * i
		s.Detail.Skills.Skills[0].Calls += 33 * i
	}
	return out
}

// benchScreen returns a console on the first snapshot, and all snapshots as messages.
func benchScreen(b *testing.B, snaps []*snapshot, keys ...string) (*screen, []tea.Msg) {
	sc := newScreen(b, snaps[0], theme.New(true, false), 200, 50)
	sc.press(append([]string{"j", "k"}, keys...)...) // stay on the run whose detail there is
	wait := sc.model.Init()().(tea.BatchMsg)[0]
	msgs := make([]tea.Msg, len(snaps))
	for i, s := range snaps {
		sc.store.set(s)
		msgs[i] = wait()
	}
	return sc, msgs
}

// BenchmarkEvents200x50 measures from a snapshot and a keystroke to the finished frame, with 10,000 loaded
// runs and 1,000 tool events a second.
func BenchmarkEvents200x50(b *testing.B) {
	sc, msgs := benchScreen(b, events(64))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		sc.model.Update(msgs[i%len(msgs)])
		sc.model.View()
		sc.model.Update(keyPress([]string{"j", "k"}[i%2]))
		sc.model.View()
		i++
	}
}

// BenchmarkSorted200x50 is the same with the 10,000 rows sorted again for each new list.
func BenchmarkSorted200x50(b *testing.B) {
	sc, msgs := benchScreen(b, events(64), "w", "s", "s", "s")
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		sc.model.Update(msgs[i%len(msgs)])
		sc.model.View()
		i++
	}
}
