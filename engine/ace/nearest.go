package ace

import "strings"

// Nearest returns the known name that a misspelled name most likely means, or "".
func Nearest(name string, known []string) string {
	const longest = 100
	normal := func(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }
	best, least := "", len(name)/3+2
	for _, k := range known {
		if len(name) > longest || len(k) > longest {
			continue
		}
		if d := Distance(normal(name), normal(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// Distance returns how many letters must be inserted, deleted, replaced, or swapped with the next one to turn a
// into b: the optimal string alignment distance, in bytes.
func Distance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
