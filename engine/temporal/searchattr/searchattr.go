// Package searchattr builds the typed search attributes that workflows of the contract start with.
package searchattr

import (
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
)

// Keyword returns the update that sets a search attribute of type Keyword.
func Keyword(name, value string) temporal.SearchAttributeUpdate {
	return temporal.NewSearchAttributeKeyKeyword(name).ValueSet(value)
}

// Task returns the search attributes that a task run starts with.
func Task(in ace.TaskInput) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		Keyword(ace.AttrExperiment, in.ExperimentID),
		Keyword(ace.AttrDataset, in.DatasetID),
		Keyword(ace.AttrModel, in.Model),
		Keyword(ace.AttrAdapter, string(in.Adapter)),
		Keyword(ace.AttrExit, string(ace.ExitRunning)),
		Keyword(ace.AttrTask, in.TaskID),
		Keyword(ace.AttrPhase, string(in.FirstPhase())),
	)
}

// Experiment returns the search attributes that an experiment starts with.
func Experiment(in ace.ExperimentInput) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		Keyword(ace.AttrExperiment, in.ExperimentID),
		Keyword(ace.AttrDataset, in.DatasetID),
		Keyword(ace.AttrModel, in.Model),
		Keyword(ace.AttrAdapter, string(in.Adapter)),
		Keyword(ace.AttrExit, string(ace.ExitRunning)),
	)
}
