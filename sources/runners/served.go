package runners

import (
	"strings"

	"acescope/engine/ace"
	"acescope/sources/runs"
)

// ServedBy is the run of a blueprint that served a step; false where none did.
func ServedBy(st ace.StepState) (runs.Run, bool) {
	if st.Served == nil || st.Served.RunID == "" {
		return runs.Run{}, false
	}
	return BlueprintRun(st.Served.RunID), true
}

// Server says who serves a step, where that is not who serves all of the run's steps by
// themselves; "" where there is nothing to say.
func Server(in ace.TaskInput, st ace.StepState) string {
	switch {
	case st.Served != nil:
		return st.Served.Provider
	case len(in.Steps) == 0 || st.Phase == ace.PhasePersist || st.Status == ace.StatusPending:
		return ""
	}
	return in.ProviderOf(st.Phase)
}

// Servers says which steps of a run others serve than its provider, "" where none.
func Servers(in ace.TaskInput) string {
	var said []string
	for _, step := range ace.Steps() {
		if by := in.Steps[string(step)]; by != "" {
			said = append(said, string(step)+" by "+by)
		}
	}
	return strings.Join(said, ", ")
}
