package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/api/serviceerror"

	"acescope/sources/cluster"
)

func NotFound(format string, args ...any) error {
	return &ExitError{ExitNotFound, fmt.Errorf(format, args...)}
}

// QueryError shows where a query is wrong.
func QueryError(query string, err error) error {
	var invalid *serviceerror.InvalidArgument
	if query == "" || !errors.As(err, &invalid) {
		return err
	}
	text := strings.Join(strings.Fields(invalid.Error()), " ")
	if at := cluster.QueryErrorAt(query, err); at >= 0 {
		return UsageError("query, column %d, at %q: %s", at+1, shortened(query[at:]), shortened(text))
	}
	return UsageError("query %q: %s", shortened(query), shortened(text))
}

// CheckJSON refuses an argument that is none. Nothing is no argument.
func CheckJSON(argument []byte) error {
	var v any
	if len(argument) == 0 {
		return nil
	}
	if err := json.Unmarshal(argument, &v); err != nil {
		return UsageError("the argument is not JSON: %v", err)
	}
	return nil
}

// shortened is the beginning of a text that goes into an error.
func shortened(s string) string { return Cut([]byte(s), 300) }
