// Package nightly is the kind of the runs of NightlyReport: how many rows a report has, and who gets it.
package nightly

import (
	"encoding/json"
	"strconv"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/kind"
	"acescope/engine/kind/workflow"
	"acescope/engine/temporal/history"
)

// Kind recognizes runs of NightlyReport.
var Kind = kind.Kind{Type: "NightlyReport", New: func() kind.Fold { return &fold{Fold: workflow.Kind.New()} }}

type fold struct {
	kind.Fold
	rows  int
	event int64
	to    string
}

func (f *fold) Clone() kind.Fold {
	c := *f
	c.Fold = f.Fold.Clone()
	return &c
}

func (f *fold) Apply(e *historypb.HistoryEvent) kind.Effect {
	effect := f.Fold.Apply(e)
	if a := e.GetWorkflowExecutionSignaledEventAttributes(); a.GetSignalName() == "counted" {
		_ = json.Unmarshal(history.JSON(a.GetInput()), &f.rows)
		f.event = e.GetEventId()
	}
	if a := e.GetWorkflowExecutionStartedEventAttributes(); a != nil {
		_ = json.Unmarshal(history.JSON(a.GetInput()), &f.to)
	}
	return effect
}

func (f *fold) Sections(b kind.Books, e *historypb.HistoryEvent) []kind.Section {
	var l kind.Sections
	l.Add("Report", "", kind.Item{Event: f.event, Fields: kind.Fields(
		kind.Field{Label: "rows", Text: strconv.Itoa(f.rows)}, kind.Field{Label: "to", Text: f.to})})
	return append(l, f.Fold.Sections(b, e)...)
}
