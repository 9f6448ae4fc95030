package tui

import (
	"testing"
	"time"
)

func TestFramesCount(t *testing.T) {
	at := time.Unix(1_000, 0)
	f := &Frames{now: func() time.Time { return at }}
	f.received(&Status{Seq: 1})
	f.received(&Status{Seq: 5})
	f.received(&Status{Seq: 5})
	for i := range 30 {
		at = time.Unix(1_000+int64(i/10), 0)
		f.drawn(time.Duration(i) * time.Millisecond)
	}
	at = time.Unix(1_003, 0)
	want := Rate{Frames: 30, Shown: 2, Skipped: 3, PerSecond: 3, Slowest: 29 * time.Millisecond}
	if got := f.Rate(); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	at = time.Unix(1_100, 0)
	if got := f.Rate(); got.PerSecond != 0 || got.Slowest != 0 || got.Frames != 30 {
		t.Errorf("a minute and a half later %+v, want no rate", got)
	}
	var none *Frames
	none.drawn(time.Second)
	none.received(&Status{Seq: 9})
}
