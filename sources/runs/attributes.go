package runs

import (
	"context"
	"maps"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// attributes are the fields of a run by the search attribute that sets or names them.
var attributes = map[string]func(*Run) *string{
	"WorkflowId":       func(r *Run) *string { return &r.WorkflowID },
	"RunId":            func(r *Run) *string { return &r.RunID },
	ace.AttrTask:       func(r *Run) *string { return &r.TaskID },
	ace.AttrExperiment: func(r *Run) *string { return &r.Experiment },
	ace.AttrDataset:    func(r *Run) *string { return &r.Dataset },
	ace.AttrModel:      func(r *Run) *string { return &r.Model },
	ace.AttrAdapter:    func(r *Run) *string { return &r.Adapter },
	ace.AttrPhase:      func(r *Run) *string { return (*string)(&r.Phase) },
	ace.AttrBlueprint:  func(r *Run) *string { return &r.Blueprint },
	ace.AttrRunner:     func(r *Run) *string { return &r.Runner },
}

// Value returns the value of a search attribute, "" if the run does not hold it. It holds ExitStatus only for a run
// that completed: otherwise the attribute repeats the status.
func (r *Run) Value(attribute string) string {
	switch {
	case attribute == history.AttrStatus:
		return history.ExecutionStatus(r.Status)
	case attribute == ace.AttrExit && r.Status == ace.Completed:
		return string(ace.ExitOf(r.Status, r.Verdict))
	}
	if field := attributes[attribute]; field != nil {
		return *field(r)
	}
	return ""
}

// MissingAttributes returns the search attributes of the contract that a namespace lacks or has with another
// type than Keyword. With Elasticsearch, attributes have names of their own; in an SQL database, a namespace maps their
// names to columns. The operator service would say it in one call, but a server with an SQL database opens two connections
// to itself for each, which it never closes.
func MissingAttributes(ctx context.Context, c client.Client, namespace string) ([]string, error) {
	s := c.WorkflowService()
	known, err := s.GetSearchAttributes(ctx, &workflowservice.GetSearchAttributesRequest{})
	if err != nil {
		return nil, err
	}
	space, err := s.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	types := map[string]enumspb.IndexedValueType{}
	maps.Copy(types, known.GetKeys())
	for column, name := range space.GetConfig().GetCustomSearchAttributeAliases() {
		types[name] = types[column]
	}
	return slices.DeleteFunc(ace.SearchAttributes(), func(name string) bool {
		return types[name] == enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}), nil
}

const (
	attributesHealth = "search attributes"
	checkEvery       = 5 * time.Minute
	recheckEvery     = 15 * time.Second // while attributes are missing
)
