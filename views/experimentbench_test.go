package views

import (
	"testing"

	"acescope/sources"
	"acescope/theme"
)

// BenchmarkExperimentPlots draws four experiments of 50,000 tasks with nothing cached.
func BenchmarkExperimentPlots(b *testing.B) {
	var all []*sources.Series
	for _, name := range []string{"a", "b", "c", "d"} {
		all = append(all, learnt(name, "d", 50_000, 3, 0.01))
	}
	s := theme.New(true, false)
	for _, m := range plotMetrics {
		b.Run(string(m), func(b *testing.B) {
			for b.Loop() {
				ExperimentPlot(all, m, sources.DefaultWindow, false, 110, 40, s)
			}
		})
	}
	b.Run("compare", func(b *testing.B) {
		for b.Loop() {
			sources.Compare(all[0], all[1])
		}
	})
}
