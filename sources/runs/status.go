package runs

import (
	enumspb "go.temporal.io/api/enums/v1"

	"acescope/engine/ace"
)

func exitOfStatus(s enumspb.WorkflowExecutionStatus) ace.ExitStatus {
	switch s {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return ace.Running
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return ace.Success
	case enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return ace.Continued
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return ace.Canceled
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return ace.Timeout
	}
	return ace.Failed
}
