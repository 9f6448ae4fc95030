package histories

import "acescope/engine/ace"

// StatusOf is how a run stands, whose input may not have said that it runs, and which may go
// on as another.
func StatusOf(exit ace.ExitStatus, d *Detail) ace.ExitStatus {
	switch {
	case d.ContinuedAs != "":
		return ace.Continued
	case exit == "" && d.Close.IsZero():
		return ace.Running
	}
	return exit
}
