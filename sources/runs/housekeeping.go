package runs

import (
	"strings"

	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// notHousekeeping leaves out the workflows that only keep runs going: of runners, and of the
// dispatcher. notSteps leaves out the runs of blueprints that serve a step of a task.
const (
	notHousekeeping = `WorkflowType NOT IN ("` + runner.Workflow + `", "` + runner.DispatcherWorkflow + `")`
	notSteps        = `WorkflowId NOT STARTS_WITH "` + run.IDPrefix + run.StepPrefix + `"`
)

// work narrows a query to what somebody did or asked for, unless it says itself which
// workflows it wants; one about blueprints or runners is about steps too. It begins as the
// query does, so that places in it stay what they are.
func work(query string) string {
	lower := strings.ToLower(query)
	about := func(attribute string) bool { return strings.Contains(lower, strings.ToLower(attribute)) }
	narrow := notHousekeeping
	switch {
	case about("WorkflowType"), about("WorkflowId"), about("RunId"):
		return query
	case !about(ace.AttrBlueprint) && !about(ace.AttrRunner):
		narrow += " AND " + notSteps
	}
	switch {
	case strings.TrimSpace(query) == "":
		return narrow
	case about(" or "):
		return And(query, narrow)
	}
	return query + " AND " + narrow
}
