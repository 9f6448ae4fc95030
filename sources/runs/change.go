package runs

import (
	"context"

	"acescope/engine/ace"
)

// Point is a point in a run: an event, or the start of a phase. One of the fields is set.
type Point struct {
	Event int64
	Phase ace.Phase
}

// Field is a field of an input and its new value.
type Field struct{ Name, Value string }

// Change is a change of a run that a user requests.
type Change struct {
	Verb     string  // fork, reset, terminate or signal
	At       Point   // of a fork or a reset
	Step     string  // point of a fork of a run of a flow, by its path; "" if At is set
	Fields   []Field // that a fork changes
	Reason   string  // of a reset or a termination
	Signal   string  // name
	Argument string  // of the signal, as JSON
}

// Prepared is a change that waits for confirmation. Do makes it and returns a line for the user, and the run
// that it started, if any.
type Prepared struct {
	Title string
	Lines []string // plain text, not yet safe
	Yes   string   // verb phrase for yes
	Do    func(context.Context) (done string, started Run, err error)
}

// Original is a run to fork.
type Original struct {
	// Fields are the fields of its input that a fork may change, with their values.
	Fields []Field
	// Plan plans a fork. It changes nothing.
	Plan func(ctx context.Context, at Point, fields []Field) (Prepared, error)
}

// Progress receives how much of an operation is done.
type Progress func(done, total int64)

// Batch is forks of several runs that wait for confirmation. Do starts them and reports how many it started,
// also if it fails; they have ID as their experiment.
type Batch struct {
	ID    string
	Title string
	Lines []string // plain text, not yet safe
	Yes   string   // verb phrase for yes
	Do    func(ctx context.Context, progress Progress) (started int, err error)
}

// SavedFilter is a query with a name. The default one applies at the start of the console.
type SavedFilter struct {
	Name    string `toml:"name" json:"name"`
	Query   string `toml:"query" json:"query"` // as it is typed: short words or the query language
	Default bool   `toml:"default,omitempty" json:"default"`
	Sort    string `toml:"sort,omitempty" json:"sort,omitempty"` // column; "" for the newest first
}

// Queries of shipped filters.
const (
	OwnQuery   = ByCondition + `="` + Me + `"`
	SpentQuery = TokensCondition + ">0"
)

// ShippedFilters returns the filters that every list has.
func ShippedFilters() []SavedFilter {
	return []SavedFilter{
		{Name: "all"},
		{Name: "running", Query: "running"},
		{Name: "wrong", Query: "wrong"},
		{Name: "failed", Query: "failed timed_out terminated"},
		{Name: "expensive", Query: "expensive", Sort: "cost"},
		{Name: "mine", Query: "mine"},
	}
}
