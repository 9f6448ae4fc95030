package sources

import (
	"strings"

	"acescope/engine/runner"
)

// notHousekeeping leaves out the workflows that only keep runs going: of runners, and of the
// dispatcher.
const notHousekeeping = `WorkflowType NOT IN ("` + runner.Workflow + `", "` + runner.DispatcherWorkflow + `")`

// work narrows a query to what somebody did or asked for, unless it says itself which
// workflows it wants. It begins as the query does, so that places in it stay what they are.
func work(query string) string {
	lower := strings.ToLower(query)
	switch {
	case strings.TrimSpace(query) == "":
		return notHousekeeping
	case strings.Contains(lower, "workflowtype"), strings.Contains(lower, "workflowid"), strings.Contains(lower, "runid"):
		return query
	case strings.Contains(lower, " or "):
		return And(query, notHousekeeping)
	}
	return query + " AND " + notHousekeeping
}
