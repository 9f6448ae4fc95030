package blueprint

import "strings"

// nearest is the name that a misspelt one was most likely meant to be, "" where none is near.
func nearest(name string, known []string) string {
	const longest = 100
	if len(name) > longest {
		return ""
	}
	best, least := "", len(name)/3+2
	for _, k := range known {
		if len(k) > longest {
			continue
		}
		d := distance(strings.ToLower(name), strings.ToLower(k))
		if strings.EqualFold(strings.ReplaceAll(name, "-", "_"), k) {
			d = 0
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
}

// meant is a sentence's end that names the nearest one.
func meant(name string, known []string) string {
	if n := nearest(name, known); n != "" {
		return "; is " + quoted(n) + " meant?"
	}
	return ""
}

// distance is how many characters must be put in, left out or replaced.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := before
			if a[i-1] != b[j-1] {
				cost++
			}
			before = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
