package searchattr

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"acescope/engine/ace"
	"acescope/engine/internal/sleep"
)

// Gap lists the contract's search attributes that a namespace does not have.
type Gap struct {
	Missing  []string
	Mistyped []string // with another type than Keyword
}

// All returns the search attributes that cannot be used.
func (g Gap) All() []string { return append(append([]string{}, g.Missing...), g.Mistyped...) }

// ReadGap reads the gap of a namespace. With Elasticsearch, attributes have names of their own; in an SQL
// database, a namespace maps their names to columns. The operator service would answer in one call, but a
// server with an SQL database opens two connections to itself for each such call and never closes them.
func ReadGap(ctx context.Context, c workflowservice.WorkflowServiceClient, namespace string) (Gap, error) {
	space, err := c.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if err != nil {
		return Gap{}, err
	}
	columns := space.GetConfig().GetCustomSearchAttributeAliases()
	known, err := c.GetSearchAttributes(ctx, &workflowservice.GetSearchAttributesRequest{})
	types := map[string]enumspb.IndexedValueType{}
	switch {
	case is[*serviceerror.PermissionDenied](err) && len(columns) > 0: // it needs rights beyond the namespace
		for column := range columns { // named after their types: Keyword01, KeywordList01, Int01
			types[column], _ = enumspb.IndexedValueTypeFromString(strings.TrimRight(column, "0123456789"))
		}
	case err != nil:
		return Gap{}, err
	}
	maps.Copy(types, known.GetKeys())
	for column, name := range columns {
		types[name] = types[column]
	}
	var gap Gap
	for _, name := range ace.SearchAttributes() {
		switch types[name] {
		case enumspb.INDEXED_VALUE_TYPE_KEYWORD:
		case enumspb.INDEXED_VALUE_TYPE_UNSPECIFIED:
			gap.Missing = append(gap.Missing, name)
		default:
			gap.Mistyped = append(gap.Mistyped, name)
		}
	}
	return gap, nil
}

// Keywords returns the names with the type Keyword, as the server's interfaces want them.
func Keywords(names []string) map[string]enumspb.IndexedValueType {
	types := map[string]enumspb.IndexedValueType{}
	for _, name := range names {
		types[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	return types
}

// pollEvery is the interval of calls until a server knows a new namespace or new search attributes.
const pollEvery = 20 * time.Millisecond

// Add adds search attributes to a namespace, which may be new. It waits until the server accepts them, which
// takes seconds.
func Add(ctx context.Context, c workflowservice.WorkflowServiceClient,
	operator operatorservice.OperatorServiceClient,
	namespace string, names []string) error {
	err := await(ctx, func() error {
		_, err := operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
			Namespace: namespace, SearchAttributes: Keywords(names)})
		if is[*serviceerror.AlreadyExists](err) { // another process was faster
			return nil
		}
		return err
	}, is[*serviceerror.NamespaceNotFound])
	if err != nil {
		return fmt.Errorf("add the search attributes %s: %w", strings.Join(names, ", "), err)
	}
	query := strings.Join(names, ` = "" AND `) + ` = ""` // fails unless the server knows the attributes
	err = await(ctx, func() error {
		_, err := c.CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: namespace, Query: query})
		return err
	}, func(err error) bool { return !is[*serviceerror.PermissionDenied](err) })
	if err != nil {
		return fmt.Errorf("the search attributes %s were added but are not accepted: %w",
			strings.Join(names, ", "), err)
	}
	return nil
}

// await calls until there is no error, an error that is not temporary, or ctx ends.
func await(ctx context.Context, call func() error, temporary func(error) bool) error {
	for {
		err := call()
		if err == nil || !temporary(err) {
			return err
		}
		if sleep.For(ctx, pollEvery) != nil {
			return err
		}
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
