package runs

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Days that words stand for.
const (
	today     = "today"
	yesterday = "yesterday"
)

// ageWord matches an age: a number of minutes, hours, days or weeks.
var ageWord = regexp.MustCompile(`^(\d{1,4})([mhdw])$`)

var ageUnits = map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
	"w": 7 * 24 * time.Hour}

// TimeAt returns the time that a word stands for, in the time zone of now: the beginning of today, yesterday
// or a date like 2026-11-20, a time like 2026-11-20T15:04 or of RFC 3339, or the time before an age like 12h
// or 7d, in whole minutes.
func TimeAt(word string, now time.Time) (time.Time, error) {
	year, month, day := now.Date()
	switch word {
	case today:
		return time.Date(year, month, day, 0, 0, 0, 0, now.Location()), nil
	case yesterday:
		return time.Date(year, month, day-1, 0, 0, 0, 0, now.Location()), nil
	}
	if m := ageWord.FindStringSubmatch(word); m != nil {
		n, _ := strconv.Atoi(m[1]) // digits
		return now.Add(-time.Duration(n) * ageUnits[m[2]]).Truncate(time.Minute), nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", time.RFC3339} {
		if t, err := time.ParseInLocation(layout, word, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time", word)
}
