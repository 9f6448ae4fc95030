package experiments

import (
	"fmt"
	"testing"

	"acescope/sources/cluster"
)

func TestKeptSeriesAreBounded(t *testing.T) {
	s := NewFeed(cluster.NewLink())
	for i := range maxKeptSeries + 3 {
		s.keepSeries(&Series{WorkflowID: fmt.Sprint(i), RunID: "r"})
	}
	if s.keptSeries("0", "r") != nil || s.keptSeries("10", "other") != nil || s.keptSeries("10", "r") == nil {
		t.Error("the newest must be kept, the oldest not")
	}
}

func TestShowExperimentsIsBounded(t *testing.T) {
	s := NewFeed(cluster.NewLink())
	s.Show(make([]string, MaxSeries+5))
	if got := len(s.series); got != MaxSeries {
		t.Errorf("%d series are wanted", got)
	}
}
