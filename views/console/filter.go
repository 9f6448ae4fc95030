package console

import (
	"strings"

	"acescope/engine/ace"
	"acescope/sources/runners"
	"acescope/sources/sessions"
)

// Filter translates typed words to a visibility query. A word is a status ("wrong", "failed"), "open", "closed",
// KEY=VALUE, KEY:VALUE or KEY!=VALUE with a short or full attribute name (several values separated by commas, a
// trailing * for a prefix), or else the beginning of a task ID. The words are joined by AND. Text with a separate
// operator, a bracket or a keyword of the query language is a query already and is returned unchanged.
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

// runTypes are the workflow types and their short names.
var runTypes = []struct{ name, workflow string }{
	{"task", ace.TaskWorkflow}, {"experiment", ace.ExperimentWorkflow}, {"run", runners.RunWorkflow}, {"session", sessions.SessionWorkflow},
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
	for _, a := range ace.SearchAttributes() {
		if strings.ToLower(a) == lower {
			return a
		}
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
	return equals(key, op, values)
}

// valueOf expands short forms of values.
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
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// split splits text at unquoted spaces.
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

// isQuery reports whether the words are in the query language. Unbalanced quotes count too: the server reports the
// error and its place.
func isQuery(words []string) bool {
	for _, w := range words {
		if queryWords[strings.ToUpper(w)] || strings.Count(w, `"`)%2 == 1 || strings.Count(w, `'`)%2 == 1 {
			return true
		}
		unquoted := unquoted(w)
		if strings.ContainsAny(unquoted, "()<>`") || strings.Trim(unquoted, "=!") == "" ||
			strings.HasPrefix(unquoted, "=") || strings.HasSuffix(unquoted, "=") && !strings.ContainsAny(w, `"'`) {
			return true
		}
	}
	return false
}

// unquoted returns the unquoted part of a word. Each quoted part becomes the letter q.
func unquoted(w string) string {
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
