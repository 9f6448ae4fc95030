package sources

import (
	"errors"
	"testing"
	"time"

	"acescope/engine/learning/playbook"
	"acescope/sources/experiments"
	"acescope/sources/histories"
	"acescope/sources/logs"
	"acescope/sources/playbooks"
	"acescope/sources/runs"
	"acescope/sources/system"
)

func TestSourcesTellWhatWasDropped(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	events := &histories.EventLog{Unread: 7, Updated: at}
	books := &playbooks.Playbooks{Branches: make([]playbook.Branch, 2),
		Branch: playbook.Branch{Name: "a", Versions: 3}, Updated: at}
	curves := &experiments.Experiments{Rows: make([]experiments.Experiment, 4), More: 2,
		Series: []*experiments.Series{{Dropped: 5}}, Loaded: at}
	lines := &logs.Logs{Lines: make([]logs.Entry, 9), Files: make([]logs.File, 1), Dropped: 11, Updated: at}
	facets := &runs.Facets{Err: errors.New("no room").Error(), Counted: at}
	want := map[string]system.Check{
		"timeline":    {State: system.CheckOK, Text: "0 events held, 7 not read yet"},
		"playbooks":   {State: system.CheckOK, Text: "2 branches, 3 versions of a"},
		"experiments": {State: system.CheckOK, Text: "4 listed, 1 with curves, 7 dropped"},
		"logs":        {State: system.CheckOK, Text: "9 lines of 1 file, 11 dropped"},
		"facets":      {State: system.CheckWarning, Text: "no room"},
	}
	for _, src := range shownAges(events, books, curves, lines, facets) {
		c := src.Check()
		if w, ok := want[c.Name]; ok && (c.State != w.State || c.Text != w.Text || !c.At.Equal(at)) {
			t.Errorf("%s: %+v, want %+v", c.Name, c, w)
		}
		delete(want, c.Name)
	}
	if len(want) > 0 {
		t.Errorf("not told: %v", want)
	}
}
