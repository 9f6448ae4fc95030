package console

import (
	"slices"
	"strings"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/tui/widget"
)

// MaxOptions is the largest number of completions offered.
const MaxOptions = 40

// complete completes attribute names, operators, and known values of a query.
func (l *Listing) complete(line string, cursor int) (int, []string) {
	return Completion(line, cursor, l.valuesOf)
}

// valuesOf lists the known values of an attribute, the most frequent first.
func (l *Listing) valuesOf(attribute string) []string {
	var values []string
	add := func(v string) {
		if v != "" && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	if fixed, ok := fixedValues[attribute]; ok {
		return fixed
	}
	if l.Counted != nil {
		for _, f := range l.Counted.List {
			for _, v := range f.Values {
				if f.Attribute == attribute {
					add(v.Value)
				}
			}
		}
	}
	for i := range l.Runs.Rows {
		if len(values) >= MaxOptions {
			break
		}
		add(valueIn(&l.Runs.Rows[i], attribute))
	}
	return values
}

func valueIn(r *runs.Run, attribute string) string {
	switch attribute {
	case ace.AttrTask:
		return r.TaskID
	case "WorkflowId":
		return r.WorkflowID
	case "RunId":
		return r.RunID
	}
	return runs.ValueOf(*r, attribute)
}

// fixedValues are the values of the attributes that have a fixed set.
var fixedValues = map[string][]string{
	ace.AttrExit:      {"running", "success", "wrong", "failed", "cancelled", "timeout"},
	ace.AttrAdapter:   {string(ace.Offline), string(ace.Online)},
	"ExecutionStatus": {"Running", "Completed", "Failed", "Canceled", "Terminated", "TimedOut", "ContinuedAsNew"},
	"WorkflowType":    {ace.TaskWorkflow, ace.ExperimentWorkflow},
}

// builtIn are the server's own attributes that are useful in a query over runs.
var builtIn = []string{"WorkflowId", "WorkflowType", "RunId", "StartTime", "CloseTime", "ExecutionStatus", "ExecutionDuration", "HistoryLength"}

// Operators are the operators of the query language for keyword attributes.
var Operators = []string{"= ", "!= ", "IN (", "NOT IN (", "STARTS_WITH ", "IS NULL", "IS NOT NULL"}

// Completion returns replacements for line[from:cursor] of a query, written in short words or in the query language.
func Completion(line string, cursor int, values func(attribute string) []string) (from int, options []string) {
	cursor = widget.Clamp(cursor, 0, len(line))
	before := queryTokens(line[:cursor])
	word := queryToken{at: cursor}
	if n := len(before); n > 0 && before[n-1].end == cursor && before[n-1].text != "(" && before[n-1].text != "," {
		word, before = before[n-1], before[:n-1]
	}
	if attr, ok := awaitsValue(before); ok {
		typed := strings.TrimLeft(word.text, `"'`)
		return word.at, match(typed, quoteAll(values(attr)), func(o string) string { return o[1:] })
	}
	if at := strings.IndexAny(word.text, "=:"); at > 0 {
		return completeShort(word, at, values)
	}
	switch {
	case awaitsOperator(before):
		options = Operators
	case conditionComplete(before):
		options = []string{"AND ", "OR "}
		options = append(options, conditionStarts()...)
	default:
		options = conditionStarts()
	}
	return word.at, match(word.text, options, func(o string) string { return o })
}

// completeShort completes the value in KEY=VALUE, or the last of several values separated by commas.
func completeShort(word queryToken, at int, values func(string) []string) (int, []string) {
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
	return word.at + start, match(strings.TrimLeft(word.text[start:], `"'`), known, func(o string) string { return strings.TrimLeft(o, `"`) })
}

func quoteAll(values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = quote(v)
	}
	return out
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
	words := []string{"cancelled", "closed", "failed", "ok", "open", "running", "success", "timeout", "wrong"}
	return append(append(words, short...), out...)
}

// match returns the options that begin with the typed text, ignoring case, except an option that is complete.
func match(typed string, options []string, text func(string) string) []string {
	var out []string
	lower := strings.ToLower(typed)
	for _, o := range options {
		if t := strings.ToLower(text(o)); strings.HasPrefix(t, lower) && strings.TrimSpace(o) != typed && len(out) < MaxOptions {
			out = append(out, o)
		}
	}
	return out
}

// queryToken is a word, operator, bracket, comma or quoted text of a query.
type queryToken struct {
	text    string
	at, end int
}

func queryTokens(s string) []queryToken {
	var out []queryToken
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == ' ' || c == '\t':
			i++
		case c == '(' || c == ')' || c == ',':
			out = append(out, queryToken{s[i : i+1], i, i + 1})
			i++
		default:
			end := wordEnd(s, i)
			out = append(out, queryToken{s[i:end], i, end})
			i = end
		}
	}
	return out
}

// wordEnd returns the end of the word at a position: an unquoted space or bracket, or a comma outside KEY=VALUE.
func wordEnd(s string, at int) int {
	var quoted byte
	for i := at; i < len(s); i++ {
		switch c := s[i]; {
		case quoted != 0:
			if c == '\\' {
				i++
			} else if c == quoted {
				quoted = 0
			}
		case c == '"' || c == '\'':
			quoted = c
		case c == ' ' || c == '\t' || c == '(' || c == ')', c == ',' && !strings.ContainsAny(s[at:i], "=:"):
			return i
		}
	}
	return len(s)
}

func isAttribute(t queryToken) (string, bool) {
	name := attribute(t.text)
	return name, slices.Contains(append(ace.SearchAttributes(), builtIn...), name)
}

func isOperator(t queryToken) bool {
	switch strings.ToUpper(t.text) {
	case "=", "!=", "<", ">", "<=", ">=", "STARTS_WITH":
		return true
	}
	return false
}

// awaitsValue returns the attribute whose value comes next: after an operator, or in the brackets of an IN.
func awaitsValue(before []queryToken) (string, bool) {
	n := len(before)
	if n >= 2 && isOperator(before[n-1]) {
		return isAttribute(before[n-2])
	}
	for i := n - 1; i >= 2; i-- {
		switch t := before[i]; {
		case t.text == ")":
			return "", false
		case t.text == "(":
			if before[n-1].text != "(" && before[n-1].text != "," || !strings.EqualFold(before[i-1].text, "IN") {
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

func awaitsOperator(before []queryToken) bool {
	if len(before) == 0 {
		return false
	}
	_, ok := isAttribute(before[len(before)-1])
	return ok && strings.ToLower(before[len(before)-1].text) != before[len(before)-1].text
}

// conditionComplete reports whether AND or OR may follow.
func conditionComplete(before []queryToken) bool {
	if len(before) == 0 {
		return false
	}
	last := strings.ToUpper(before[len(before)-1].text)
	return last != "AND" && last != "OR" && last != "NOT" && last != "("
}
