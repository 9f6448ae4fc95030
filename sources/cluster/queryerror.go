package cluster

import (
	"regexp"
	"strconv"
	"strings"
)

// What the server's messages say of a place in a query.
var (
	atPosition = regexp.MustCompile(`at position (\d+)(?: near '([^']*)')?`)
	namedThing = regexp.MustCompile(`(?:search attribute:|column name|filter on|operator) ?['"]?([\w.]+)`)
)

// hidden is what the server puts before a query to make a statement of it; positions
// count from there, and point behind the word that did not fit.
const hidden = "select * from table1 where "

// QueryErrorAt is the byte offset in a visibility query that its server's error points
// to, -1 where it points nowhere.
func QueryErrorAt(query string, err error) int {
	text := err.Error()
	if m := atPosition.FindStringSubmatch(text); m != nil {
		return offset(query, m[1], strings.TrimSpace(m[2]))
	}
	if m := namedThing.FindStringSubmatch(text); m != nil {
		return strings.Index(query, m[1])
	}
	return -1
}

func offset(query, position, near string) int {
	if near != "" {
		if at := strings.LastIndex(query, near); at >= 0 {
			return at
		}
	}
	n, err := strconv.Atoi(position)
	if err != nil {
		return -1
	}
	behind := min(max(n-len(hidden)-1, 0), len(query))
	words := strings.TrimRight(query[:behind], " ")
	return strings.LastIndex(words, " ") + 1
}
