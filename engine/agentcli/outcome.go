package agentcli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"acescope/engine/ace"
)

// Class says how a call ended.
type Class string

// Classes of outcomes.
const (
	ClassOK             Class = "ok"
	ClassDenied         Class = "denied"          // it ended well, but tools were not allowed
	ClassAPIError       Class = "api_error"       // the model's API failed
	ClassRateLimited    Class = "rate_limited"    // or out of quota
	ClassOverloaded     Class = "overloaded"      //
	ClassRefusal        Class = "refusal"         // the model would not
	ClassMaxTurns       Class = "max_turns"       //
	ClassBudget         Class = "budget"          //
	ClassMaxTokens      Class = "max_tokens"      // the answer, or the context, was cut off
	ClassUnknownSession Class = "unknown_session" // what was to be resumed is gone
	ClassSessionInUse   Class = "session_in_use"  // what was to begin exists
	ClassNotLoggedIn    Class = "not_logged_in"   //
	ClassUsage          Class = "usage"           // the CLI did not understand its arguments
	ClassTooOld         Class = "too_old"         //
	ClassMissing        Class = "missing"         // there is no such program, or it cannot be started
	ClassInterrupted    Class = "interrupted"     // the turn was stopped
	ClassKilled         Class = "killed"          // the process was, by us or by others
	ClassTimedOut       Class = "timed_out"       //
	ClassNoResult       Class = "no_result"       // it ended without saying how
	ClassFailed         Class = "failed"          // an error that is none of these
)

// OK tells whether the agent did what it was asked.
func (c Class) OK() bool { return c == ClassOK || c == ClassDenied }

// Infrastructure tells whether the failure is of what the agent runs on, so that the same
// call can succeed another time. An agent's own failure is final.
func (c Class) Infrastructure() bool {
	switch c {
	case ClassAPIError, ClassRateLimited, ClassOverloaded, ClassKilled, ClassTimedOut, ClassNoResult:
		return true
	}
	return false
}

// Exit is how the process of a call ended.
type Exit struct {
	Code     int    // -1 where a signal ended it, or it was not started
	Signal   string // that ended it, such as "killed"; "" for none
	ByUs     bool   // we ended it
	TimedOut bool   // because its time was over
	StartErr error  // it could not be started
	Alive    bool   // it has not ended: what ended is a turn
}

// Outcome is what is made of a finished call.
type Outcome struct {
	Class     Class  `json:"class"`
	OK        bool   `json:"ok"`
	Retry     bool   `json:"retry"`    // the same call can succeed another time
	Sentence  string `json:"sentence"` // for people
	SessionID string `json:"session_id,omitempty"`
	Model     string `json:"model,omitempty"`
	Text      string `json:"text,omitempty"` // the last thing the agent said
	// Result is the last one, nil where there was none. Its usage is as the CLI counts; Usage
	// is that of this call, differences made.
	Result   *Result   `json:"result,omitempty"`
	Results  int       `json:"results"` // more than one where agents went on in the background
	Usage    ace.Usage `json:"usage"`
	Denials  int       `json:"denials,omitempty"`
	Retries  int       `json:"retries,omitempty"` // of the CLI itself
	Garbage  int64     `json:"garbage,omitempty"` // lines that were no events
	ExitCode int       `json:"exit_code"`
}

// Judge takes the events of a call, or of one turn of a session, and judges its end. The
// zero Judge is ready.
type Judge struct {
	Meter Meter // from calls before, of the same session

	session, model, text string
	result               *Result
	results, retries     int
	usage                ace.Usage
	garbage              int64
	torn                 bool
	fault                fault  // the last error event
	denied               int    // tool calls
	plain                string // the begin of what was no JSON
}

// fault is an error that was told of.
type fault struct {
	name, text string
	status     int
}

// Turn begins a new turn of the same session: only the meter and the session stay.
func (j *Judge) Turn() {
	*j = Judge{Meter: j.Meter, session: j.session, model: j.model}
}

// Add takes an event.
func (j *Judge) Add(e Event) {
	if e.SessionID != "" {
		j.session = e.SessionID
	}
	if e.Model != "" && e.Model != "<synthetic>" && e.ParentID == "" {
		j.model = e.Model
	}
	switch e.Kind {
	case KindText:
		if e.ParentID == "" {
			j.text = e.Text
		}
	case KindError:
		j.fault = fault{e.Name, e.Text, e.Status}
	case KindStatus:
		if e.Name == "system/api_retry" {
			j.retries++
		}
	case KindToolResult:
		if e.Tool != nil && e.Tool.Denied {
			j.denied++
		}
	case KindGarbage:
		j.garbage++
		j.torn = e.Name == GarbageTorn
		if len(j.plain) < MaxText {
			j.plain += e.Text + "\n"
		}
	case KindResult:
		j.results++
		j.result = e.Result
		j.usage = j.usage.Add(j.Meter.Take(*e.Result))
		j.denied = max(j.denied, e.Result.Denials)
	}
}

// Ended tells whether a result has come.
func (j *Judge) Ended() bool { return j.results > 0 }

