package blueprint

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// wording says what is wrong with a value.
func wording(e *jsonschema.ValidationError, got any) string {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return "must be " + oneOf(k.Want) + " but is " + article(k.Got)
	case *kind.Enum:
		return "must be one of " + shownList(k.Want) + " but is " + shown(got)
	case *kind.Const:
		return "must be " + shown(k.Want) + " but is " + shown(got)
	case *kind.Format:
		return "must be " + article(k.Want) + " but is " + shown(got) + ": " + k.Err.Error()
	case *kind.Pattern:
		return "must match " + quoted(k.Want) + " but is " + shown(got)
	case *kind.Minimum:
		return "must be ≥ " + ratio(k.Want) + " but is " + shown(got)
	case *kind.Maximum:
		return "must be ≤ " + ratio(k.Want) + " but is " + shown(got)
	case *kind.ExclusiveMinimum:
		return "must be > " + ratio(k.Want) + " but is " + shown(got)
	case *kind.ExclusiveMaximum:
		return "must be < " + ratio(k.Want) + " but is " + shown(got)
	case *kind.MultipleOf:
		return "must be a multiple of " + ratio(k.Want) + " but is " + shown(got)
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
		return fmt.Sprintf("must have each entry once, and [%d] and [%d] are the same", k.Duplicates[0], k.Duplicates[1])
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %d entries too many", k.Count)
	case *kind.Contains, *kind.MinContains:
		return "lacks entries that it must contain"
	case *kind.MaxContains:
		return "has too many of the entries that are counted"
	case *kind.Not:
		return "must not be what the schema excludes, and is"
	case *kind.FalseSchema:
		return "is not allowed"
	}
	return "does not fit the schema"
}

// oneOf is some types in words.
func oneOf(types []string) string {
	out := []string{}
	for _, t := range types {
		out = append(out, article(t))
	}
	return strings.Join(out, " or ")
}

// article puts one before a word.
func article(word string) string {
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

// shown is a value in a sentence, cut where it is long.
func shown(v any) string {
	switch value := v.(type) {
	case string:
		return quoted(value)
	case json.Number:
		return string(value)
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	return fmt.Sprint(orNull(v))
}

func orNull(v any) any {
	if v == nil {
		return "null"
	}
	return v
}

func shownList(values []any) string {
	const most = 12
	var out []string
	for _, v := range values[:min(len(values), most)] {
		out = append(out, shown(v))
	}
	if n := len(values) - most; n > 0 {
		out = append(out, fmt.Sprintf("%d more", n))
	}
	return strings.Join(out, ", ")
}

// ratio is a bound as a person writes it.
func ratio(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}
