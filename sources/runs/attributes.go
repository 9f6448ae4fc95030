package runs

import (
	"time"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// attributes are the fields of a run by the search attribute that sets or names them.
var attributes = map[string]func(*Run) *string{
	"WorkflowId":       func(r *Run) *string { return &r.WorkflowID },
	"RunId":            func(r *Run) *string { return &r.RunID },
	AttrType:           func(r *Run) *string { return &r.Type },
	ace.AttrTask:       func(r *Run) *string { return &r.TaskID },
	ace.AttrExperiment: func(r *Run) *string { return &r.Experiment },
	ace.AttrDataset:    func(r *Run) *string { return &r.Dataset },
	ace.AttrModel:      func(r *Run) *string { return &r.Model },
	ace.AttrAdapter:    func(r *Run) *string { return &r.Adapter },
	ace.AttrPhase:      func(r *Run) *string { return (*string)(&r.Phase) },
	ace.AttrBlueprint:  func(r *Run) *string { return &r.Blueprint },
	ace.AttrRunner:     func(r *Run) *string { return &r.Runner },
}

// Value returns the value of a search attribute, "" if the run does not hold it. It holds ExitStatus only for
// a run that completed: otherwise the attribute repeats the status.
func (r *Run) Value(attribute string) string {
	switch {
	case attribute == history.AttrStatus:
		return history.ExecutionStatus(r.Status)
	case attribute == ace.AttrExit && r.Status == ace.Completed:
		return string(ace.ExitOf(r.Status, r.Verdict))
	case attribute == ace.AttrTask && r.Flow != "":
		return r.Flow
	}
	if field := attributes[attribute]; field != nil {
		return *field(r)
	}
	return ""
}

// AttrType is the server's attribute of the workflow type.
const AttrType = "WorkflowType"

// AttrProblems is the search attribute in which a server says that five or more workflow tasks of a run
// failed in a row. It stays after the run has closed.
const AttrProblems = "TemporalReportedProblems"

const (
	attributesHealth = "search attributes"
	checkEvery       = 5 * time.Minute
	recheckEvery     = 15 * time.Second // while attributes are missing
)
