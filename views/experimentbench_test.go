package views

import (
	"testing"

	"acescope/sources/experiments"
	"acescope/theme"
	experimentsview "acescope/views/experiments"
)

// BenchmarkExperimentPlots draws four experiments of 50,000 tasks with nothing cached.
func BenchmarkExperimentPlots(b *testing.B) {
	var all []*experiments.Series
	for _, name := range []string{"a", "b", "c", "d"} {
		all = append(all, learnt(name, "d", 50_000, 3, 0.01))
	}
	s := theme.New(true, false)
	for _, m := range experimentsview.PlotMetrics {
		b.Run(string(m), func(b *testing.B) {
			for b.Loop() {
				chart := experiments.NewChart(all, m, experiments.DefaultWindow, false)
				experimentsview.ChartPlot(chart, false).Draw(110, 40, s)
			}
		})
	}
	b.Run("compare", func(b *testing.B) {
		for b.Loop() {
			experiments.Compare(all[0], all[1])
		}
	})
}
