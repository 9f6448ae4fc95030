package tui

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// fit is how well a typed pattern fits a name, from not at all to equal.
type fit int

const (
	noFit     fit = iota
	mentioned     // only the help contains it
	scattered     // its characters occur in this order
	inside        // it occurs in the name
	wordwise      // it consists of beginnings of words, in this order
	begins
	equals
)

// fitOf returns the fit of a pattern in lower case.
func fitOf(pattern, name, help string) fit {
	name = strings.ToLower(name)
	switch {
	case pattern == name:
		return equals
	case strings.HasPrefix(name, pattern):
		return begins
	case fitsWords(pattern, name):
		return wordwise
	case strings.Contains(name, pattern):
		return inside
	case inOrder(pattern, name):
		return scattered
	case len(pattern) > 1 && strings.Contains(strings.ToLower(help), pattern):
		return mentioned
	}
	return noFit
}

// fitsWords reports whether a pattern is made of beginnings of words of the name, such as "tmach" of "time
// machine".
func fitsWords(pattern, name string) bool {
	reached := make([]bool, len(pattern)+1) // by number of bytes matched by the words so far
	reached[0] = true
	for _, word := range strings.FieldsFunc(name, isGap) {
		for at := len(pattern) - 1; at >= 0; at-- { // from the end, so that a word counts once
			if !reached[at] {
				continue
			}
			for n := 1; n <= len(word) && at+n <= len(pattern) && word[n-1] == pattern[at+n-1]; n++ {
				reached[at+n] = true
			}
		}
	}
	return reached[len(pattern)]
}

func isGap(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// inOrder reports whether the characters of a pattern occur in the name in this order.
func inOrder(pattern, name string) bool {
	for _, r := range pattern {
		i := strings.IndexRune(name, r)
		if i < 0 {
			return false
		}
		name = name[i+len(string(r)):]
	}
	return true
}

// ranked returns the candidates that fit a pattern, the best first. Among equal fits, the most recently used
// values come first, then the order of the list decides. recent returns how many lines ago a value was used,
// 0 for never.
func ranked(list []Candidate, pattern string, recent func(value string) int) []Candidate {
	type place struct {
		Candidate
		fit
		recent int
	}
	pattern = strings.ToLower(pattern)
	var places []place
	for _, c := range list {
		name := strings.TrimSuffix(c.Value, " ")
		f := fitOf(pattern, name, c.Help)
		if f == noFit {
			continue
		}
		ago := recent(name)
		if ago == 0 {
			ago = maxPast + 1
		}
		places = append(places, place{c, f, ago})
	}
	slices.SortStableFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.fit, a.fit), cmp.Compare(a.recent, b.recent))
	})
	out := make([]Candidate, len(places))
	for i := range places {
		out[i] = places[i].Candidate
	}
	return out
}
