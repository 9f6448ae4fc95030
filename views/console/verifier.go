package console

import (
	"slices"

	"acescope/sources/histories"
	"acescope/tui"
)

// Verifier verifies runs against the current code.
type Verifier struct {
	nav      *Navigation
	listing  *Listing
	controls Controls
}

// Verify verifies the marked runs, or without marks the selected run in the time machine. On a screen whose
// cursor does not select runs, it verifies the run under the cursor.
func (v *Verifier) Verify(s tui.Shell, strict bool) {
	if len(v.listing.Marks.Runs) == 0 || v.nav.UnderCursor != nil {
		if v.nav.OpenTimeMachine(s) {
			v.controls.VerifyRun(strict)
		}
		return
	}
	v.controls.VerifyRuns(histories.VerifyRequest{Runs: slices.Clone(v.listing.Marks.Runs), Strict: strict})
	s.Open("verified")
}

// VerifyAll verifies all runs that match the list's query.
func (v *Verifier) VerifyAll(s tui.Shell, strict bool) {
	v.controls.VerifyRuns(histories.VerifyRequest{Query: v.listing.Runs.Query, Strict: strict})
	s.Open("verified")
}
