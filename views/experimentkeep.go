package views

import (
	"strconv"
	"strings"
)

// Keep is what outlives the process: marks, filter, order, and what is plotted how.
func (v *experimentList) Keep() map[string]string {
	return map[string]string{
		"marks": strings.Join(v.marks, "\n"), "cursor": v.cursor, "filter": v.filter, "order": strconv.Itoa(v.order),
		"metric": strconv.Itoa(v.metric), "window": strconv.Itoa(v.window), "time": strconv.FormatBool(v.byTime),
	}
}

// Restore takes what Keep gave; what does not fit is left as it is.
func (v *experimentList) Restore(kept map[string]string) {
	number := func(name string, low, high int, into *int) {
		if n, err := strconv.Atoi(kept[name]); err == nil && n >= low && n < high {
			*into = n
		}
	}
	number("order", 0, len(experimentOrders), &v.order)
	number("metric", allMetrics, len(plotMetrics), &v.metric)
	number("window", 0, len(windows), &v.window)
	v.byTime = kept["time"] == "true"
	v.cursor, v.filter, v.stale = kept["cursor"], kept["filter"], true
	v.marks = nil
	for _, id := range strings.Split(kept["marks"], "\n") {
		if id != "" && len(v.marks) < len(plotKey{}.series) {
			v.marks = append(v.marks, id)
		}
	}
}
