package blueprint

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"github.com/tidwall/gjson"

	"acescope/engine/internal/redact"
	"acescope/engine/tasks/run"
)

// Violation is a problem of parameters.
type Violation struct {
	Path   string `json:"path"`
	Text   string `json:"text"`
	tokens []string
}

// Violations are the problems of parameters. More counts those above [MaxViolations].
type Violations struct {
	List   []Violation  `json:"violations"`
	More   int          `json:"more,omitempty"`
	schema gjson.Result // as written; has the names of parameters
}

// Error returns all violations in one line.
func (v *Violations) Error() string {
	var parts []string
	for _, violation := range v.List {
		parts = append(parts, violation.Path+": "+violation.Text)
	}
	text := "parameters: " + strings.Join(parts, "; ")
	if v.More > 0 {
		text += fmt.Sprintf("; and %d more", v.More)
	}
	return text
}

func (v *Violations) add(path, text string) {
	v.List = append(v.List, Violation{Path: path, Text: text})
}

// err returns v sorted, bounded and without secrets, or nil if it is empty.
func (v *Violations) err() error {
	if len(v.List) == 0 {
		return nil
	}
	v.List = v.sorted()
	if n := len(v.List) - MaxViolations; n > 0 {
		v.List = v.List[:MaxViolations]
		v.More = n
	}
	r := redact.New()
	for i := range v.List {
		v.List[i].Text = r.String(v.List[i].Text)
	}
	return v
}

// sorted returns the violations by path, without duplicates.
func (v *Violations) sorted() []Violation {
	slices.SortFunc(v.List, func(a, b Violation) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Text, b.Text))
	})
	return slices.CompactFunc(v.List, func(a, b Violation) bool { return a.Path == b.Path && a.Text == b.Text })
}

// check checks a value with the library and adds its violations. The error says why the value
// cannot be checked.
func (v *Violations) check(s *jsonschema.Schema, value any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be checked: %v", p)
		}
	}()
	if err := new(budget).check(s, value, 0); err != nil {
		return err
	}
	if invalid, ok := s.Validate(value).(*jsonschema.ValidationError); ok {
		v.collect(invalid, value)
	}
	return nil
}

// collect adds the violations of an error of the library.
func (v *Violations) collect(e *jsonschema.ValidationError, value any) {
	tokens := e.InstanceLocation
	report := func(text string, more ...string) {
		at := slices.Concat(tokens, more)
		v.List = append(v.List, Violation{pathIn(value, "$", at), text, at})
	}
	missing := func(property string, names []string) {
		for _, name := range names {
			report("is missing: it is required if "+quote(property)+" is given", name)
		}
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, cause := range e.Causes {
			v.collect(cause, value)
		}
	case *kind.AnyOf:
		report(v.describeAlternatives(e.Causes, value))
	case *kind.OneOf:
		if len(k.Subschemas) > 1 {
			report(fmt.Sprintf("matches alternatives %d and %d, but must match only one", k.Subschemas[0]+1, k.Subschemas[1]+1))
		} else {
			report(v.describeAlternatives(e.Causes, value))
		}
	case *kind.Required:
		for _, name := range k.Missing {
			report("is missing", name)
		}
	case *kind.Dependency:
		missing(k.Prop, k.Missing)
	case *kind.DependentRequired:
		missing(k.Prop, k.Missing)
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			report("unknown parameter"+v.hint(name, e.SchemaURL), name)
		}
	case *kind.PropertyNames:
		text := "its name is not allowed"
		if len(e.Causes) > 0 {
			text += ": it " + describe(e.Causes[0], k.Property)
		}
		report(text, k.Property)
	default:
		report(describe(e, valueAt(value, tokens)))
	}
}

// describeAlternatives describes a value that matches none of several schemas.
func (v *Violations) describeAlternatives(causes []*jsonschema.ValidationError, value any) string {
	const most = 3
	var parts []string
	for i, cause := range causes[:min(len(causes), most)] {
		inner := Violations{schema: v.schema}
		inner.collect(cause, value)
		if all := inner.sorted(); len(all) > 0 {
			parts = append(parts, fmt.Sprintf("%d: %s %s", i+1, all[0].Path, all[0].Text))
		}
	}
	text := fmt.Sprintf("matches none of the %d alternatives", len(causes))
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, "; ") + ")"
	}
	return text
}

// hint suggests a similar name of a part of the schema, or lists its names.
func (v *Violations) hint(name, location string) string {
	const most = 10
	known := v.knownNames(location)
	if s := suggestion(name, known); s != "" || len(known) > most {
		return s
	}
	if len(known) == 0 {
		return "; no parameters are known"
	}
	return "; known: " + strings.Join(known, ", ")
}

// knownNames returns the property names of a part of the schema.
func (v *Violations) knownNames(location string) (names []string) {
	_, fragment, _ := strings.Cut(location, "#")
	tokens, err := parsePointer("#" + fragment)
	if err != nil {
		return nil
	}
	n := v.schema
	for _, t := range append(tokens, "properties") {
		n = step(n, t)
	}
	for name := range members(n) {
		names = append(names, name.Str)
	}
	return names
}

// valueAt returns the value of a pointer, or nil.
func valueAt(v any, tokens []string) any {
	for _, t := range tokens {
		switch value := v.(type) {
		case map[string]any:
			v = value[t]
		case []any:
			i, err := strconv.Atoi(t)
			if err != nil || i < 0 || i >= len(value) {
				return nil
			}
			v = value[i]
		default:
			return nil
		}
	}
	return v
}

