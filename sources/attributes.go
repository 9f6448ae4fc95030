package sources

import (
	"context"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
)

// MissingAttributes lists the contract's search attributes that a namespace lacks, or
// has with another type than Keyword.
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
	recheckEvery     = 15 * time.Second // while some are missing
)

// checkAttributes says lastingly which search attributes the server lacks. A server that
// does not let us ask is taken to have them.
func (r *runsReader) checkAttributes(ctx context.Context) {
	missing := r.s.Snapshot().Runs.Missing
	every := checkEvery
	if len(missing) > 0 {
		every = recheckEvery
	}
	if !r.checked.IsZero() && r.s.now().Sub(r.checked) < every {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	fresh, err := MissingAttributes(ctx, r.c, r.namespace)
	if err != nil {
		return
	}
	r.checked = r.s.now()
	if len(fresh) > 0 {
		r.s.SetHealth(attributesHealth, false, "the server lacks "+strings.Join(fresh, ", ")+": "+ace.AddAttributes(r.namespace, fresh))
	} else {
		r.s.SetHealth(attributesHealth, true, "all there")
	}
	r.s.update(func(snap *Snapshot) { snap.Runs.Missing = fresh })
}
