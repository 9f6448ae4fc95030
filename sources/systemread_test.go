package sources

import (
	"errors"
	"testing"
	"time"
)

func TestSourcesTellWhatWasDropped(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	snap := &Snapshot{
		Events:      &EventLog{Left: 7, Cut: true, Updated: at},
		Books:       &Books{Branches: make([]BookBranch, 2), Branch: BookBranch{Name: "a", Versions: 3}, Updated: at},
		Experiments: &Experiments{Rows: make([]Experiment, 4), More: 2, Series: []*Series{{Dropped: 5}}, Loaded: at},
		Logs:        &Logs{Lines: make([]LogEntry, 9), Files: make([]LogFile, 1), Dropped: 11, Updated: at},
		Facets:      &Facets{Err: errors.New("no room").Error(), Counted: at},
	}
	want := map[string]Check{
		"timeline":    {State: CheckFine, Text: "0 events held, 7 dropped"},
		"playbooks":   {State: CheckFine, Text: "2 lines, 3 versions of a"},
		"experiments": {State: CheckFine, Text: "4 listed, 1 with curves, 7 dropped"},
		"logs":        {State: CheckFine, Text: "9 lines of 1 file, 11 dropped"},
		"facets":      {State: CheckOdd, Text: "no room"},
	}
	for _, src := range sourcesOf(snap) {
		c := src.check()
		if w, ok := want[c.Name]; ok && (c.State != w.State || c.Text != w.Text || !c.At.Equal(at)) {
			t.Errorf("%s: %+v, want %+v", c.Name, c, w)
		}
		delete(want, c.Name)
	}
	if len(want) > 0 {
		t.Errorf("not told: %v", want)
	}
}
