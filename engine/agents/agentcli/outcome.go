package agentcli

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"acescope/engine/ace"
	"acescope/engine/internal/process"
)

// Class says how a call ended.
type Class string

// Classes of outcomes.
const (
	ClassOK             Class = "ok"
	ClassDenied         Class = "denied"          // it succeeded, but tool calls were denied
	ClassAPIError       Class = "api_error"       // the model API failed
	ClassRateLimited    Class = "rate_limited"    // or out of quota
	ClassOverloaded     Class = "overloaded"      // the model API rejected the request for lack of capacity
	ClassRefusal        Class = "refusal"         // the model refused
	ClassMaxTurns       Class = "max_turns"       // Call.MaxTurns was reached
	ClassBudget         Class = "budget"          // Call.MaxBudgetUSD was reached
	ClassMaxTokens      Class = "max_tokens"      // the answer or the context was cut off
	ClassUnknownSession Class = "unknown_session" // the session to resume does not exist
	ClassSessionInUse   Class = "session_in_use"  // the new session ID is taken
	ClassNotLoggedIn    Class = "not_logged_in"   // the CLI has no valid credentials
	ClassUsage          Class = "usage"           // the CLI rejected its arguments
	ClassTooOld         Class = "too_old"         // the CLI needs an update
	ClassMissing        Class = "missing"         // the program does not exist or cannot be started
	ClassInterrupted    Class = "interrupted"     // the turn was stopped
	ClassKilled         Class = "killed"          // acescope or another program ended the process
	ClassTimedOut       Class = "timed_out"       // process.TimedOut
	ClassNoResult       Class = "no_result"       // the CLI exited without a result
	ClassFailed         Class = "failed"          // any other error
)

// OK reports whether the agent finished its instruction.
func (c Class) OK() bool { return c == ClassOK || c == ClassDenied }

// Infrastructure reports whether the failure is not the agent's own, so that the same call
// can succeed later.
func (c Class) Infrastructure() bool {
	switch c {
	case ClassAPIError, ClassRateLimited, ClassOverloaded, ClassKilled, ClassTimedOut, ClassNoResult:
		return true
	}
	return false
}

// Undelivered reports whether the agent did not act on its message, so that the message can be sent
// again.
func (c Class) Undelivered() bool {
	switch c {
	case ClassUnknownSession, ClassSessionInUse, ClassNotLoggedIn, ClassUsage, ClassTooOld, ClassMissing:
		return true
	}
	return false
}

// Outcome is the interpretation of a finished call.
type Outcome struct {
	Class     Class  `json:"class"`
	OK        bool   `json:"ok"`
	Retry     bool   `json:"retry"`    // the same call can succeed later
	Sentence  string `json:"sentence"` // for display, one line
	SessionID string `json:"session_id,omitempty"`
	Model     string `json:"model,omitempty"`
	Text      string `json:"text,omitempty"` // the last text of the agent
	// Result is the last result, or nil. Its usage is as the CLI counts it; Usage is the usage of this
	// call alone.
	Result   *Result   `json:"result,omitempty"`
	Results  int       `json:"results"` // more than 1 if agents continued in the background
	Usage    ace.Usage `json:"usage"`
	Denials  int       `json:"denials,omitempty"`
	Retries  int       `json:"retries,omitempty"` // by the CLI itself
	Garbage  int64     `json:"garbage,omitempty"` // lines that were not events
	ExitCode int       `json:"exit_code"`
}

// Judge counts the events of a call, or of one turn of a session, and interprets its end. The
// zero value is ready to use.
type Judge struct {
	Meter Meter // state from earlier calls of the same session

	o     Outcome // so far
	torn  bool
	fault fault  // the last error event
	plain string // the beginning of the output that was not JSON
}

type fault struct {
	text   string
	status int
}

// Add counts an event.
func (j *Judge) Add(e Event) {
	if e.SessionID != "" {
		j.o.SessionID = e.SessionID
	}
	if e.Model != "" && e.Model != "<synthetic>" && e.ParentID == "" {
		j.o.Model = e.Model
	}
	switch e.Kind {
	case KindText:
		if e.ParentID == "" {
			j.o.Text = e.Text
		}
	case KindError:
		j.fault = fault{e.Text, e.Status}
	case KindStatus:
		if e.Name == "system/api_retry" {
			j.o.Retries++
		}
	case KindToolResult:
		if e.Tool != nil && e.Tool.Denied {
			j.o.Denials++
		}
	case KindGarbage:
		j.o.Garbage++
		j.torn = e.Name == GarbageTorn
		if len(j.plain) < MaxText {
			j.plain += e.Text + "\n"
		}
	case KindResult:
		j.o.Results++
		j.o.Result = e.Result
		j.o.Usage = j.o.Usage.Add(j.Meter.Advance(*e.Result))
		j.o.Denials = max(j.o.Denials, e.Result.Denials)
	}
}