// Outcome judges the call by its events, how its process ended and what it printed to
// standard error. Of a turn whose process goes on, the exit is Exit{Alive: true}.
//
// What the CLI's result says of itself (is_error) decides, not its subtype nor the exit
// code. Only where there is no result, exit code and standard error do.
func (j *Judge) Outcome(exit Exit, stderr string) Outcome {
	o := Outcome{
		SessionID: j.session, Model: j.model, Text: j.text, Result: j.result, Results: j.results, Usage: j.usage,
		Denials: j.denied, Retries: j.retries, Garbage: j.garbage, ExitCode: exit.Code,
	}
	if j.result != nil && j.result.Text != "" {
		o.Text = j.result.Text
	}
	var why string
	switch {
	case exit.StartErr != nil:
		o.Class, why = ClassMissing, exit.StartErr.Error()
	case j.result != nil && j.result.Subtype == openCodeEnded && !j.result.IsError && exit.Code > 0 && !exit.ByUs:
		o.Class, why = j.silent(exit, stderr) // the result is our own making, the exit code is not
	case j.result != nil && !j.result.IsError:
		o.Class = j.well()
	case j.result != nil:
		o.Class, why = j.failed()
	default:
		o.Class, why = j.silent(exit, stderr)
	}
	o.OK = o.Class.OK()
	o.Retry = j.retry(o.Class, exit, why)
	o.Sentence = j.sentence(o, exit, why)
	return o
}

// well is the class of a result that is no error. OpenCode has no error for an answer that
// was cut off.
func (j *Judge) well() Class {
	switch {
	case j.result.Subtype == openCodeEnded && j.result.StopReason == "content-filter":
		return ClassRefusal
	case j.result.Subtype == openCodeEnded && j.result.StopReason == "length":
		return ClassMaxTokens
	case j.denied > 0:
		return ClassDenied
	}
	return ClassOK
}

// failed is the class of a result that is an error.
func (j *Judge) failed() (Class, string) {
	r := j.result
	why := strings.Join(r.Errors, "; ")
	if why == "" {
		why = r.Text
	}
	if why == "" {
		why = j.fault.text
	}
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
	status := r.Status
	if status == 0 {
		status = j.fault.status
	}
	if class := byStatus(status); class != "" && status != 400 && status != 404 {
		return class, why
	}
	if class := byText(why + "\n" + j.fault.text); class != "" {
		return class, why
	}
	if class := byStatus(status); class != "" {
		return class, why
	}
	if status := statusIn(why); status != 0 {
		return byStatus(status), why
	}
	return ClassFailed, why
}

// silent is the class of a call without a result.
func (j *Judge) silent(exit Exit, stderr string) (Class, string) {
	said := stderr + "\n" + j.plain
	why := lastLine(said)
	switch {
	case exit.TimedOut:
		return ClassTimedOut, ""
	case exit.ByUs:
		return ClassKilled, "we ended it"
	}
	class := byText(said)
	switch {
	case class != "":
		return class, line(said, class)
	case j.fault.text != "":
		if class = byStatus(j.fault.status); class == "" {
			class = ClassFailed
		}
		return class, j.fault.text
	case exit.Signal != "":
		return ClassKilled, "signal: " + exit.Signal
	case exit.Code == 130:
		return ClassInterrupted, why
	case exit.Code == 137 || exit.Code == 143 || exit.Code == 129:
		return ClassKilled, fmt.Sprintf("signal %d", exit.Code-128)
	case exit.Code == 2 && why != "":
		return ClassUsage, why
	case exit.Code != 0 && why != "":
		return ClassFailed, why
	}
	return ClassNoResult, why
}

