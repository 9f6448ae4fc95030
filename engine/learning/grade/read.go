package grade

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"

	"acescope/engine/learning/model"
)

var number = regexp.MustCompile(`[-+]?(?:\d[\d,]*)?\.?\d+(?:[eE][-+]?\d+)?`)

// lastNumber returns the number that a text is, or the last one that it contains.
func lastNumber(text string) (float64, bool) {
	if v, ok := model.ParseNumber(text); ok {
		return v, true
	}
	all := number.FindAllString(text, -1)
	if len(all) == 0 {
		return 0, false
	}
	return model.ParseNumber(all[len(all)-1])
}

// choice compares letters from A to Z. Another label is compared exactly.
type choice struct{}

// wholeLetter matches a text that is a letter, or begins with a letter as lists have it: "B", "(b)", "B.
// Paris". The other patterns match the letter in prose; their last match counts, the first pattern that
// matches decides.
var (
	wholeLetter = regexp.MustCompile(`^[\s("'\[*]*([A-Za-z])(?:[\s)"'\].:*]*$|[).:\]])`)
	inProse     = []*regexp.Regexp{
		regexp.MustCompile(`(?i:answer|choice|option)(?i:\s+is)?[\s:("'\[*]*([A-Z])\b`),
		regexp.MustCompile(`[(\[*"']([A-Z])[)\]*"']`),
		regexp.MustCompile(`\b([B-HJ-Z])\b`),
		regexp.MustCompile(`\b([AI])\b`),
	}
)

func (choice) Grade(answer, label string) float64 {
	want := letterOf(wholeLetter, label)
	if want == "" {
		return exact{}.Grade(answer, label)
	}
	got := letterOf(wholeLetter, answer)
	for _, pattern := range inProse {
		if got == "" {
			got = letterOf(pattern, answer)
		}
	}
	return scoreOf(got == want)
}

// letterOf returns the letter of the last match in upper case, or "".
func letterOf(pattern *regexp.Regexp, text string) string {
	all := pattern.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return ""
	}
	return strings.ToUpper(all[len(all)-1][1])
}

// tags gives credit for each tag, as for FiNER. Tags are separated by commas, semicolons or line ends, or are
// a JSON list. They are compared by position, without regard to case and numbers by value, or by name if each
// tag of the label has the form "name: tag". The score is the number of equal tags divided by the number of
// tags of the label, or of the answer if it has more.
type tags struct{}

func (tags) Grade(answer, label string) float64 {
	want, got := tagsOf(label), tagsOf(answer)
	most := max(len(want), len(got))
	if most == 0 {
		return 1
	}
	equal := 0
	if byName := named(want); byName != nil {
		given := named(got)
		for name, tag := range byName {
			if value, ok := given[name]; ok && model.SameAnswer(value, tag) {
				equal++
			}
		}
	} else {
		for i := range min(len(want), len(got)) {
			if model.SameAnswer(got[i], want[i]) {
				equal++
			}
		}
	}
	return math.Round(float64(equal)/float64(most)*1e6) / 1e6
}

func tagsOf(text string) (list []string) {
	var values []any
	if json.Unmarshal([]byte(text), &values) == nil {
		for _, v := range values {
			data, _ := json.Marshal(v) // it was JSON
			list = append(list, strings.Trim(string(data), `"`))
		}
		return list
	}
	for _, tag := range strings.FieldsFunc(text, func(r rune) bool {
		return r == ',' || r == ';' || r == '\n'
	}) {
		if tag = strings.TrimSpace(tag); tag != "" {
			list = append(list, tag)
		}
	}
	return list
}

// named returns the tags by name, or nil unless every tag has its own name.
func named(list []string) map[string]string {
	byName := make(map[string]string, len(list))
	for _, tag := range list {
		name, value, ok := strings.Cut(tag, ":")
		name = strings.ToLower(strings.TrimSpace(name))
		if _, twice := byName[name]; !ok || twice {
			return nil
		}
		byName[name] = value
	}
	return byName
}