// Ended reports whether a result has come.
func (j *Judge) Ended() bool { return j.o.Results > 0 }

// Outcome interprets the events, the exit of the process and its standard error. For a turn
// whose process continues, pass the zero Exit.
//
// The result's own is_error decides, not its subtype or the exit code. Exit code and standard
// error count only without a result.
func (j *Judge) Outcome(exit process.Exit, stderr string) Outcome {
	o := j.o
	o.ExitCode = exit.Code
	if o.Result != nil && o.Result.Text != "" {
		o.Text = o.Result.Text
	}
	// OpenCode's result is made by the parser, but its exit code is its own.
	madeUp := j.o.Result != nil && j.o.Result.Subtype == openCodeEnded
	var why string
	switch {
	case exit.Err != nil:
		o.Class, why = ClassMissing, exit.Err.Error()
	case j.o.Result == nil, madeUp && j.o.Result.IsError && killed(exit),
		madeUp && !j.o.Result.IsError && exit.Code > 0 && !byUs(exit):
		o.Class, why = j.withoutResult(exit, stderr)
	case j.o.Result.IsError:
		o.Class, why = j.failed()
	default:
		o.Class = j.succeeded(madeUp)
	}
	o.OK = o.Class.OK()
	o.Retry = j.retry(o.Class, why)
	o.Sentence = j.sentence(o, exit, why)
	return o
}

// succeeded returns the class of a result that is not an error. OpenCode reports no error for
// an answer that was cut off.
func (j *Judge) succeeded(openCode bool) Class {
	switch {
	case openCode && j.o.Result.StopReason == "content-filter":
		return ClassRefusal
	case openCode && j.o.Result.StopReason == "length":
		return ClassMaxTokens
	case j.o.Denials > 0:
		return ClassDenied
	}
	return ClassOK
}

// failed returns the class of a result that is an error, and its reason.
func (j *Judge) failed() (Class, string) {
	r := j.o.Result
	why := cmp.Or(strings.Join(r.Errors, "; "), r.Text, j.fault.text)
	switch {
	case r.Subtype == "error_max_turns" || r.TerminalReason == "max_turns":
		return ClassMaxTurns, why
	case strings.HasPrefix(r.Subtype, "error_max_budget"):
		return ClassBudget, why
	case r.StopReason == "refusal" || r.StopReason == "content-filter":
		return ClassRefusal, why
	case r.StopReason == "max_tokens" || r.StopReason == "length":
		return ClassMaxTokens, why
	case strings.Contains(r.TerminalReason, "abort") || strings.Contains(r.TerminalReason, "interrupt"):
		return ClassInterrupted, why
	}
	status := cmp.Or(r.Status, j.fault.status)
	class := classOfStatus(status)
	if class == "" || status == 400 || status == 404 { // the text says more than the status
		class = cmp.Or(classOfText(why+"\n"+j.fault.text), class)
	}
	return cmp.Or(class, classOfStatus(statusIn(why)), ClassFailed), why
}

// withoutResult returns the class of a call without a result, and its reason.
func (j *Judge) withoutResult(exit process.Exit, stderr string) (Class, string) {
	output := stderr + "\n" + j.plain
	switch {
	case exit.Class == process.TimedOut:
		return ClassTimedOut, ""
	case byUs(exit):
		return ClassKilled, "acescope stopped it"
	case killed(exit): // whatever it printed before
		return ClassKilled, "signal: " + cmp.Or(exit.Signal, strconv.Itoa(exit.Code-128))
	}
	if class := classOfText(output); class != "" {
		return class, lineOfClass(output, class)
	}
	why := ace.LastLine(output)
	switch {
	case j.fault.text != "":
		return cmp.Or(classOfStatus(j.fault.status), ClassFailed), j.fault.text
	case exit.Code == 130:
		return ClassInterrupted, why
	case exit.Code == 2 && why != "":
		return ClassUsage, why
	case exit.Code != 0 && why != "":
		return ClassFailed, why
	}
	return ClassNoResult, why
}

// byUs reports whether acescope ended the process.
func byUs(exit process.Exit) bool {
	return exit.Class == process.Killed || exit.Class == process.Canceled
}

