package filed

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

// timeFormat writes times so that they sort as text.
const timeFormat = "2006-01-02T15:04:05.000000000Z"

// truth is what a condition is of a run. As in SQL, one on an attribute that the run does
// not have is neither true nor false.
type truth int8

const (
	untrue truth = iota
	unknown
	isTrue
)

func truthOf(b bool) truth {
	if b {
		return isTrue
	}
	return untrue
}

// test is a condition; nil is none.
type test func(*run) truth

// parsed is a query that was understood.
type parsed struct {
	test    test
	groupBy string // "" for none
}

func (p parsed) matches(r *run) bool { return p.test == nil || p.test(r) == isTrue }

// parse understands a visibility query as the server does, with the server's own parser:
// its errors are the server's.
func parse(text string, types map[string]enumspb.IndexedValueType) (parsed, error) {
	c := query.NewQueryConverter[test](converter{}, "", searchattribute.NewNameTypeMap(types), &searchattribute.NoopMapper{},
		metrics.NoopMetricsHandler, log.NewNoopLogger())
	q, err := c.Convert(text)
	if err == nil && len(q.OrderBy) > 0 {
		err = query.NewConverterError("%s: 'ORDER BY' clause", query.NotSupportedErrMessage)
	}
	var wrong *query.ConverterError
	switch {
	case errors.As(err, &wrong):
		return parsed{}, wrong.ToInvalidArgument()
	case err != nil:
		return parsed{}, serviceerror.NewInvalidArgumentf("invalid query: %v", err)
	}
	p := parsed{test: q.QueryExpr}
	if len(q.GroupBy) > 0 {
		p.groupBy = q.GroupBy[0].FieldName
	}
	return p, nil
}

// converter makes tests of the parts of a query.
type converter struct{}

var _ query.StoreQueryConverter[test] = converter{}

func (converter) GetDatetimeFormat() string { return timeFormat }

func (converter) BuildParenExpr(t test) (test, error) { return t, nil }

func (converter) BuildNotExpr(t test) (test, error) {
	return func(r *run) truth { return isTrue - t(r) }, nil
}

func (converter) BuildAndExpr(tests ...test) (test, error) {
	return joined(tests, func(a, b truth) truth { return min(a, b) }), nil
}

func (converter) BuildOrExpr(tests ...test) (test, error) {
	return joined(tests, func(a, b truth) truth { return max(a, b) }), nil
}

// joined is several conditions as one, those left out that are none.
func joined(tests []test, join func(a, b truth) truth) test {
	tests = slices.DeleteFunc(slices.Clone(tests), func(t test) bool { return t == nil })
	if len(tests) == 0 {
		return nil
	}
	return func(r *run) truth {
		all := tests[0](r)
		for _, t := range tests[1:] {
			all = join(all, t(r))
		}
		return all
	}
}

func (converter) ConvertIsExpr(operator string, col *query.SAColumn) (test, error) {
	null := operator == sqlparser.IsNullStr
	return func(r *run) truth { return truthOf((r.values[col.FieldName] == nil) == null) }, nil
}

func (converter) ConvertRangeExpr(operator string, col *query.SAColumn, from, to any) (test, error) {
	within := operator == sqlparser.BetweenStr
	return on(col, func(v any) bool { return (compare(v, from) >= 0 && compare(v, to) <= 0) == within }), nil
}

func (c converter) ConvertKeywordComparisonExpr(operator string, col *query.SAColumn, value any) (test, error) {
	prefix, text := value.(string)
	switch {
	case operator != sqlparser.StartsWithStr && operator != sqlparser.NotStartsWithStr:
		return c.ConvertComparisonExpr(operator, col, value)
	case !text:
		return nil, query.NewConverterError("%s: right-hand side of %q operator must be a literal string (got: %v)",
			query.InvalidExpressionErrMessage, operator, value)
	}
	begins := operator == sqlparser.StartsWithStr
	return on(col, func(v any) bool { s, _ := v.(string); return strings.HasPrefix(s, prefix) == begins }), nil
}

func (converter) ConvertComparisonExpr(operator string, col *query.SAColumn, value any) (test, error) {
	is, ok := comparisons[operator]
	list, several := value.([]any)
	switch in := operator == sqlparser.InStr; {
	case ok && !several:
		return on(col, func(v any) bool { return is(compare(v, value)) }), nil
	case several && (in || operator == sqlparser.NotInStr):
		return on(col, func(v any) bool {
			return slices.ContainsFunc(list, func(one any) bool { return compare(v, one) == 0 }) == in
		}), nil
	}
	return nil, query.NewConverterError("%s: %q with this value", query.InvalidExpressionErrMessage, operator)
}

var comparisons = map[string]func(int) bool{
	sqlparser.EqualStr:        func(n int) bool { return n == 0 },
	sqlparser.NotEqualStr:     func(n int) bool { return n != 0 },
	sqlparser.LessThanStr:     func(n int) bool { return n < 0 },
	sqlparser.GreaterThanStr:  func(n int) bool { return n > 0 },
	sqlparser.LessEqualStr:    func(n int) bool { return n <= 0 },
	sqlparser.GreaterEqualStr: func(n int) bool { return n >= 0 },
}

// ConvertKeywordListComparisonExpr tests whether one of the list is the value, or among
// the values.
func (converter) ConvertKeywordListComparisonExpr(operator string, col *query.SAColumn, value any) (test, error) {
	wanted, ok := value.([]any)
	if !ok {
		wanted = []any{value}
	}
	has := operator == sqlparser.EqualStr || operator == sqlparser.InStr
	return on(col, func(v any) bool {
		list, _ := v.([]string)
		return slices.ContainsFunc(list, func(s string) bool { return slices.Contains(wanted, any(s)) }) == has
	}), nil
}

// ConvertTextComparisonExpr tests whether the text has one of the words.
func (converter) ConvertTextComparisonExpr(operator string, col *query.SAColumn, value any) (test, error) {
	said, _ := value.(string)
	wanted := strings.Fields(strings.ToLower(said))
	has := operator == sqlparser.EqualStr
	return on(col, func(v any) bool {
		text, _ := v.(string)
		return slices.ContainsFunc(strings.Fields(strings.ToLower(text)), func(w string) bool { return slices.Contains(wanted, w) }) == has
	}), nil
}

// on tests the value of an attribute, where the run has it.
func on(col *query.SAColumn, ok func(any) bool) test {
	return func(r *run) truth {
		v := r.values[col.FieldName]
		if v == nil {
			return unknown
		}
		return truthOf(ok(v))
	}
}

// compare orders two values of one type; of others, numbers before texts before truths.
func compare(a, b any) int {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return cmp.Compare(x, y)
		}
	case bool:
		if y, ok := b.(bool); ok {
			return cmp.Compare(rank(x), rank(y))
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
	return cmp.Compare(kindOf(a), kindOf(b))
}

func rank(b bool) int { return int(truthOf(b)) }

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func kindOf(v any) int {
	switch v.(type) {
	case int64, float64:
		return 0
	case string:
		return 1
	}
	return 2
}
