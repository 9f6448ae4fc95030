package command

import (
	"context"
	"strconv"
	"time"

	"acescope/engine/ace"
	"acescope/engine/model"
)

// Bounds of what is told of a program's tool calls.
const (
	maxError = 500 // bytes
	maxName  = 100
	maxTook  = 365 * 24 * time.Hour
)

// witness has the toolbox take note of the tool calls that a program tells of, in their order.
// What programs call their calls need not be unique, so they are known by their places.
func witness(ctx context.Context, tools model.Toolbox, r *ace.SkillSessionResult, allowed ace.SkillsConfig) {
	w, ok := tools.(model.Witness)
	if !ok {
		return
	}
	for i, inv := range r.Invocations {
		id := strconv.Itoa(i + 1)
		name := ace.Cut(inv.Name, maxName)
		w.Begun(ctx, id, name, inv.Args)
		w.Ended(ctx, id, model.CallEnd{Result: inv.Result, Accepted: inv.Accepted, OK: inv.OK, Error: ace.Cut(inv.Error, maxError),
			Began: inv.At, Took: took(inv.DurationMS)})
		if inv.Accepted && !allowed.Allows(inv.Name) {
			note(r.Verdict, "it called the tool "+name+", which is not among the allowed")
		}
	}
}

// took is a duration that a program tells of.
func took(ms float64) time.Duration {
	return time.Duration(min(max(ms, 0), float64(maxTook/time.Millisecond)) * float64(time.Millisecond))
}

// note adds to what is odd, once.
func note(v *ace.Verdict, text string) {
	const most = 1000
	if len(v.Note)+len(text) > most {
		return
	}
	if v.Note != "" {
		v.Note += "; "
	}
	v.Note += text
}
