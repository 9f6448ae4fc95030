package triage

import (
	"cmp"
	"context"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// Reason is why the answer of a run is wrong. All of it is untrusted text.
type Reason struct {
	Subject  string `json:"subject,omitempty"` // what the task is about
	Answer   string `json:"answer,omitempty"`
	Expected string `json:"expected,omitempty"`
	Cause    string `json:"cause"`              // the same for all runs of a group
	Insights string `json:"insights,omitempty"` // of the reflector, "" if only the memo was read
}

// Example shows the answer beside the label, in one line of untrusted text.
func (r Reason) Example() string {
	say := cmp.Or(r.Answer, "no answer") + " → " + cmp.Or(r.Expected, "unknown")
	if r.Subject != "" {
		return ace.Cut(r.Subject, maxShownSubject) + ": " + say
	}
	return say
}

// maxShownSubject bounds the subject of an example, in bytes.
const maxShownSubject = 60

// Bounds of a reason, in bytes.
const (
	maxSubject  = 160
	maxCause    = 160
	maxInsights = 2 << 10
)

// memoReason returns the reason in the memo of a run. Runs of older and foreign workers have no reason there.
func memoReason(s *ace.Summary) (Reason, bool) {
	if s == nil || s.Cause == "" {
		return Reason{}, false
	}
	return Reason{Subject: s.Subject, Answer: s.Answer, Expected: s.Expected, Cause: s.Cause}, true
}

// reasonOf returns the reason that a history states, or else describes the tool calls in the run's summary.
func reasonOf(s *ace.State, sum *ace.Summary) Reason {
	r := Reason{Subject: ace.OneLine(cmp.Or(s.Input.Subject, s.Input.Prompt), maxSubject),
		Answer: ace.Cut(s.Answer, maxSubject), Insights: ace.Cut(s.Insights, maxInsights)}
	if s.Input.Label != nil {
		r.Expected = ace.Cut(*s.Input.Label, maxSubject)
	}
	cause := cmp.Or(s.Cause, earlierCause(s), causeIn(s.Insights, s.Answer, r.Expected),
		causeIn(s.GradeReason, s.Answer, r.Expected))
	r.Cause = ace.Cut(cmp.Or(cause, verdict(sum)), maxCause)
	return r
}

// earlierCause returns what the built-in learner states as the cause today, from the insights that it wrote
// before it stated causes, or "".
func earlierCause(s *ace.State) string {
	if s.Input.ProviderOf(ace.PhaseReflector) != ace.Builtin {
		return ""
	}
	for _, c := range earlierCauses {
		if strings.Contains(s.Insights, c.insight) && strings.Contains(s.Plan, c.plan) {
			return c.cause
		}
	}
	return ""
}

// earlierCauses are parts of the insights and plans of the built-in learner with their causes.
var earlierCauses = []struct{ insight, plan, cause string }{
	{" so there is no recipe to learn.", "", "no formula to learn: none is named, or the label is not a number"},
	{"] would have given it.", "", "another known recipe gives the label"},
	{"] has the right calculation but took the wrong operands.", "", "right calculation, wrong operands"},
	{" calculations tried with the question's ", "", "no calculation tried gives the label"},
	{" the most plausible that gives the label is ", " known recipes fit). ",
		"the known recipes calculate something else"},
	{" the most plausible that gives the label is ", "", "no recipe was known for the formula"},
}

// causeIn derives a cause from what a reflector wrote about one task, so that tasks that failed for the same
// reason have the same: the first sentence that says more than the answer and the label, without numbers,
// calculations, quoted texts and names. A quoted text may have sentences of its own, or be truncated.
func causeIn(insights, answer, label string) string {
	quoted := func(text string) string {
		if is := unquoted(text); is != "" && (strings.HasPrefix(answer, is) || strings.HasPrefix(label, is)) {
			return given
		}
		if end := len(text) - 2; end > 0 && strings.ContainsRune(".!?", rune(text[end])) {
			return "<text>."
		}
		return "<text>"
	}
	all := sentences(quotation.ReplaceAllStringFunc(insights[:min(len(insights), maxQuoting)], quoted))
	for i, s := range all {
		if i < len(all)-1 && restates(s, answer, label) {
			continue
		}
		return ace.Cut(withoutNames(Normalize(withoutCalculations(s))), maxCause)
	}
	return ""
}

// given stands for the answer or the label.
const given = "<given>"

// maxQuoting bounds the insights in which quotations are replaced, in bytes.
const maxQuoting = 4 << 10

// quotation is a text in double quotes.
var quotation = regexp.MustCompile(`"(?:\\.|[^"\\])*"`)

func unquoted(text string) string {
	plain, err := strconv.Unquote(text)
	if err != nil {
		plain = strings.Trim(text, `"`)
	}
	return strings.TrimRight(plain, "….")
}

// calculation matches operands with operators between them, such as a * ((1 + r)^t - 1) / r, and texts with
// dashes.
var calculation = regexp.MustCompile(`[^\s,;:]+(?:\s+[-+*/=]\s+[^\s,;:]+)+`)

// withoutCalculations replaces calculations, which differ from task to task.
func withoutCalculations(sentence string) string {
	return calculation.ReplaceAllStringFunc(sentence, func(found string) string {
		if strings.ContainsAny(found, "*/+=^") {
			return "<formula>"
		}
		return found
	})
}

// sentenceEnd is the end of a sentence: a mark, and space before the next sentence.
var sentenceEnd = regexp.MustCompile(`[.!?]["')\]]?\s+|\n+`)

// sentences returns the first sentences of a text.
func sentences(t string) (all []string) {
	for _, s := range sentenceEnd.Split(t[:min(len(t), maxMessage)], -1) {
		if s = strings.Trim(s, " \t.!?"); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// restates reports whether a sentence only says that the answer differs from the label.
func restates(sentence, answer, label string) bool {
	return strings.Contains(sentence, given) || contains(sentence, answer) || contains(sentence, label)
}

// contains reports whether a sentence contains a text that is no part of a longer word or number.
func contains(sentence, text string) bool {
	for text != "" {
		before, after, found := strings.Cut(sentence, text)
		if !found {
			return false
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		first, _ := utf8.DecodeRuneInString(after)
		if !alphanumeric(last) && !alphanumeric(first) {
			return true
		}
		sentence = after
	}
	return false
}

func alphanumeric(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// withoutNames replaces words that begin with a capital letter, except the first word and single letters.
func withoutNames(line string) string {
	words := strings.Fields(line)
	var out []string
	for i, w := range words {
		first, size := utf8.DecodeRuneInString(w)
		switch {
		case i == 0 || !unicode.IsUpper(first) || len(strings.Trim(w[size:], ".,;:!?")) == 0:
			out = append(out, w)
		case out[len(out)-1] != "<name>":
			out = append(out, "<name>")
		}
	}
	return strings.Join(out, " ")
}

// readReasons reads why answers are wrong: from the memo, and from the history for runs whose memo does not
// say it and for the newest run of each cause.
func (s *scanner) readReasons(ctx context.Context) error {
	var want []runs.Run
	causes := map[string]bool{}
	for _, r := range s.facts.Closed {
		if !wrong(r) {
			continue
		}
		memo, ok := memoReason(r.Summary)
		newest := ok && !causes[memo.Cause] && len(causes) < maxExamples
		if newest {
			causes[memo.Cause] = true
		}
		if _, read := s.facts.Reasons[r.RunID]; !read && (newest || !ok) {
			want = append(want, r)
		}
	}
	return gather(ctx, s, "reasons of wrong answers", want, s.facts.Reasons,
		func(ctx context.Context, r runs.Run) (Reason, error) {
			f := histories.NewFolder(r.WorkflowID, r.RunID)
			err := s.events(ctx, r, func(e *historypb.HistoryEvent) { f.Apply(e) })
			reason := reasonOf(&f.State, r.Summary)
			if memo, ok := memoReason(r.Summary); ok {
				reason.Subject, reason.Cause = memo.Subject, memo.Cause
			}
			return reason, err
		})
}

// reason returns why an answer is wrong; false if its history is not read yet.
func (f *Facts) reason(r runs.Run) (Reason, bool) {
	if known, ok := f.Reasons[r.RunID]; ok {
		return known, true
	}
	return memoReason(r.Summary)
}

// verdict describes a wrong answer from the summary.
func verdict(s *ace.Summary) string {
	switch {
	case s == nil:
		return "wrong answer; the run has no summary"
	case s.Skills == 0:
		return "wrong answer without any tool call"
	case s.SkillsOK == 0:
		return "wrong answer; no tool call succeeded"
	case s.SkillsOK < s.Skills:
		return "wrong answer; some tool calls failed"
	}
	return "wrong answer; every tool call succeeded"
}