// killed reports whether a signal ended the process. A wrapper, such as a shell, reports SIGKILL, SIGTERM and
// SIGHUP by the exit codes 137, 143 and 129.
func killed(exit process.Exit) bool {
	return exit.Signal != "" || exit.Code == 137 || exit.Code == 143 || exit.Code == 129
}

// classOfStatus returns the class of an HTTP status, or "".
func classOfStatus(status int) Class {
	switch {
	case status == 429:
		return ClassRateLimited
	case status == 529 || status == 503:
		return ClassOverloaded
	case status == 401 || status == 403:
		return ClassNotLoggedIn
	case status >= 400:
		return ClassAPIError
	}
	return ""
}

// messages are the error messages of the CLIs, specific ones before general ones.
var messages = sync.OnceValue(func() []message {
	return []message{
		{ClassUnknownSession, anyOf("no conversation found", "session not found",
			"no (?:saved )?session found",
			"thread not found", "no rollout found", "invalid session identifier", "error resuming session")},
		{ClassSessionInUse, anyOf("already in use")},
		{ClassNotLoggedIn, anyOf("not logged in", "please run /login", "invalid api key", "invalid x-api-key",
			"authentication_error", "failed to authenticate", "oauth token has expired",
			"please set an auth method",
			"no api key", "missing api key", "api key (?:is )?(?:not set|missing)", "unauthorized",
			"run .{0,20}(?:auth )?login")},
		{ClassTooOld, anyOf("needs an update",
			"(?:version|node).{0,40}(?:too old|no longer supported|is not supported)",
			"please (?:update|upgrade) (?:to|your|claude|codex|gemini)", "requires node",
			"newer version.{0,30}required")},
		{ClassOverloaded, anyOf("overloaded", "service unavailable", "at capacity")},
		{ClassRateLimited, anyOf("rate.?limit", "too many requests", "resource_exhausted", "quota",
			"usage limit")},
		{ClassMaxTurns, anyOf("max(?:imum)? session turns", "maximum number of turns")},
		{ClassInterrupted, anyOf("request was aborted", "request interrupted", "interrupted by user",
			"operation was cancelled", "turn (?:was )?interrupted")},
		{ClassMaxTokens, anyOf("prompt is too long", "maximum context", "context.{0,10}window",
			"output token maximum", "context_length_exceeded")},
		{ClassUsage, anyOf("^error: .{0,20}(?:unknown|unexpected|invalid|missing|required|option)",
			"unknown option",
			"unknown argument", "unexpected argument", "invalid (?:value|choice)", "invalid values:",
			"^usage: ",
			"requires --", "cannot use both")},
		{ClassAPIError, anyOf("api error", "stream disconnected", "connection (?:refused|reset|error)",
			"econnre",
			"etimedout", "fetch failed", "internal server error", "bad gateway", "invalid_request_error",
			"server_error")},
	}
})

type message struct {
	class   Class
	pattern *regexp.Regexp
}

func anyOf(patterns ...string) *regexp.Regexp {
	return regexp.MustCompile("(?im)" + strings.Join(patterns, "|"))
}

// classOfText returns the class of the first known message in text, or "".
func classOfText(text string) Class {
	text = text[:min(len(text), 4*MaxText)]
	for _, m := range messages() {
		if m.pattern.MatchString(text) {
			return m.class
		}
	}
	return ""
}

// lineOfClass returns the first line of text that has the class.
func lineOfClass(text string, class Class) string {
	for l := range strings.Lines(text) {
		if classOfText(l) == class {
			return strings.TrimSpace(l)
		}
	}
	return ace.LastLine(text)
}

var statusShape = regexp.MustCompile(
	`(?i)(?:"code"|"status"|"statusCode"|api error|status(?: code)?|http)["':\s]{1,4}([45]\d\d)\b`)

// statusIn returns the HTTP status that text mentions, or 0.
func statusIn(text string) int {
	m := statusShape.FindStringSubmatch(text[:min(len(text), MaxText)])
	if m == nil {
		return 0
	}
	status, _ := strconv.Atoi(m[1]) // three digits
	return status
}

// retry reports whether the same call can succeed later. An API that rejects a request will
// reject it again.
func (j *Judge) retry(class Class, why string) bool {
	if class != ClassAPIError {
		return class.Infrastructure()
	}
	status := 0
	if j.o.Result != nil {
		status = j.o.Result.Status
	}
	status = cmp.Or(status, j.fault.status, statusIn(why))
	if status == 0 && strings.Contains(why, "invalid_request_error") {
		return false
	}
	return status == 0 || status >= 500 || status == 408 || status == 409
}

