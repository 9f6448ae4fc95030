// Package kinds lists the kinds of runs. A new kind is a package below engine/kind and a line here.
package kinds

import (
	"acescope/engine/kind"
	"acescope/engine/kind/blueprint"
	"acescope/engine/kind/experiment"
	"acescope/engine/kind/flow"
	"acescope/engine/kind/session"
	"acescope/engine/kind/task"
	"acescope/engine/kind/workflow"
)

var all = []kind.Kind{task.Kind, experiment.Kind, session.Kind, blueprint.Kind, flow.Kind}

// Of returns the kind of the runs of a workflow type: [workflow.Kind] if no other kind recognizes it.
func Of(workflowType string) kind.Kind {
	for _, k := range all {
		if k.Type == workflowType {
			return k
		}
	}
	return workflow.Kind
}
