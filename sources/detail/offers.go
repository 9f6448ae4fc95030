package detail

import (
	"context"
	"slices"
	"strings"

	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/kind"
)

// Offers is what the worker of a run says of its workflow.
type Offers struct {
	Details string  // the current details, "" without any
	List    []Offer // queries, then updates, then signals
}

// Offer is a query, an update or a signal that a workflow handles.
type Offer struct {
	Kind        string `json:"kind"` // query, update or signal
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// queryMetadata is the query that SDKs answer for every workflow, with a [sdkpb.WorkflowMetadata].
const queryMetadata = "__temporal_workflow_metadata"

// ReadOffers asks the worker of a run what the workflow offers. Workers of older SDKs answer with an error.
func ReadOffers(ctx context.Context, c client.Client, workflowID, runID string) (*Offers, error) {
	v, err := c.QueryWorkflow(ctx, workflowID, runID, queryMetadata)
	if err != nil {
		return nil, err
	}
	var m sdkpb.WorkflowMetadata
	if err := v.Get(&m); err != nil {
		return nil, err
	}
	o := &Offers{Details: m.GetCurrentDetails()}
	d := m.GetDefinition()
	o.add("query", d.GetQueryDefinitions())
	o.add("update", d.GetUpdateDefinitions())
	o.add("signal", d.GetSignalDefinitions())
	return o, nil
}

// add adds what a workflow defines, without what every SDK offers.
func (o *Offers) add(kind string, list []*sdkpb.WorkflowInteractionDefinition) {
	for _, d := range list {
		if !strings.HasPrefix(d.GetName(), "__") {
			o.List = append(o.List, Offer{kind, d.GetName(), d.GetDescription()})
		}
	}
}

// contract reports whether the workflow answers a query of the contract of tasks.
func (o *Offers) contract() bool {
	return o != nil && slices.ContainsFunc(o.List, func(of Offer) bool {
		return of.Kind == "query" &&
			slices.Contains([]string{ace.QueryPhase, ace.QuerySkills, ace.QueryDelta}, of.Name)
	})
}

func (o *Offers) sections() (l kind.Sections) {
	if o == nil {
		return nil
	}
	l.Add("Current details", "", kind.Prose(o.Details)...)
	var items []kind.Item
	for _, of := range o.List {
		items = append(items, kind.Item{Head: of.Kind + " " + of.Name,
			Fields: kind.Fields(kind.Field{Text: of.Description})})
	}
	l.Add("Offered by the worker", "", items...)
	return l
}