var sentences = map[Class]string{
	ClassOK:             "The agent finished",
	ClassAPIError:       "The model API failed",
	ClassRateLimited:    "The model API is rate limited",
	ClassOverloaded:     "The model API is overloaded",
	ClassRefusal:        "The model refused",
	ClassMaxTurns:       "The limit of turns was reached",
	ClassBudget:         "The budget is used up",
	ClassMaxTokens:      "The answer or the context is too long",
	ClassUnknownSession: "The session to resume was not found",
	ClassSessionInUse:   "A session with this ID already exists",
	ClassNotLoggedIn:    "The CLI is not logged in",
	ClassUsage:          "The CLI rejected its arguments",
	ClassTooOld:         "The CLI is too old",
	ClassMissing:        "The CLI could not be started",
	ClassInterrupted:    "The turn was interrupted",
	ClassKilled:         "The CLI was killed",
	ClassTimedOut:       "The CLI timed out and was stopped",
	ClassNoResult:       "The CLI exited without a result",
	ClassFailed:         "The agent failed",
}

// maxSentence bounds the CLI's own words in a sentence, in bytes.
const maxSentence = 400

func (j *Judge) sentence(o Outcome, exit process.Exit, why string) string {
	s := sentences[o.Class]
	if o.Class == ClassDenied {
		s = fmt.Sprintf("The agent finished, but %d tool calls were denied", o.Denials)
		if o.Denials == 1 {
			s = "The agent finished, but 1 tool call was denied"
		}
	}
	why = ace.OneLine(strings.ToValidUTF8(why, "\ufffd"), maxSentence)
	if why != "" {
		s += ": " + why
	}
	var notes []string
	note := func(applies bool, format string, args ...any) {
		if applies {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	note(o.Results > 1, "%d results, the last one counts", o.Results)
	note(o.Retries > 0 && !o.OK, "retries by the CLI: %d", o.Retries)
	note(exit.Class != "" && exit.Code == 0 && j.o.Result != nil && j.o.Result.IsError, "exit code 0")
	note(o.OK && exit.Code > 0 || o.Class == ClassNoResult, "exit code %d", exit.Code)
	note(j.torn, "its output is truncated")
	if len(notes) > 0 {
		s += " (" + strings.Join(notes, "; ") + ")"
	}
	return s
}

// Meter derives the usage of each turn from a CLI's sums over a session. Its state belongs to
// the session: store it with the session, as JSON, across processes. The zero value is for a
// new session.
type Meter struct {
	Cost  float64   `json:"cost,omitempty"`  // the last cumulative cost
	Usage ace.Usage `json:"usage,omitempty"` // the last cumulative tokens
}

// Advance returns the usage of the turn that ended with r.
//
// A sum that is smaller than the last one, or equal although there was output, started from
// zero: older versions of Claude Code count per process.
func (m *Meter) Advance(r Result) ace.Usage {
	u := r.Usage
	if r.Cumulative {
		u = m.tokens(u)
	}
	if r.CostCumulative {
		last := m.Cost
		m.Cost = r.Usage.CostUSD
		u.CostUSD = r.Usage.CostUSD
		if u.CostUSD > last || u.CostUSD == last && r.Usage.OutputTokens == 0 {
			u.CostUSD = math.Round((u.CostUSD-last)*1e9) / 1e9 // without the rounding error
		}
	}
	// Codex and Gemini report no cost, and OpenCode 0 for a model that it has no price of.
	u.Unpriced = u.Unpriced || !r.CostCumulative && u.CostUSD == 0 && u.Tokens() > 0
	return u
}

// tokens returns the difference to the last sum.
func (m *Meter) tokens(u ace.Usage) ace.Usage {
	if u.InputTokens == 0 && u.OutputTokens == 0 && u.CacheReadTokens == 0 {
		return u // a failed turn reports no sum
	}
	last := m.Usage
	m.Usage = ace.Usage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CacheReadTokens: u.CacheReadTokens,
	}
	restarted := u.OutputTokens < last.OutputTokens || u.InputTokens < last.InputTokens ||
		u.CacheReadTokens < last.CacheReadTokens
	if !restarted {
		u.InputTokens -= last.InputTokens
		u.OutputTokens -= last.OutputTokens
		u.CacheReadTokens -= last.CacheReadTokens
	}
	return u
}
