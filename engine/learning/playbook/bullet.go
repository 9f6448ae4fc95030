package playbook

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"acescope/engine/ace"
)

const (
	maxID      = 128     // bytes of a bullet ID
	maxNextID  = 1 << 53 // greater than any number that idNumber returns
	maxSection = 200     // bytes of a section name
	maxCount   = 1_000_000_000

	// defaultSection holds bullets that name no section.
	defaultSection = "OTHERS"
)

// slugs are the ID prefixes of well-known sections by section key: the sections of
// ace-agent/ace, then those of ace-agent/ace-appworld whose prefixes are not their initials.
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

// wellKnown are the preferred spellings of the sections of ace-agent/ace.
var wellKnown = []string{"STRATEGIES & INSIGHTS", "FORMULAS & CALCULATIONS", "CODE SNIPPETS & TEMPLATES",
	"COMMON MISTAKES TO AVOID", "PROBLEM-SOLVING HEURISTICS", "CONTEXT CLUES & INDICATORS", "OTHERS"}

// Slug returns the ID prefix of a section: the prefix of a well-known section, the first four
// letters of a single word, or the initials of the first five words.
func Slug(section string) string {
	key := sectionKey(section)
	if slug, ok := slugs[key]; ok {
		return slug
	}
	words := strings.Fields(nonASCIIWord.ReplaceAllString(key, ""))
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

var nonASCIIWord = regexp.MustCompile(`[^ a-z0-9]`)

// sectionKey normalizes a section name: "Formulas & Calculations",
// "formulas_and_calculations" and "FORMULAS AND CALCULATIONS:" have the same key.
func sectionKey(section string) string {
	s := strings.ReplaceAll(strings.ToLower(section), "&", " and ")
	words := strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(words) == 0 {
		return s
	}
	return strings.Join(words, " ")
}

func formatID(slug string, number int) string { return fmt.Sprintf("%s-%05d", slug, number) }

// idNumber returns the number at the end of an ID, or 0 without a number.
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

var idPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// validID reports whether every file format can hold the ID.
func validID(id string) bool { return len(id) <= maxID && idPattern.MatchString(id) }

// nextNumber returns the number of the next ID: NextID, but greater than all numbers in use.
func (p *Playbook) nextNumber() int {
	next := max(p.NextID, 1)
	for i := range p.Bullets {
		next = max(next, idNumber(p.Bullets[i].ID)+1)
	}
	return next
}

// cleanContent makes text safe to store: valid UTF-8, lines that end with \n, no other
// control character except the tab, no leading or trailing white space.
func cleanContent(s string) string {
	return strings.TrimSpace(cleanText(s))
}

func cleanText(s string) string {
	s = strings.ToValidUTF8(s, "�")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case r != '\n' && r != '\t' && unicode.IsControl(r):
			return -1
		}
		return r
	}, s)
}

// cleanSection returns the section name on one line, cut to maxSection bytes.
func cleanSection(s string) string {
	s = strings.Join(strings.Fields(cleanContent(s)), " ")
	return strings.TrimSpace(ace.Head(s, maxSection))
}

// folded normalizes white space, so that contents that differ only in it compare equal.
func folded(s string) string {
	space := true
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '\n' || c == '\t' || c >= utf8.RuneSelf || c == ' ' && space {
			return strings.Join(strings.Fields(s), " ")
		}
		space = c == ' '
	}
	return s
}

// tally holds amounts of the three counters of a bullet.
type tally struct{ helpful, harmful, neutral int }

func (b *Bullet) counts() tally { return tally{b.Helpful, b.Harmful, b.Neutral} }

func (b *Bullet) count(t tally) {
	b.Helpful += t.helpful
	b.Harmful += t.harmful
	b.Neutral += t.neutral
}

func (t *tally) add(u tally) {
	t.helpful += u.helpful
	t.harmful += u.harmful
	t.neutral += u.neutral
}

func validCount(n int) bool { return n >= 0 && n <= maxCount }

func (t tally) valid() bool {
	return validCount(t.helpful) && validCount(t.harmful) && validCount(t.neutral)
}

// counters reads the metadata of an ADD or TAG. If it is invalid, problem says why.
func counters(metadata map[string]int) (t tally, problem string) {
	known := 0
	for _, name := range []string{"helpful", "harmful", "neutral"} {
		n, ok := metadata[name]
		if ok {
			known++
		}
		if !validCount(n) {
			return tally{}, fmt.Sprintf("%s=%d is out of range: counters only grow", name, n)
		}
	}
	if known < len(metadata) {
		return tally{}, "metadata holds more than the counters helpful, harmful and neutral"
	}
	return tally{metadata["helpful"], metadata["harmful"], metadata["neutral"]}, ""
}

// metadata returns the counters that are not 0, or nil if all are.
func (t tally) metadata() map[string]int {
	if t == (tally{}) {
		return nil
	}
	m := map[string]int{"helpful": t.helpful, "harmful": t.harmful, "neutral": t.neutral}
	maps.DeleteFunc(m, func(_ string, n int) bool { return n == 0 })
	return m
}
