package views

// SavedFilter is a choice of runs with a name. Query is what one would type after "/".
type SavedFilter struct {
	Name    string
	Query   string
	Default bool // in force when the console opens; at most one is
}
