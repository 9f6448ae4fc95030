package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"

	"acescope/engine/ace"
)

// addAttributes adds the search attributes that a database lacks since an older version made
// it, and returns when the server takes them: its services notice a change of a namespace
// after up to two seconds. On a database that has them all it costs one call.
func addAttributes(ctx context.Context, address, token string) error {
	conn, err := connect(address)
	if err != nil {
		return err
	}
	defer conn.Close()
	frontend := workflowservice.NewWorkflowServiceClient(conn)
	ctx = authorized(ctx, token)
	missing, err := missingAttributes(ctx, frontend)
	if err != nil || len(missing) == 0 {
		return err
	}
	attributes := map[string]enumspb.IndexedValueType{}
	for _, name := range missing {
		attributes[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	if _, err := operatorservice.NewOperatorServiceClient(conn).AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: ace.DefaultNamespace, SearchAttributes: attributes}); err != nil {
		return fmt.Errorf("add the search attributes %v: %w", missing, err)
	}
	for {
		if err := takesAttributes(ctx, frontend, missing); err == nil {
			return nil
		} else if ctx.Err() != nil {
			return fmt.Errorf("the search attributes %v were added and are not taken: %w", missing, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func missingAttributes(ctx context.Context, c workflowservice.WorkflowServiceClient) ([]string, error) {
	r, err := c.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: ace.DefaultNamespace})
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, name := range r.GetConfig().GetCustomSearchAttributeAliases() {
		has[name] = true
	}
	return slices.DeleteFunc(ace.SearchAttributes(), func(name string) bool { return has[name] }), nil
}

// takesAttributes asks a question that only a server can answer which knows the attributes.
func takesAttributes(ctx context.Context, c workflowservice.WorkflowServiceClient, names []string) error {
	query := ""
	for i, name := range names {
		if i > 0 {
			query += " AND "
		}
		query += name + ` = ""`
	}
	_, err := c.CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: ace.DefaultNamespace, Query: query})
	return err
}
