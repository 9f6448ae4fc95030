package playbook

import "fmt"

// Counter names, as in the metadata of a TAG.
const (
	helpful = "helpful"
	harmful = "harmful"
	neutral = "neutral"
)

// tally is an amount to add to a bullet's counters.
type tally struct{ helpful, harmful, neutral int }

// counters reads a tally from metadata, or says what is wrong with it.
func counters(metadata map[string]int) (t tally, wrong string) {
	known := 0
	for _, c := range []struct {
		name string
		to   *int
	}{{helpful, &t.helpful}, {harmful, &t.harmful}, {neutral, &t.neutral}} {
		n, ok := metadata[c.name]
		if !validCount(n) {
			return tally{}, fmt.Sprintf("%s=%d is out of range: counters only grow", c.name, n)
		}
		if ok {
			known++
		}
		*c.to = n
	}
	if known < len(metadata) {
		return tally{}, "metadata holds more than the counters helpful, harmful and neutral"
	}
	return t, ""
}

func (t tally) metadata() map[string]int {
	var m map[string]int
	set := func(name string, n int) {
		if n == 0 {
			return
		}
		if m == nil {
			m = map[string]int{}
		}
		m[name] = n
	}
	set(helpful, t.helpful)
	set(harmful, t.harmful)
	set(neutral, t.neutral)
	return m
}

func (b *Bullet) count(t tally) {
	b.Helpful += t.helpful
	b.Harmful += t.harmful
	b.Neutral += t.neutral
}