// pathIn returns the JSON path of a pointer into a value at a path.
func pathIn(v any, path string, tokens []string) string {
	for _, t := range tokens {
		if _, list := v.([]any); list {
			path += "[" + t + "]"
		} else {
			path = child(path, t)
		}
		v = valueAt(v, []string{t})
	}
	return path
}

// describe describes a violation of a value.
func describe(e *jsonschema.ValidationError, got any) string {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		var types []string
		for _, t := range k.Want {
			types = append(types, withArticle(t))
		}
		return "must be " + strings.Join(types, " or ") + " but is " + withArticle(k.Got)
	case *kind.Enum:
		return "must be one of " + formatList(k.Want) + " but is " + format(got)
	case *kind.Const:
		return "must be " + format(k.Want) + " but is " + format(got)
	case *kind.Format:
		return "must be " + withArticle(k.Want) + " but is " + format(got) + ": " + k.Err.Error()
	case *kind.Pattern:
		return "must match " + quote(k.Want) + " but is " + format(got)
	case *kind.Minimum:
		return "must be ≥ " + formatNumber(k.Want) + " but is " + format(got)
	case *kind.Maximum:
		return "must be ≤ " + formatNumber(k.Want) + " but is " + format(got)
	case *kind.ExclusiveMinimum:
		return "must be > " + formatNumber(k.Want) + " but is " + format(got)
	case *kind.ExclusiveMaximum:
		return "must be < " + formatNumber(k.Want) + " but is " + format(got)
	case *kind.MultipleOf:
		return "must be a multiple of " + formatNumber(k.Want) + " but is " + format(got)
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters but has %d", k.Want, k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters but has %d", k.Want, k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d entries but has %d", k.Want, k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d entries but has %d", k.Want, k.Got)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %d fields but has %d", k.Want, k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d fields but has %d", k.Want, k.Got)
	case *kind.UniqueItems:
		return fmt.Sprintf("must not have equal entries, but [%d] and [%d] are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %d entries too many", k.Count)
	case *kind.Contains, *kind.MinContains:
		return "lacks entries that it must contain"
	case *kind.MaxContains:
		return "contains too many matching entries"
	case *kind.Not:
		return "must not match the excluded schema"
	case *kind.FalseSchema:
		return "is not allowed"
	}
	return "does not match the schema"
}

func withArticle(word string) string {
	switch {
	case word == "null" || word == "":
		return word
	case strings.HasPrefix(word, "uri") || strings.HasPrefix(word, "uu"):
		return "a " + word
	case strings.ContainsRune("aeiou", rune(word[0])):
		return "an " + word
	}
	return "a " + word
}

// format returns a value for an error, truncated.
func format(v any) string {
	switch value := v.(type) {
	case nil:
		return "null"
	case string:
		return quote(value)
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	return fmt.Sprint(v) // a number or a boolean
}

func formatList(values []any) string {
	const most = 12
	var out []string
	for _, v := range values[:min(len(values), most)] {
		out = append(out, format(v))
	}
	if n := len(values) - most; n > 0 {
		out = append(out, fmt.Sprintf("%d more", n))
	}
	return strings.Join(out, ", ")
}

func formatNumber(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// cannotPass says why a strategy cannot pass a parameter of a name, or returns "".
func cannotPass(s run.Strategy, name string) string {
	if s != run.Args && s != run.Env || run.ValidParameter(name) {
		return ""
	}
	return fmt.Sprintf("the strategy %s cannot pass a parameter of this name: use 1 to 100 letters, digits, - and _, starting with a letter or a digit", s)
}

// sameVariable returns two names that have the same variable, if any.
func sameVariable(s run.Strategy, names []string) (first, second string) {
	if s != run.Env {
		return "", ""
	}
	seen := map[string]string{}
	for _, name := range slices.Sorted(slices.Values(names)) {
		variable := run.EnvName(name)
		if before, ok := seen[variable]; ok {
			return before, name
		}
		seen[variable] = name
	}
	return "", ""
}

// checkStrategy adds violations for parameters that a strategy cannot pass.
func (v *Violations) checkStrategy(s run.Strategy, params map[string]any) {
	if s != run.Args && s != run.Env {
		return
	}
	names := sortedNames(params)
	for _, name := range names {
		path := child("$", name)
		if why := cannotPass(s, name); why != "" {
			v.add(path, why)
			continue
		}
		items, isList := params[name].([]any)
		if !isList || s == run.Env {
			v.checkArgument(s, path, name, params[name])
			continue
		}
		for i, item := range items {
			v.checkArgument(s, path+"["+strconv.Itoa(i)+"]", name, item)
		}
	}
	if first, second := sameVariable(s, names); first != "" {
		v.add(child("$", second), fmt.Sprintf("has the same variable %s as %s", run.EnvName(second), quote(first)))
	}
}

// checkArgument checks a value that is passed as one argument or variable: a string as it is,
// another value as JSON.
func (v *Violations) checkArgument(s run.Strategy, path, name string, value any) {
	text, isString := value.(string)
	if strings.ContainsRune(text, 0) {
		v.add(path, fmt.Sprintf("contains a NUL, which the strategy %s cannot pass", s))
	}
	size := len(text)
	if !isString {
		raw, err := encode(value)
		if err != nil {
			return
		}
		size = len(raw)
	}
	if most := maxArg - len(run.EnvPrefix) - len(name) - 1; size > most {
		v.add(path, fmt.Sprintf("has %d bytes, and the strategy %s can pass at most %d: the blueprint needs stdin_json or file", size, s, most))
	}
}
