package runs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/flow"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/history"
)

// Filter translates typed words to a visibility query with the conditions that [VerdictCondition] explains.
// The words are joined by AND; a word is one of:
//
//   - a status ("failed"), a verdict ("wrong"), "open" or "closed"; or "failing" for open runs whose workflow
//     task has failed five or more times in a row;
//   - "all" for no condition, or "expensive" for the runs that used tokens or have a cost;
//   - a time: "today", "yesterday", or an age such as "12h" or "7d"; also since:TIME and until:TIME, see [TimeAt];
//   - KEY=VALUE, KEY:VALUE or KEY!=VALUE with a short or full attribute name (several values separated by commas, a
//     trailing * for a prefix), and text:VALUE;
//   - cost>DOLLARS, tokens>NUMBER and calls>NUMBER, also with >=, < and <=;
//   - "mine", by:USER or by:USER@HOST, see [ByCondition];
//   - anything else, and everything in quotes: a text that the run mentions, see [Run.Mentions].
//
// Text with a separate operator, a bracket or a keyword of the query language is a query already and is
// returned unchanged. An error names the word that is not understood.
func Filter(typed string) (query string, err error) {
	words := wordsOf(typed)
	if n := len(words); n > 0 && valueMissing.MatchString(words[n-1]) {
		return "", fmt.Errorf("%q: the value is missing", words[n-1])
	}
	if isQuery(words) {
		_, err := parse(typed)
		if err != nil {
			return strings.TrimSpace(typed), nil // the server reports it
		}
		_, err = divide(typed) // its own conditions must be right before the server is asked
		return strings.TrimSpace(typed), err
	}
	var terms []string
	picked := map[string][]string{}
	for _, w := range words {
		if strings.EqualFold(w, "AND") || strings.EqualFold(w, "all") {
			continue
		}
		if key, value := fieldWord(w); key != "" {
			picked[key] = append(picked[key], value)
			continue
		}
		t, err := term(w)
		if err != nil {
			return "", err
		}
		terms = append(terms, t)
	}
	for _, key := range []string{VerdictCondition, history.AttrStatus} {
		if values := picked[key]; len(values) > 0 {
			terms = append([]string{condition(key, "=", values)}, terms...)
		}
	}
	return strings.Join(terms, " AND "), nil
}

// valueMissing matches a condition that ends with its operator.
var valueMissing = regexp.MustCompile(`^\w+(=|!=|:)$`)

// fieldWord returns the attribute and the value that a status or a verdict stands for.
func fieldWord(word string) (attribute, value string) {
	word = strings.ToLower(word)
	if slices.Contains(ace.Verdicts(), ace.Verdict(word)) {
		return VerdictCondition, word
	}
	if s := history.ExecutionStatus(statusWord(word)); s != "" {
		return history.AttrStatus, s
	}
	return "", ""
}

// statusWord returns the status for a word. It also accepts Temporal's spelling and those of
// [ace.ExitStatus].
func statusWord(word string) (s ace.Status) {
	_ = s.UnmarshalText([]byte(word)) // never fails
	for _, known := range ace.Statuses() {
		if strings.EqualFold(word, history.ExecutionStatus(known)) {
			return known
		}
	}
	return s
}

var stateWords = map[string]string{
	"open": "CloseTime IS NULL", "closed": "CloseTime IS NOT NULL",
	"waiting":   "(" + WaitingQuery + ")",
	"failing":   `ExecutionStatus = "Running" AND ` + AttrProblems + " IS NOT NULL",
	"mine":      OwnQuery,
	"expensive": SpentQuery,
}

// WaitingQuery lists the runs that wait for a user.
var WaitingQuery = `ExecutionStatus = "Running" AND ` + equals(ace.AttrPhase, "=",
	[]string{string(ace.PhaseReview), flow.PhaseApproval, string(session.Waiting)})

var filterKeys = map[string]string{
	"text": TextCondition, "cost": CostCondition, "tokens": TokensCondition, "by": ByCondition,
	"since": SinceCondition, "until": UntilCondition,
	"exp": ace.AttrExperiment, "experiment": ace.AttrExperiment,
	"ds": ace.AttrDataset, "data": ace.AttrDataset, "dataset": ace.AttrDataset,
	"framework": FrameworkCondition, "agent": AgentCondition, "model": ModelCondition,
	"calls":   CallsCondition,
	"adapter": ace.AttrAdapter, "task": ace.AttrTask, "phase": ace.AttrPhase,
	"status": history.AttrStatus, "verdict": VerdictCondition, "exit": ace.AttrExit, "type": AttrType,
	"workflow": "WorkflowId", "id": "WorkflowId",
	"blueprint": ace.AttrBlueprint, "bp": ace.AttrBlueprint, "runner": ace.AttrRunner,
}

