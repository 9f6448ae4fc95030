package memory

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestKeeper checks when a process counts as idle, and that it works with the settings for load at once.
func TestKeeper(t *testing.T) {
	var did []string
	k := &Keeper{
		setGC:        func(percent int) { did = append(did, fmt.Sprintf("gc %d", percent)) },
		free:         func() { did = append(did, "free") },
		releasePages: func() { did = append(did, "release") },
	}
	now := time.Now()
	total := uint64(0)
	live := uint64(9 << 20)
	k.worked = now
	work := func(d time.Duration, rate uint64) string {
		did = nil
		for end := now.Add(d); now.Before(end); {
			now = now.Add(every)
			total += rate * uint64(every/time.Second)
			k.check(now, total, live)
		}
		return strings.Join(did, ", ")
	}
	for _, step := range []struct {
		d    time.Duration
		rate uint64
		want string
	}{
		{time.Minute, 2 * busyRate, ""},
		{idleAfter - every, busyRate / 2, ""},
		{every, busyRate / 2, "gc 100, free, release"},
		{releaseEvery - every, 0, ""},
		{every, 0, "release"},
		{releaseEvery, live / 6 / uint64(releaseEvery/time.Second), "release"},
		{releaseEvery, live / 3 / uint64(releaseEvery/time.Second), "free, release"},
		{releaseEvery, 0, "release"},
		{every, 2 * busyRate, "gc 200"},
		{time.Minute, 2 * busyRate, ""},
	} {
		if got := work(step.d, step.rate); got != step.want {
			t.Errorf("after %s at %d bytes per second: %q, want %q", step.d, step.rate, got, step.want)
		}
	}
	live = smallHeap
	work(idleAfter, 0)
	if got := work(releaseEvery, live/3/uint64(releaseEvery/time.Second)); got != "release" {
		t.Errorf("idle with a large heap: %q, want %q", got, "release")
	}
}
