package system

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"acescope/sources/cluster"
)

// TestSharedStore checks the row about the store of the namespace, and that the store is asked twice a minute
// only.
func TestSharedStore(t *testing.T) {
	var failed error
	asked, url := 0, "s3://acescope/ace"
	d := cluster.Deps{Store: func(ctx context.Context) (string, error) {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the store is asked without a time limit")
		}
		asked++
		return url, failed
	}}
	var slow Slow
	row := func() (rows []Check) {
		for range 2 {
			slow.read(t.Context(), d, "")
		}
		s := System{Store: slow.store}
		for _, c := range s.Checks() {
			if c.Name == "shared store" {
				rows = append(rows, c)
			}
		}
		return rows
	}
	if r := row(); len(r) != 1 || r[0].State != CheckOK ||
		!strings.HasPrefix(r[0].Text, url+", answers in ") || asked != 1 {
		t.Errorf("%+v, asked %d times", r, asked)
	}
	slow.at, failed = time.Now().Add(-sizeEvery), errors.New("the store is away; start it")
	if r := row(); len(r) != 1 || r[0].State != CheckError || r[0].Text != url+": the store is away; start it" ||
		asked != 2 {
		t.Errorf("%+v, asked %d times", r, asked)
	}
	slow.at, failed, url = time.Time{}, nil, ""
	if r := row(); len(r) != 0 {
		t.Errorf("without a store: %+v", r)
	}
}
