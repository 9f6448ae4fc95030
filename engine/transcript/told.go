package transcript

import (
	"bytes"
	"math"
	"strconv"
)

// Told is what Claude Code counted as the cost of its session, in dollars, where the line is
// such a count; ok is false for other lines. A process writes one when it ends, and the next
// one counts on from there. One that is killed writes none; nor do versions that count per
// process (2.1.240 does not, 2.1.290 does).
func Told(raw []byte) (usd float64, ok bool) {
	if !bytes.Contains(raw, []byte(`"cost-state"`)) { // of most lines this is all that is read
		return 0, false
	}
	kind := ""
	whole := members(raw, func(key, v []byte) bool {
		switch string(key) {
		case "type":
			kind = string(bare(v))
		case "totalCostUSD":
			f, err := strconv.ParseFloat(string(v), 64)
			usd, ok = f, err == nil && f >= 0 && !math.IsInf(f, 0)
		}
		return true
	})
	return usd, ok && whole && kind == "cost-state"
}
