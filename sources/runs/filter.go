package runs

import (
	"regexp"
	"slices"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/flow"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/history"
)

// Filter translates typed words to a visibility query. A word is a status ("failed"), a verdict ("wrong"), "open", "closed",
// KEY=VALUE, KEY:VALUE or KEY!=VALUE with a short or full attribute name (several values separated by commas, a
// trailing * for a prefix), or else the beginning of a task ID. The words are joined by AND. Text with a separate
// operator, a bracket or a keyword of the query language is a query already and is returned unchanged.
func Filter(typed string) string {
	words := spacedWords.FindAllString(typed, -1)
	if isQuery(words) {
		return strings.TrimSpace(typed)
	}
	var terms []string
	picked := map[string][]string{}
	for _, w := range words {
		if strings.EqualFold(w, "AND") {
			continue
		}
		if key, value := fieldWord(w); key != "" {
			picked[key] = append(picked[key], value)
			continue
		}
		terms = append(terms, term(w))
	}
	for _, key := range []string{VerdictCondition, history.AttrStatus} {
		if values := picked[key]; len(values) > 0 {
			terms = append([]string{condition(key, "=", values)}, terms...)
		}
	}
	return strings.Join(terms, " AND ")
}

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

// statusWord returns the status for a word. It also accepts Temporal's spelling and those of [ace.ExitStatus].
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
	"waiting": `(ExecutionStatus = "Running" AND ` + equals(ace.AttrPhase, "=",
		[]string{string(ace.PhaseReview), flow.PhaseApproval, string(session.Waiting)}) + ")",
}

var filterKeys = map[string]string{
	"exp": ace.AttrExperiment, "experiment": ace.AttrExperiment,
	"ds": ace.AttrDataset, "data": ace.AttrDataset, "dataset": ace.AttrDataset,
	"model": ace.AttrModel, "adapter": ace.AttrAdapter, "task": ace.AttrTask, "phase": ace.AttrPhase,
	"status": history.AttrStatus, "verdict": VerdictCondition, "exit": ace.AttrExit, "type": "WorkflowType",
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
	known := ace.SearchAttributes()
	if i := slices.IndexFunc(known, func(a string) bool { return strings.ToLower(a) == lower }); i >= 0 {
		return known[i]
	}
	return key
}

// term translates one word to a condition.
func term(word string) string {
	if s, ok := stateWords[strings.ToLower(word)]; ok {
		return s
	}
	at := strings.IndexAny(word, "=:!\"'")
	if at <= 0 || word[at] == '"' || word[at] == '\'' {
		return idStartsWith(word)
	}
	key, op, value := attribute(word[:at]), "=", word[at+1:]
	if word[at] == '!' {
		if !strings.HasPrefix(value, "=") {
			return idStartsWith(word)
		}
		op, value = "!=", value[1:]
	}
	if op == "=" && strings.HasSuffix(value, "*") {
		return prefix(key, strings.TrimSuffix(value, "*"))
	}
	var values []string
	for _, v := range strings.Split(value, ",") {
		values = append(values, valueOf(key, v))
	}
	return condition(key, op, values)
}

// condition returns the condition that an attribute has one of the values. The server itself finds wrong answers.
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
	if key == "WorkflowType" {
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

// idStartsWith matches runs by the beginning of the task ID, or of the workflow ID for workflows other than ACE tasks.
func idStartsWith(word string) string {
	return "(" + prefix(ace.AttrTask, word) + " OR " + prefix("WorkflowId", word) + ")"
}

func prefix(key, value string) string { return key + " STARTS_WITH " + quote(value) }

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

var (
	// spacedWords matches the words of typed text: they end at unquoted spaces.
	spacedWords = regexp.MustCompile(`(?:"[^"]*"?|'[^']*'?|[^ \t"'])+`)
	quotedParts = regexp.MustCompile(`"[^"]*(?:"|$)|'[^']*(?:'|$)`)
)

var queryWords = []string{"OR", "NOT", "IN", "BETWEEN", "IS", "STARTS_WITH", "LIKE", "ORDER", "GROUP"}

// isQuery reports whether the words are in the query language. Unbalanced quotes count too: the server reports the
// error and its place.
func isQuery(words []string) bool {
	for _, w := range words {
		if slices.Contains(queryWords, strings.ToUpper(w)) ||
			strings.Count(w, `"`)%2 == 1 || strings.Count(w, `'`)%2 == 1 {
			return true
		}
		unquoted := quotedParts.ReplaceAllString(w, "q")
		if strings.ContainsAny(unquoted, "()<>`") || strings.Trim(unquoted, "=!") == "" ||
			strings.HasPrefix(unquoted, "=") || strings.HasSuffix(unquoted, "=") && !strings.ContainsAny(w, `"'`) {
			return true
		}
	}
	return false
}
