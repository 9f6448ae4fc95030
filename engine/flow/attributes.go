package flow

import (
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/run"
	"acescope/engine/session"
)

func keyword(name, value string) temporal.SearchAttributeUpdate {
	return temporal.NewSearchAttributeKeyKeyword(name).ValueSet(value)
}

// TaskAttributes are the search attributes that a task run starts with.
func TaskAttributes(in ace.TaskInput) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		keyword(ace.AttrExperiment, in.ExperimentID),
		keyword(ace.AttrDataset, in.DatasetID),
		keyword(ace.AttrModel, in.Model),
		keyword(ace.AttrAdapter, string(in.Adapter)),
		keyword(ace.AttrExit, string(ace.Running)),
		keyword(ace.AttrTask, in.TaskID),
		keyword(ace.AttrPhase, string(in.FirstPhase())),
	)
}

// ExperimentAttributes are the search attributes that an experiment starts with.
func ExperimentAttributes(in ace.ExperimentInput) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		keyword(ace.AttrExperiment, in.ExperimentID),
		keyword(ace.AttrDataset, in.DatasetID),
		keyword(ace.AttrModel, in.Model),
		keyword(ace.AttrAdapter, string(in.Adapter)),
		keyword(ace.AttrExit, string(ace.Running)),
	)
}

// SessionAttributes are the search attributes that a session starts with.
func SessionAttributes(in session.Input) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		keyword(ace.AttrTask, in.SessionID),
		keyword(ace.AttrModel, in.Model),
		keyword(ace.AttrPhase, string(session.Starting)),
		keyword(ace.AttrExit, string(ace.Running)),
	)
}

// RunAttributes are the search attributes that a run starts with. All that it will ever have
// are among them, so that a server that lacks one refuses the run at once.
func RunAttributes(in run.Input) temporal.SearchAttributes {
	model := ""
	if in.Blueprint != nil {
		model = in.Blueprint.Model
	}
	return temporal.NewSearchAttributes(
		keyword(ace.AttrTask, in.SessionID),
		keyword(ace.AttrModel, model),
		keyword(ace.AttrPhase, string(run.Pending)),
		keyword(ace.AttrExit, string(ace.Running)),
		keyword(ace.AttrBlueprint, in.Name()),
		keyword(ace.AttrRunner, ""),
	)
}