// runTypes are the workflow types and their short names.
var runTypes = []struct{ name, workflow string }{
	{"task", ace.TaskWorkflow}, {"experiment", ace.ExperimentWorkflow},
	{"blueprint", run.Workflow}, {"session", session.Workflow}, {"flow", flow.Workflow},
}

// OtherType is the short name of the workflow types that are not of the contract.
const OtherType = "workflow"

// TypeOf returns the short name of a workflow type, or [OtherType].
func TypeOf(workflow string) string {
	for _, t := range runTypes {
		if t.workflow == workflow {
			return t.name
		}
	}
	return OtherType
}

// RunTypes lists the short names of the workflow types.
func RunTypes() []string {
	var names []string
	for _, t := range runTypes {
		names = append(names, t.name)
	}
	return names
}

// RunType returns the workflow type for a short name.
func RunType(name string) (workflow string, ok bool) {
	for _, t := range runTypes {
		if t.name == name {
			return t.workflow, true
		}
	}
	return "", false
}

// attribute returns the search attribute for a key, or the key itself if it is unknown.
func attribute(key string) string {
	lower := strings.ToLower(key)
	if a, ok := filterKeys[lower]; ok {
		return a
	}
	if i := slices.IndexFunc(knownNames(),
		func(a string) bool { return strings.ToLower(a) == lower }); i >= 0 {
		return knownNames()[i]
	}
	return key
}

// knownNames lists the names that conditions may have besides custom attributes.
func knownNames() []string {
	return slices.Concat(ace.SearchAttributes(), builtIn,
		[]string{VerdictCondition, TextCondition, CostCondition, TokensCondition, ByCondition, SinceCondition,
			UntilCondition, FrameworkCondition, AgentCondition, ModelCondition, CallsCondition})
}

// amountWord matches a condition on the cost, the tokens or the calls.
var amountWord = regexp.MustCompile(`(?i)^(cost|tokens|calls|` + CostCondition + `)(>=|<=|=|>|<)(.*)$`)

// term translates one word to a condition.
func term(word string) (string, error) {
	lower := strings.ToLower(word)
	if s, ok := stateWords[lower]; ok {
		return s, nil
	}
	if lower == yesterday {
		return SinceCondition + "=" + Quote(yesterday) + " AND " + UntilCondition + "=" + Quote(today), nil
	}
	if lower == today || ageWord.MatchString(lower) {
		return SinceCondition + "=" + Quote(lower), nil
	}
	if m := amountWord.FindStringSubmatch(word); m != nil {
		if _, ok := numberOf(m[3]); !ok {
			return "", fmt.Errorf("%q: not a number: %q", word, m[3])
		}
		return attribute(m[1]) + m[2] + m[3], nil
	}
	at := strings.IndexAny(word, "=:!\"'")
	if at <= 0 || word[at] == '"' || word[at] == '\'' || word[at] == '!' &&
		!strings.HasPrefix(word[at:], "!=") {
		return TextCondition + "=" + quote(word), nil
	}
	op, value := "=", word[at+1:]
	if word[at] == '!' {
		op, value = "!=", value[1:]
	}
	return fieldTerm(word, word[:at], op, value, word[at] == ':')
}

// fieldTerm translates a word with a key. Before a colon, the key must be known.
func fieldTerm(word, typed, op, value string, colon bool) (string, error) {
	key := attribute(typed)
	if err := checkKey(word, typed, key, colon); err != nil {
		return "", err
	}
	switch key {
	case TextCondition:
		return key + op + quote(value), nil
	case SinceCondition, UntilCondition:
		if _, err := TimeAt(strings.Trim(value, `"'`), time.Now()); err != nil || op != "=" {
			return "", fmt.Errorf(
				"%q: not a time: %q; use today, yesterday, 12h, 7d or a date like 2026-11-20", word, value)
		}
		return key + op + quote(value), nil
	}
	if op == "=" && strings.HasSuffix(value, "*") {
		return key + " STARTS_WITH " + quote(strings.TrimSuffix(value, "*")), nil
	}
	var values []string
	for _, v := range strings.Split(value, ",") {
		v = valueOf(key, v)
		if err := checkValue(word, key, strings.Trim(v, `"'`)); err != nil {
			return "", err
		}
		values = append(values, v)
	}
	return condition(key, op, values), nil
}