// byStatus is the class of an HTTP status; "" of none.
func byStatus(status int) Class {
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

// said are the words by which CLIs tell what is wrong, the particular before the general.
var said = []struct {
	class Class
	words *regexp.Regexp
}{
	{ClassUnknownSession, regexp.MustCompile(`(?i)no conversation found|session not found|no (?:saved )?session found|thread not found|no rollout found|invalid session identifier|error resuming session`)},
	{ClassSessionInUse, regexp.MustCompile(`(?i)session id \S+ is already in use|session \S+ is already in use|already in use`)},
	{ClassNotLoggedIn, regexp.MustCompile(`(?i)not logged in|please run /login|invalid api key|invalid x-api-key|authentication_error|failed to authenticate|oauth token has expired|please set an auth method|no api key|missing api key|api key (?:is )?(?:not set|missing)|unauthorized|run .{0,20}(?:auth )?login`)},
	{ClassTooOld, regexp.MustCompile(`(?i)needs an update|(?:version|node).{0,40}(?:too old|no longer supported|is not supported)|please (?:update|upgrade) (?:to|your|claude|codex|gemini)|requires node|newer version.{0,30}required`)},
	{ClassOverloaded, regexp.MustCompile(`(?i)overloaded|service unavailable|at capacity`)},
	{ClassRateLimited, regexp.MustCompile(`(?i)rate.?limit|too many requests|resource_exhausted|quota|usage limit`)},
	{ClassMaxTurns, regexp.MustCompile(`(?i)max(?:imum)? session turns|maximum number of turns`)},
	{ClassInterrupted, regexp.MustCompile(`(?i)request was aborted|request interrupted|interrupted by user|operation was cancelled|turn (?:was )?interrupted`)},
	{ClassMaxTokens, regexp.MustCompile(`(?i)prompt is too long|maximum context|context.{0,10}window|output token maximum|context_length_exceeded`)},
	{ClassUsage, regexp.MustCompile(`(?im)^error: .{0,20}(?:unknown|unexpected|invalid|missing|required|option)|unknown option|unknown argument|unexpected argument|invalid (?:value|choice)|invalid values:|^usage: |requires --|cannot use both`)},
	{ClassAPIError, regexp.MustCompile(`(?i)api error|stream disconnected|connection (?:refused|reset|error)|econnre|etimedout|fetch failed|internal server error|bad gateway|invalid_request_error|server_error`)},
}

// byText is the class that the words tell; "" of none.
func byText(text string) Class {
	text = text[:min(len(text), 4*MaxText)]
	for _, s := range said {
		if s.words.MatchString(text) {
			return s.class
		}
	}
	return ""
}

// line is the first line that tells the class.
func line(text string, class Class) string {
	for l := range strings.Lines(text) {
		if byText(l) == class {
			return strings.TrimSpace(l)
		}
	}
	return lastLine(text)
}

// lastLine is the last line with something in it.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

var statusShape = regexp.MustCompile(`(?i)(?:"code"|"status"|"statusCode"|api error|status(?: code)?|http)["':\s]{1,4}([45]\d\d)\b`)

// statusIn is the HTTP status that a text tells of, 0 for none.
func statusIn(text string) int {
	m := statusShape.FindStringSubmatch(text[:min(len(text), MaxText)])
	if m == nil {
		return 0
	}
	return int(m[1][0]-'0')*100 + int(m[1][1]-'0')*10 + int(m[1][2]-'0')
}

// retry tells whether the same call can succeed another time. An API that says that the
// request is wrong will say so again.
func (j *Judge) retry(class Class, exit Exit, why string) bool {
	if class != ClassAPIError {
		return class.Infrastructure()
	}
	status := j.fault.status
	if j.result != nil && j.result.Status != 0 {
		status = j.result.Status
	}
	if status == 0 {
		status = statusIn(why)
	}
	if status == 0 && strings.Contains(why, "invalid_request_error") {
		return false
	}
	return status == 0 || status >= 500 || status == 408 || status == 409
}

// words say what each class means.
var words = map[Class]string{
	ClassOK: "The agent finished", ClassAPIError: "The model's API failed", ClassRateLimited: "The model's API asks to wait",
	ClassOverloaded: "The model's API is overloaded", ClassRefusal: "The model refused", ClassMaxTurns: "The bound of turns was reached",
	ClassBudget: "The budget was used up", ClassMaxTokens: "The answer or the context was too long", ClassUnknownSession: "The session to resume is not there",
	ClassSessionInUse: "A session with this id exists already", ClassNotLoggedIn: "The CLI is not logged in",
	ClassUsage: "The CLI did not take its arguments", ClassTooOld: "The CLI is too old", ClassMissing: "The CLI could not be started",
	ClassInterrupted: "The turn was interrupted", ClassKilled: "The CLI was killed", ClassTimedOut: "The CLI took too long and was ended",
	ClassNoResult: "The CLI ended without a result", ClassFailed: "The agent failed",
}

// maxSentence bounds what an outcome's sentence takes from the CLI, in bytes.
const maxSentence = 400

// sentence says it in one line.
func (j *Judge) sentence(o Outcome, exit Exit, why string) string {
	s := words[o.Class]
	if o.Class == ClassDenied {
		s = fmt.Sprintf("The agent finished, but %s denied", plural(o.Denials, "tool call was", "tool calls were"))
	}
	if why = strings.ToValidUTF8(strings.Join(strings.Fields(why), " "), "\ufffd"); why != "" {
		s += ": " + cut(why, maxSentence)
	}
	var notes []string
	note := func(when bool, format string, args ...any) {
		if when {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	note(o.Results > 1, "%d results, the last counts", o.Results)
	note(o.Retries > 0 && !o.OK, "the CLI itself had tried %s more", plural(o.Retries, "time", "times"))
	note(!exit.Alive && exit.Code == 0 && j.result != nil && j.result.IsError, "though it exited with 0")
	note(o.OK && exit.Code > 0, "though it exited with %d", exit.Code)
	note(o.Class == ClassNoResult, "it exited with %d", exit.Code)
	note(j.torn, "its output breaks off")
	if len(notes) > 0 {
		s += " (" + strings.Join(notes, "; ") + ")"
	}
	return s
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// cut is the begin of a text, of at most n bytes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// Error is the outcome as an error; nil where it went well.
func (o Outcome) Error() error {
	if o.OK {
		return nil
	}
	return errors.New(o.Sentence)
}
