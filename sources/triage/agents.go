package triage

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/trace"
	"acescope/engine/trace/adapter"
	"acescope/sources/runs"
)

// statusIn matches an HTTP status code in the message of an SDK: "Error code: 401", "status_code: 401,", or
// at its beginning: "401 UNAUTHENTICATED".
var statusIn = regexp.MustCompile(
	`(?i:\bstatus|\bstatus[ _]?code|\berror code|\bhttp)[ :=(]+([45]\d\d)\b|^([45]\d\d) [A-Z{]`)

// statusOfError are parts of the types and messages with which SDKs of models report a status without its
// code.
var statusOfError = []struct {
	part   string
	status int
}{{"AuthenticationError", http.StatusUnauthorized}, {"AuthenticationException", http.StatusUnauthorized},
	{"Incorrect API key provided", http.StatusUnauthorized}, {"invalid x-api-key", http.StatusUnauthorized},
	{"ModelInvocationError.Authentication", http.StatusUnauthorized},
	{"PermissionDeniedError", http.StatusForbidden},
	{"RateLimitError", http.StatusTooManyRequests}, {"ModelInvocationError.RateLimit", http.StatusTooManyRequests},
	{"BadRequestError", http.StatusBadRequest}, {"ModelInvocationError.BadRequest", http.StatusBadRequest}}

// statusOf returns the HTTP status that a failure reports, or 0. A code outranks the name of an error.
func statusOf(f *failurepb.Failure) int {
	named := 0
	for n := 0; f != nil && n < 20; f, n = f.GetCause(), n+1 {
		message := f.GetMessage()[:min(len(f.GetMessage()), maxMessage)]
		if m := statusIn.FindStringSubmatch(message); m != nil {
			code, _ := strconv.Atoi(m[1] + m[2])
			return code
		}
		text := f.GetApplicationFailureInfo().GetType() + " " + message
		for _, e := range statusOfError {
			if named == 0 && strings.Contains(text, e.part) {
				named = e.status
			}
		}
	}
	return named
}

// statusPattern names an HTTP status: "HTTP 401 Unauthorized".
func statusPattern(status int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", status, http.StatusText(status)))
}

// foreign reports whether a run is of a user's own workflow.
func foreign(r runs.Run) bool { return runs.TypeOf(r.Type) == runs.OtherType }

// minLoop is the number of equal calls or of requests to models that explain a timeout.
const minLoop = 20

// loopOf describes the loop of an agent: "the same call look_up({…}) 128 times", or "257 model calls in a
// loop". It returns "" if no call repeats that often.
func loopOf(t *trace.Trace) string {
	counts := map[string]int{}
	most, name := 0, ""
	for _, c := range t.Calls {
		if c.Operation != trace.Tool {
			continue
		}
		key := c.Name + "(" + string(c.Arguments) + ")"
		if counts[key]++; counts[key] > most {
			most, name = counts[key], key
		}
	}
	requests := t.Sum.Requests + t.Sum.Failed
	switch {
	case most >= minLoop:
		return fmt.Sprintf("the same call %s %s, %s", ace.OneLine(name, maxSubject),
			ace.Count(most, "time"), ace.Count(requests, "model call"))
	case requests >= minLoop:
		return ace.Count(requests, "model call") + " in a loop"
	}
	return ""
}

// explain adds what the history of a run says about its timeout: a loop of calls.
func (s *scanner) explain(ctx context.Context, r runs.Run, end *Ending) error {
	if !foreign(r) || end.Failure.Kind != ace.TimedOut {
		return nil
	}
	var f adapter.Folder
	err := s.events(ctx, r, func(e *historypb.HistoryEvent) { f.Apply(e) })
	t := f.Trace()
	if loop := loopOf(&t); loop != "" {
		end.Failure.Message += ": " + loop
		end.Pattern = "the agent called in a loop until the timeout"
	}
	return err
}

// nameCall names the activity that an event schedules by the framework too: two frameworks may have the same
// type for different work.
func (t *StepTimer) nameCall(e *historypb.HistoryEvent, f *adapter.Folder) {
	name, ok := t.names[e.GetEventId()]
	if !ok || e.GetActivityTaskScheduledEventAttributes() == nil {
		return
	}
	all := f.Trace()
	for i := len(all.Calls) - 1; i >= 0; i-- {
		if c := all.Calls[i]; c.Event == e.GetEventId() {
			t.names[e.GetEventId()] = strings.TrimSpace(c.Framework + " " + name)
			return
		}
	}
}
