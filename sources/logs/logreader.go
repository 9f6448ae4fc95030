package logs

import "time"

// LineRate is lines of a file counted at some moment, and how fast they came before it.
type LineRate struct {
	At        time.Time
	Lines     int64
	PerSecond float64
}

// RateOver is how long lines are counted for a lineRate.
const RateOver = 2 * time.Second
