package experiments

import (
	"strconv"
	"strings"
)

// Keep is what outlives the process: marks, filter, order, and what is plotted how.
func (v *experimentList) Keep() map[string]string {
	return map[string]string{
		"marks": strings.Join(v.Marks, "\n"), "cursor": v.Cursor, "filter": v.Filter, "order": strconv.Itoa(v.Order),
		"metric": strconv.Itoa(v.Metric), "window": strconv.Itoa(v.Window), "time": strconv.FormatBool(v.ByTime),
	}
}

// Restore takes what Keep gave; what does not fit is left as it is.
func (v *experimentList) Restore(kept map[string]string) {
	number := func(name string, low, high int, into *int) {
		if n, err := strconv.Atoi(kept[name]); err == nil && n >= low && n < high {
			*into = n
		}
	}
	number("order", 0, len(experimentOrders), &v.Order)
	number("metric", AllMetrics, len(PlotMetrics), &v.Metric)
	number("window", 0, len(windows), &v.Window)
	v.ByTime = kept["time"] == "true"
	v.Cursor, v.Filter, v.stale = kept["cursor"], kept["filter"], true
	v.Marks = nil
	for _, id := range strings.Split(kept["marks"], "\n") {
		if id != "" && len(v.Marks) < len(plotKey{}.series) {
			v.Marks = append(v.Marks, id)
		}
	}
}