// checkKey returns an error for an unknown key if it resembles a known one or must be known. Other unknown
// keys may be custom search attributes.
func checkKey(word, typed, key string, known bool) error {
	if slices.Contains(knownNames(), key) {
		return nil
	}
	lower := strings.ToLower(typed)
	for _, k := range slices.Sorted(maps.Keys(filterKeys)) {
		if len(lower) > 3 && ace.Distance(lower, k) <= 2 {
			return fmt.Errorf("%q: unknown key %q; did you mean %s?", word, typed, k)
		}
	}
	if known {
		return fmt.Errorf("%q: unknown key %q; quote a text with a colon", word, typed)
	}
	return nil
}

// checkValue returns an error for a value that an attribute with fixed values cannot have.
func checkValue(word, key, value string) error {
	fixed := fixedValues[key]
	if key != VerdictCondition && key != history.AttrStatus || slices.Contains(fixed, value) {
		return nil
	}
	if key == history.AttrStatus { // written as in JSON and on screens
		fixed = nil
		for _, s := range ace.Statuses() {
			fixed = append(fixed, string(s))
		}
	}
	return fmt.Errorf("%q: unknown value %q; use one of %s", word, value, strings.Join(fixed, ", "))
}

// condition returns the condition that an attribute has one of the values. The server itself finds wrong
// answers.
func condition(key, op string, values []string) string {
	if key == VerdictCondition && op == "=" && slices.Equal(values, []string{string(ace.Wrong)}) {
		key = ace.AttrExit
	}
	return equals(key, op, values)
}

// valueOf expands short forms of values.
func valueOf(key, value string) string {
	lower := strings.ToLower(value)
	if attribute, expanded := fieldWord(lower); attribute == key {
		return expanded
	}
	if key == AttrType {
		if workflow, ok := RunType(lower); ok {
			return workflow
		}
	}
	return value
}

// equals returns the condition that an attribute has one of the values, or with != another value.
func equals[S ~string](key, op string, values []S) string {
	if len(values) == 1 {
		return key + op + quote(string(values[0]))
	}
	in := " IN ("
	if op == "!=" {
		in = " NOT IN ("
	}
	return key + in + strings.Join(quoteAll(values), ", ") + ")"
}

// quote quotes a value unless it is quoted already.
func quote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s
	}
	return Quote(s)
}

func quoteAll[S ~string](values []S) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = quote(string(v))
	}
	return out
}

// wordsOf returns the words of typed text: they end at unquoted spaces.
func wordsOf(typed string) (words []string) {
	from, end := 0, 0
	for _, t := range tokensOf(typed) {
		if t.at > end && end > from {
			words = append(words, typed[from:end])
		}
		if t.at > end || end == 0 {
			from = t.at
		}
		end = t.end
	}
	if end > from {
		words = append(words, typed[from:end])
	}
	return words
}

var queryWords = []string{"OR", "NOT", "IN", "BETWEEN", "IS", "STARTS_WITH", "LIKE", "ORDER", "GROUP"}

// isQuery reports whether the words are in the query language: a keyword, a bracket, a comparison, or an
// operator between spaces. A keyword in lower case counts only after the name of an attribute. Unbalanced
// quotes count too: the server reports the error and its place.
func isQuery(words []string) bool {
	for i, w := range words {
		if amountWord.MatchString(w) {
			continue
		}
		if slices.Contains(queryWords, strings.ToUpper(w)) &&
			(w == strings.ToUpper(w) || i > 0 && slices.Contains(knownNames(), words[i-1])) {
			return true
		}
		tokens := tokensOf(w)
		if slices.ContainsFunc(tokens, func(t token) bool {
			return t.torn() || t.is("(", ")", "<", ">", "<=", ">=", "<>") || t.text[0] == '`'
		}) || tokens[0].is("=", "!=", "&&", "||") || tokens[len(tokens)-1].is("=", "!=") {
			return true
		}
	}
	return false
}
