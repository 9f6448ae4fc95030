package history

import (
	"net/url"
	"strconv"
	"strings"
)

// OperationLabel is a short name for an activity whose id was given by engine/operation
// ("op.STEP.BRANCH.N"): "draft", "draft 2", "draft [left] 2"; false for other ids.
func OperationLabel(activityID string) (string, bool) {
	step, branch, n, ok := OperationPlace(activityID)
	if !ok {
		return "", false
	}
	if branch != "" {
		step += " [" + branch + "]"
	}
	if n > 1 {
		step += " " + strconv.Itoa(n)
	}
	return step, true
}

// OperationPlace takes an operation's id apart: its step, its branch ("" for the main
// path, names with "/" between them) and its number there, from 1. Of parts that were too
// long for an id there is the begin, "~" and a digest.
func OperationPlace(id string) (step, branch string, n int, ok bool) {
	parts := strings.Split(id, ".")
	if len(parts) != 4 || parts[0] != "op" {
		return "", "", 0, false
	}
	step, err := url.PathUnescape(parts[1])
	if err != nil || step == "" {
		return "", "", 0, false
	}
	if parts[2] != "-" {
		if branch, err = url.PathUnescape(parts[2]); err != nil {
			return "", "", 0, false
		}
	}
	n, err = strconv.Atoi(parts[3])
	return step, branch, n, err == nil && n > 0
}
