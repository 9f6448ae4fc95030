package tui

import (
	"testing"
	"time"

	"acescope/sources"
)

func TestFramesCount(t *testing.T) {
	at := time.Unix(1_000, 0)
	f := &Frames{now: func() time.Time { return at }}
	f.got(&sources.Snapshot{Seq: 1})
	f.got(&sources.Snapshot{Seq: 5})
	f.got(&sources.Snapshot{Seq: 5})
	for i := range 30 {
		at = time.Unix(1_000+int64(i/10), 0)
		f.drew(time.Duration(i) * time.Millisecond)
	}
	at = time.Unix(1_003, 0)
	want := sources.Screen{Frames: 30, Shown: 2, Skipped: 3, PerSecond: 3, Slowest: 29 * time.Millisecond}
	if got := f.Screen(); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	at = time.Unix(1_100, 0)
	if got := f.Screen(); got.PerSecond != 0 || got.Slowest != 0 || got.Frames != 30 {
		t.Errorf("a minute and a half later %+v, want no rate", got)
	}
	var none *Frames
	none.drew(time.Second)
	none.got(&sources.Snapshot{Seq: 9})
}
