package offline

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/temporalio/sqlparser"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence/visibility/store/query"
	"go.temporal.io/server/common/searchattribute"
)

// timeFormat formats times so that they sort as text.
const timeFormat = "2006-01-02T15:04:05.000000000Z"

// truth is the result of a condition. As in SQL, a condition on an attribute that the run does
// not have is neither true nor false.
type truth int8

const (
	isFalse truth = iota
	unknown
	isTrue
)

func truthOf(b bool) truth {
	if b {
		return isTrue
	}
	return isFalse
}

type condition func(*run) truth

type runQuery struct {
	condition condition
	groupBy   string // "" for none
}

// parse parses a visibility query with the server's own parser; its errors are the server's.
func parse(text string, types map[string]enumspb.IndexedValueType) (runQuery, error) {
	c := query.NewQueryConverter[condition](converter{}, "", searchattribute.NewNameTypeMap(types),
		&searchattribute.NoopMapper{}, metrics.NoopMetricsHandler, log.NewNoopLogger())
	q, err := c.Convert(text)
	if err == nil && len(q.OrderBy) > 0 {
		err = query.NewConverterError("%s: 'ORDER BY' clause", query.NotSupportedErrMessage)
	}
	if invalid, ok := errors.AsType[*query.ConverterError](err); ok {
		return runQuery{}, invalid.ToInvalidArgument()
	}
	if err != nil {
		return runQuery{}, serviceerror.NewInvalidArgumentf("invalid query: %v", err)
	}
	parsed := runQuery{condition: q.QueryExpr}
	if len(q.GroupBy) > 0 {
		parsed.groupBy = q.GroupBy[0].FieldName
	}
	return parsed, nil
}

type converter struct{}

var _ query.StoreQueryConverter[condition] = converter{}

func (converter) GetDatetimeFormat() string { return timeFormat }

func (converter) BuildParenExpr(c condition) (condition, error) { return c, nil }

func (converter) BuildNotExpr(c condition) (condition, error) {
	return func(r *run) truth { return isTrue - c(r) }, nil
}

func (converter) BuildAndExpr(list ...condition) (condition, error) {
	return join(list, func(a, b truth) truth { return min(a, b) }), nil
}

func (converter) BuildOrExpr(list ...condition) (condition, error) {
	return join(list, func(a, b truth) truth { return max(a, b) }), nil
}

// join makes one condition of several, without those that are nil.
func join(list []condition, combine func(a, b truth) truth) condition {
	list = slices.DeleteFunc(slices.Clone(list), func(c condition) bool { return c == nil })
	if len(list) == 0 {
		return nil
	}
	return func(r *run) truth {
		all := list[0](r)
		for _, c := range list[1:] {
			all = combine(all, c(r))
		}
		return all
	}
}

func (converter) ConvertIsExpr(operator string, col *query.SAColumn) (condition, error) {
	null := operator == sqlparser.IsNullStr
	return func(r *run) truth { return truthOf((r.values[col.FieldName] == nil) == null) }, nil
}

func (converter) ConvertRangeExpr(operator string, col *query.SAColumn, from, to any) (condition, error) {
	within := operator == sqlparser.BetweenStr
	return on(col, func(v any) bool { return (compare(v, from) >= 0 && compare(v, to) <= 0) == within }), nil
}

func (c converter) ConvertKeywordComparisonExpr(operator string, col *query.SAColumn, value any) (condition,
	error) {
	if operator != sqlparser.StartsWithStr && operator != sqlparser.NotStartsWithStr {
		return c.ConvertComparisonExpr(operator, col, value)
	}
	prefix, ok := value.(string)
	if !ok {
		return nil, query.NewConverterError(
			"%s: right-hand side of %q operator must be a literal string (got: %v)",
			query.InvalidExpressionErrMessage, operator, value)
	}
	want := operator == sqlparser.StartsWithStr
	return on(col, func(v any) bool { s, _ := v.(string); return strings.HasPrefix(s, prefix) == want }), nil
}

func (converter) ConvertComparisonExpr(operator string, col *query.SAColumn, value any) (condition, error) {
	list, isList := value.([]any)
	if in := operator == sqlparser.InStr; isList && (in || operator == sqlparser.NotInStr) {
		return on(col, func(v any) bool {
			return slices.ContainsFunc(list, func(w any) bool { return compare(v, w) == 0 }) == in
		}), nil
	}
	holds := comparisons[operator]
	if holds == nil || isList {
		return nil, query.NewConverterError("%s: %q with this value", query.InvalidExpressionErrMessage,
			operator)
	}
	return on(col, func(v any) bool { return holds(compare(v, value)) }), nil
}

var comparisons = map[string]func(int) bool{
	sqlparser.EqualStr:        func(n int) bool { return n == 0 },
	sqlparser.NotEqualStr:     func(n int) bool { return n != 0 },
	sqlparser.LessThanStr:     func(n int) bool { return n < 0 },
	sqlparser.GreaterThanStr:  func(n int) bool { return n > 0 },
	sqlparser.LessEqualStr:    func(n int) bool { return n <= 0 },
	sqlparser.GreaterEqualStr: func(n int) bool { return n >= 0 },
}

// ConvertKeywordListComparisonExpr tests whether the list contains the value, or one of several values.
func (converter) ConvertKeywordListComparisonExpr(operator string, col *query.SAColumn, value any) (condition,
	error) {
	wanted, ok := value.([]any)
	if !ok {
		wanted = []any{value}
	}
	want := operator == sqlparser.EqualStr || operator == sqlparser.InStr
	return on(col, func(v any) bool {
		list, _ := v.([]string)
		return slices.ContainsFunc(list,
			func(s string) bool { return slices.Contains(wanted, any(s)) }) == want
	}), nil
}

// ConvertTextComparisonExpr tests whether the text contains one of the words.
func (converter) ConvertTextComparisonExpr(operator string, col *query.SAColumn, value any) (condition,
	error) {
	words := func(v any) []string {
		s, _ := v.(string)
		return strings.Fields(strings.ToLower(s))
	}
	wanted := words(value)
	want := operator == sqlparser.EqualStr
	return on(col, func(v any) bool {
		return slices.ContainsFunc(words(v),
			func(w string) bool { return slices.Contains(wanted, w) }) == want
	}), nil
}

// on tests the value of an attribute if the run has it.
func on(col *query.SAColumn, holds func(any) bool) condition {
	return func(r *run) truth {
		v := r.values[col.FieldName]
		if v == nil {
			return unknown
		}
		return truthOf(holds(v))
	}
}

// compare orders two values of the same type. Values of different types are never equal.
func compare(a, b any) int {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return cmp.Compare(x, y)
		}
	case bool:
		if y, ok := b.(bool); ok {
			return cmp.Compare(truthOf(x), truthOf(y))
		}
	case int64:
		if y, ok := b.(int64); ok {
			return cmp.Compare(x, y)
		}
	}
	x, isX := number(a)
	y, isY := number(b)
	if isX && isY {
		return cmp.Compare(x, y)
	}
	return -1
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
