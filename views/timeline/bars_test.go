package timeline

import (
	"testing"
	"time"
)

func TestAxisTimes(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0", 500 * time.Microsecond: "500us",
		1500 * time.Millisecond: "1500ms", 30 * time.Second: "30s",
		90 * time.Second: "1m30s", 2 * time.Minute: "2m", 10 * time.Minute: "10m", 20*time.Minute +
			10*time.Second: "20m10s", time.Hour: "1h",
		90 * time.Minute: "1h30m", 10 * time.Hour: "10h", 20 * time.Hour: "20h", -time.Minute: "-1m"} {
		if got := axisTime(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
