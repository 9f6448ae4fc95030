package histories

import (
	"encoding/json"
	"time"

	"acescope/sources/runs"
)

// MaxOutputLines are the newest lines of what a run's program writes that its log shows.
const MaxOutputLines = MaxLog / 2

// outputKinds are the kinds of log lines by what a program wrote them to.
var outputKinds = map[string]string{"stdout": "out", "stderr": "err"}

// OutputLine is a line of a live log; false for what is none.
func OutputLine(raw []byte) (runs.LogLine, bool) {
	var l struct {
		At     time.Time `json:"at"`
		Stream string    `json:"stream"`
		Text   string    `json:"text"`
		Note   string    `json:"note"`
	}
	if json.Unmarshal(raw, &l) != nil || outputKinds[l.Stream] == "" {
		return runs.LogLine{}, false
	}
	if l.Note != "" {
		return runs.LogLine{At: l.At, Kind: "status", Text: l.Note}, true
	}
	return runs.LogLine{At: l.At, Kind: outputKinds[l.Stream], Text: l.Text}, true
}

// WithOutput is the log of a run together with what its program wrote, in the order of their
// times. Both are in order already, but for clocks that differ.
func WithOutput(log, output []runs.LogLine) []runs.LogLine {
	all := make([]runs.LogLine, 0, len(log)+len(output))
	for _, l := range log {
		for len(output) > 0 && output[0].At.Before(l.At) {
			all, output = append(all, output[0]), output[1:]
		}
		all = append(all, l)
	}
	return append(all, output...)
}
