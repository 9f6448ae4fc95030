package runs

import (
	"slices"
	"strings"

	"acescope/engine/ace"
)

// maxOptions is the largest number of completions offered.
const maxOptions = 40

// KnownValuesOf lists the known values of an attribute for its completion, the most frequent first: those of
// the counted facets, which may be nil, then those of rows.
func KnownValuesOf(attribute string, counted *Facets, rows []Run) []string {
	if fixed, ok := fixedValues[attribute]; ok {
		return fixed
	}
	var values []string
	add := func(v string) {
		if v != "" && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	if counted != nil {
		for _, v := range counted.Of(attribute).Values {
			add(v.Value)
		}
	}
	for i := range rows {
		if len(values) >= maxOptions {
			break
		}
		add(rows[i].Value(attribute))
	}
	return values
}

// fixedValues are the values of the attributes that have a fixed set.
var fixedValues = map[string][]string{
	ace.AttrExit:     {"running", "success", "wrong", "failed", "cancelled", "timeout"},
	VerdictCondition: {"correct", "wrong", "unlabeled", "ungraded"},
	ace.AttrAdapter:  {string(ace.Offline), string(ace.Online)},
	"ExecutionStatus": {"Running", "Completed", "Failed", "Canceled", "Terminated", "TimedOut",
		"ContinuedAsNew"},
	AttrType: {ace.TaskWorkflow, ace.ExperimentWorkflow},
}

// builtIn are the server's own attributes that are useful in a query over runs.
var builtIn = []string{"WorkflowId", "WorkflowType", "RunId", "StartTime", "CloseTime", "ExecutionStatus",
	"ExecutionDuration", "HistoryLength"}

// operators are the operators of the query language for keyword attributes.
var operators = []string{"= ", "!= ", "IN (", "NOT IN (", "STARTS_WITH ", "IS NULL", "IS NOT NULL"}

// Completion returns replacements for line[from:cursor] of a query, written in short words or in the query
// language.
func Completion(line string, cursor int, values func(attribute string) []string) (from int,
	options []string) {
	cursor = max(min(cursor, len(line)), 0)
	before := tokensOf(line[:cursor])
	word := token{at: cursor, end: cursor}
	joined := wordBefore(before, cursor)
	if at := strings.IndexAny(joined.text, "=:"); at > 0 && !joined.quoted() {
		return completeShort(joined, at, values)
	}
	if n := len(before); n > 0 && before[n-1].end == cursor && !before[n-1].is("(", ",") {
		word, before = before[n-1], before[:n-1]
	}
	if attr, ok := awaitsValue(before); ok {
		typed := strings.TrimLeft(word.text, `"'`)
		return word.at, match(typed, quoteAll(values(attr)), func(o string) string { return o[1:] })
	}
	switch {
	case awaitsOperator(before):
		options = operators
	case conditionComplete(before):
		options = append([]string{"AND ", "OR "}, conditionStarts()...)
	default:
		options = conditionStarts()
	}
	return word.at, match(word.text, options, func(o string) string { return o })
}

// completeShort completes the value in KEY=VALUE, or the last of several values separated by commas.
func completeShort(word token, at int, values func(string) []string) (int, []string) {
	name := attribute(strings.TrimSuffix(word.text[:at], "!"))
	start := at + 1
	if comma := strings.LastIndex(word.text, ","); comma > start {
		start = comma + 1
	}
	known := values(name)
	for i, v := range known {
		if strings.ContainsAny(v, " \t,\"'()<>`") {
			known = slices.Clone(known)
			known[i] = quote(v)
		}
	}
	typed := strings.TrimLeft(word.text[start:], `"'`)
	return word.at + start, match(typed, known, func(o string) string { return strings.TrimLeft(o, `"`) })
}

// conditionStarts returns the texts that a condition may begin with.
func conditionStarts() []string {
	var out []string
	for _, a := range append(ace.SearchAttributes(), builtIn...) {
		out = append(out, a+"=")
	}
	short := []string{}
	for k := range filterKeys {
		if !slices.ContainsFunc(out, func(o string) bool { return strings.EqualFold(o, k+"=") }) {
			short = append(short, k+"=")
		}
	}
	slices.Sort(short)
	words := []string{"all", "canceled", "closed", "completed", "correct", "failed", "failing", "mine",
		"open",
		"running", "terminated", "timed_out", "ungraded", "unlabeled", "waiting", "wrong"}
	// The names of experiments come before the rarer word: both begin with exp.
	return slices.Concat(words, short, []string{"expensive"}, out)
}

// match returns the options that begin with the typed text, ignoring case, except an option that is complete.
func match(typed string, options []string, text func(string) string) []string {
	var out []string
	lower := strings.ToLower(typed)
	for _, o := range options {
		t := strings.ToLower(text(o))
		if strings.HasPrefix(t, lower) && strings.TrimSpace(o) != typed && len(out) < maxOptions {
			out = append(out, o)
		}
	}
	return out
}

// wordBefore joins the tokens before the cursor that no space or bracket divides.
func wordBefore(tokens []token, cursor int) token {
	w := token{at: cursor, end: cursor}
	for _, t := range slices.Backward(tokens) {
		if t.end != w.at || t.is("(", ")") {
			break
		}
		w.at, w.text = t.at, t.text+w.text
	}
	return w
}

func isAttribute(t token) (string, bool) {
	name := attribute(t.text)
	return name, slices.Contains(append(ace.SearchAttributes(), builtIn...), name)
}

func isOperator(t token) bool {
	return slices.Contains([]string{"=", "!=", "<", ">", "<=", ">=", "STARTS_WITH"}, strings.ToUpper(t.text))
}

// awaitsValue returns the attribute whose value comes next: after an operator, or in the brackets of an IN.
func awaitsValue(before []token) (string, bool) {
	n := len(before)
	if n >= 2 && isOperator(before[n-1]) {
		return isAttribute(before[n-2])
	}
	for i := n - 1; i >= 2; i-- {
		switch t := before[i]; {
		case t.text == ")":
			return "", false
		case t.text == "(":
			if before[n-1].text != "(" && before[n-1].text != "," ||
				!strings.EqualFold(before[i-1].text, "IN") {
				return "", false
			}
			name := before[i-2]
			if strings.EqualFold(name.text, "NOT") && i >= 3 {
				name = before[i-3]
			}
			return isAttribute(name)
		}
	}
	return "", false
}

func awaitsOperator(before []token) bool {
	if len(before) == 0 {
		return false
	}
	_, ok := isAttribute(before[len(before)-1])
	return ok && strings.ToLower(before[len(before)-1].text) != before[len(before)-1].text
}

// conditionComplete reports whether AND or OR may follow.
func conditionComplete(before []token) bool {
	if len(before) == 0 {
		return false
	}
	last := strings.ToUpper(before[len(before)-1].text)
	return last != "AND" && last != "OR" && last != "NOT" && last != "("
}
