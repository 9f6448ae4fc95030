package runs

import (
	"context"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
)

// MissingAttributes returns the search attributes of the contract that a namespace lacks or has with another
// type than Keyword.
func MissingAttributes(ctx context.Context, c client.Client, namespace string) ([]string, error) {
	r, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(ace.SearchAttributes(), func(name string) bool {
		return r.GetCustomAttributes()[name] == enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}), nil
}

const (
	attributesHealth = "search attributes"
	checkEvery       = 5 * time.Minute
	recheckEvery     = 15 * time.Second // while attributes are missing
)
