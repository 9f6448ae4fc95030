package console

import (
	"strings"

	"acescope/engine/ace"
	"acescope/sources/runners"
	"acescope/sources/sessions"
)

// Filter is the visibility query that a person's words stand for. Words are statuses
// ("wrong", "failed"), KEY=VALUE, KEY:VALUE or KEY!=VALUE with short or whole
// attribute names (several values apart by commas, a trailing * for a prefix), "open",
// "closed", and anything else is the beginning of a task id. They are joined by AND.
// Text with an operator between spaces, a bracket or one of the query language's own
// words is taken for a query and returned as it is.
func Filter(typed string) string {
	words := split(typed)
	if isQuery(words) {
		return strings.TrimSpace(typed)
	}
	var terms, statuses []string
	for _, w := range words {
		if strings.EqualFold(w, "AND") {
			continue
		}
		if s, ok := statusWords[strings.ToLower(w)]; ok {
			statuses = append(statuses, string(s))
			continue
		}
		terms = append(terms, term(w))
	}
	if len(statuses) > 0 {
		terms = append([]string{equals(ace.AttrExit, "=", statuses)}, terms...)
	}
	return strings.Join(terms, " AND ")
}

var statusWords = map[string]ace.ExitStatus{
	"running": ace.Running, "success": ace.Success, "ok": ace.Success, "wrong": ace.Wrong,
	"failed": ace.Failed, "cancelled": ace.Canceled, "canceled": ace.Canceled, "timeout": ace.Timeout,
}

var stateWords = map[string]string{
	"open": "CloseTime IS NULL", "closed": "CloseTime IS NOT NULL",
}

var filterKeys = map[string]string{
	"exp": ace.AttrExperiment, "experiment": ace.AttrExperiment,
	"ds": ace.AttrDataset, "data": ace.AttrDataset, "dataset": ace.AttrDataset,
	"model": ace.AttrModel, "adapter": ace.AttrAdapter, "task": ace.AttrTask, "phase": ace.AttrPhase,
	"status": ace.AttrExit, "exit": ace.AttrExit, "type": "WorkflowType", "blueprint": ace.AttrBlueprint, "bp": ace.AttrBlueprint, "runner": ace.AttrRunner, "workflow": "WorkflowId", "id": "WorkflowId",
}

// runTypes are the types of workflows by their short names.
var runTypes = []struct{ name, workflow string }{
	{"task", ace.TaskWorkflow}, {"experiment", ace.ExperimentWorkflow}, {"run", runners.RunWorkflow}, {"session", sessions.SessionWorkflow},
}

// RunTypes lists the short names of the types of workflows.
func RunTypes() []string {
	var names []string
	for _, t := range runTypes {
		names = append(names, t.name)
	}
	return names
}

// RunType is the type of workflow that a short name stands for.
func RunType(name string) (workflow string, ok bool) {
	for _, t := range runTypes {
		if t.name == name {
			return t.workflow, true
		}
	}
	return "", false
}

// attribute is the search attribute that a key names, in its right spelling; keys that
// are nobody's short form are taken as they are.
func attribute(key string) string {
	lower := strings.ToLower(key)
	if a, ok := filterKeys[lower]; ok {
		return a
	}
	for _, a := range ace.SearchAttributes() {
		if strings.ToLower(a) == lower {
			return a
		}
	}
	return key
}

// term is one word as a condition.
func term(word string) string {
	if s, ok := stateWords[strings.ToLower(word)]; ok {
		return s
	}
	at := strings.IndexAny(word, "=:!\"'")
	if at <= 0 || word[at] == '"' || word[at] == '\'' {
		return named(word)
	}
	key, op, value := attribute(word[:at]), "=", word[at+1:]
	if word[at] == '!' {
		if !strings.HasPrefix(value, "=") {
			return named(word)
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
	return equals(key, op, values)
}

// valueOf spells out the values that have short forms.
func valueOf(key, value string) string {
	lower := strings.ToLower(value)
	if s, ok := statusWords[lower]; ok && key == ace.AttrExit {
		return string(s)
	}
	if key == "WorkflowType" {
		if workflow, ok := RunType(lower); ok {
			return workflow
		}
	}
	return value
}

func equals(key, op string, values []string) string {
	if len(values) == 1 {
		return key + op + quote(values[0])
	}
	for i, v := range values {
		values[i] = quote(v)
	}
	in := " IN ("
	if op == "!=" {
		in = " NOT IN ("
	}
	return key + in + strings.Join(values, ", ") + ")"
}

// named finds runs by the beginning of their name: of a task, or of a workflow that is
// none of ACE's and has no task id.
func named(word string) string {
	return "(" + prefix(ace.AttrTask, word) + " OR " + prefix("WorkflowId", word) + ")"
}

func prefix(key, value string) string { return key + " STARTS_WITH " + quote(value) }

// quote is a value as the query language has it. One that is quoted already stays.
func quote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// split breaks text at spaces that are not quoted.
func split(s string) []string {
	var words []string
	var word strings.Builder
	var quoted rune
	for _, r := range s {
		switch {
		case quoted != 0:
			if r == quoted {
				quoted = 0
			}
		case r == '"' || r == '\'':
			quoted = r
		case r == ' ' || r == '\t':
			if word.Len() > 0 {
				words = append(words, word.String())
				word.Reset()
			}
			continue
		}
		word.WriteRune(r)
	}
	if word.Len() > 0 {
		words = append(words, word.String())
	}
	return words
}

var queryWords = map[string]bool{
	"OR": true, "NOT": true, "IN": true, "BETWEEN": true, "IS": true, "STARTS_WITH": true, "LIKE": true, "ORDER": true, "GROUP": true,
}

// isQuery tells whether the words are the query language itself. An odd number of
// quotes counts too: the server says what is wrong with it, and where.
func isQuery(words []string) bool {
	for _, w := range words {
		if queryWords[strings.ToUpper(w)] || strings.Count(w, `"`)%2 == 1 || strings.Count(w, `'`)%2 == 1 {
			return true
		}
		unquoted := outside(w)
		if strings.ContainsAny(unquoted, "()<>`") || strings.Trim(unquoted, "=!") == "" ||
			strings.HasPrefix(unquoted, "=") || strings.HasSuffix(unquoted, "=") && !strings.ContainsAny(w, `"'`) {
			return true
		}
	}
	return false
}

// outside is what of a word is not quoted; a wholly quoted word counts as a letter.
func outside(w string) string {
	var b strings.Builder
	var quoted rune
	for _, r := range w {
		switch {
		case quoted != 0:
			if r == quoted {
				quoted = 0
				b.WriteByte('q')
			}
		case r == '"' || r == '\'':
			quoted = r
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
