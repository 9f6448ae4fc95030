package history

import (
	"strings"

	enumspb "go.temporal.io/api/enums/v1"

	"acescope/engine/ace"
)

// AttrStatus is the search attribute of the server's status, whose values are those of [ExecutionStatus].
const AttrStatus = "ExecutionStatus"

// StatusOf returns the status of a workflow that the server reports, or "" if it reports none.
func StatusOf(s enumspb.WorkflowExecutionStatus) ace.Status {
	if s == enumspb.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED {
		return ""
	}
	var b strings.Builder
	for i, c := range s.String() {
		if i > 0 && c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(c)
	}
	return ace.Status(strings.ToLower(b.String()))
}

// ExecutionStatus returns the value of [AttrStatus] for a status, or "" if the server has no such status.
func ExecutionStatus(s ace.Status) string {
	for n := range enumspb.WorkflowExecutionStatus_name {
		if e := enumspb.WorkflowExecutionStatus(n); s != "" && StatusOf(e) == s {
			return e.String()
		}
	}
	return ""
}
