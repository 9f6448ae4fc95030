package playbook

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// maxID is the most bytes that an id may have.
const maxID = 128

// maxNextID is above any number that an id can hold, see idNumber.
const maxNextID = 1 << 53

// defaultSection takes bullets that name no section.
const defaultSection = "OTHERS"

// slugs are the id prefixes of well-known sections, by section key: those of
// ace-agent/ace, then those seen in the playbooks of ace-agent/ace-appworld where they
// are not the initials.
var slugs = map[string]string{
	"financial strategies and insights": "fin",
	"formulas and calculations":         "calc",
	"code snippets and templates":       "code",
	"common mistakes to avoid":          "err",
	"problem solving heuristics":        "prob",
	"context clues and indicators":      "ctx",
	"others":                            "misc",
	"meta strategies":                   "meta",

	"strategies and hard rules":                "shr",
	"apis to use for specific information":     "api",
	"useful code snippets and templates":       "code",
	"problem solving heuristics and workflows": "psw",
	"troubleshooting and pitfalls":             "ts",
}

// wellKnown are the sections of ace-agent/ace, for operations that spell them otherwise.
var wellKnown = []string{"STRATEGIES & INSIGHTS", "FORMULAS & CALCULATIONS", "CODE SNIPPETS & TEMPLATES",
	"COMMON MISTAKES TO AVOID", "PROBLEM-SOLVING HEURISTICS", "CONTEXT CLUES & INDICATORS", "OTHERS"}

// Slug is the prefix of ids in a section: that of a well-known section, else the first
// four letters of a single word, else the initials of the first five words.
func Slug(section string) string {
	key := sectionKey(section)
	if slug, ok := slugs[key]; ok {
		return slug
	}
	words := strings.Fields(asciiWords(key))
	switch len(words) {
	case 0:
		return "sec"
	case 1:
		return words[0][:min(4, len(words[0]))]
	}
	var initials strings.Builder
	for _, w := range words[:min(5, len(words))] {
		initials.WriteByte(w[0])
	}
	return initials.String()
}

// asciiWords keeps what an id may hold.
func asciiWords(key string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, key)
}

// sectionKey is what two spellings of one section have in common: "Formulas &
// Calculations", "formulas_and_calculations" and "FORMULAS AND CALCULATIONS:".
func sectionKey(section string) string {
	s := strings.ReplaceAll(strings.ToLower(section), "&", " and ")
	words := strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(words) == 0 {
		return s
	}
	return strings.Join(words, " ")
}

func formatID(slug string, number int) string { return fmt.Sprintf("%s-%05d", slug, number) }

// idNumber is the number that an id ends with; 0 where there is none.
func idNumber(id string) int {
	dash := strings.LastIndexByte(id, '-')
	if dash < 0 || len(id)-dash-1 > 15 {
		return 0
	}
	n, err := strconv.Atoi(id[dash+1:])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// validID tells whether an id can stand in every format: letters, digits, "_", "-" and
// "." in ASCII.
func validID(id string) bool {
	if id == "" || len(id) > maxID {
		return false
	}
	for _, c := range []byte(id) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.') {
			return false
		}
	}
	return true
}

// nextNumber is the number of the next id: NextID, or more where the bullets have come
// further.
func (p *Playbook) nextNumber() int {
	next := max(p.NextID, 1)
	for i := range p.Bullets {
		next = max(next, idNumber(p.Bullets[i].ID)+1)
	}
	return next
}
