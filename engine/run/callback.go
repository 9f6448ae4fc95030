package run

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"acescope/engine/session"
)

// MaxCallback is how many bytes of what a run gave its parent session is told.
const MaxCallback = 8 << 10

// CallbackID is the id of the message that tells a parent session how a run ended; by it the
// session takes the message once.
func CallbackID(runID string) string { return "run." + runID }

// Callback is the message that tells a parent session how a run ended.
func Callback(in Input, r Result) session.Message {
	tag := `<agent-callback session="` + attribute(in.SessionID) + `" run="` + attribute(in.RunID) + `" agent="` + attribute(in.Name()) +
		`" status="` + attribute(string(r.Status)) + `">`
	text := tag + "\n" + body(in, r) + "\n</agent-callback>"
	return session.Message{ID: CallbackID(in.RunID), Text: text, From: "run " + in.RunID, Callback: true}
}

func body(in Input, r Result) string {
	var parts []string
	if r.Reason != "" || r.Error != "" {
		parts = append(parts, strings.Trim(string(r.Reason)+": "+inside(r.Error, MaxText), ": "))
	}
	if r.ExitCode != nil {
		parts = append(parts, fmt.Sprintf("exit code %d", *r.ExitCode))
	}
	text, ref := said(r)
	if text != "" {
		parts = append(parts, inside(text, MaxCallback))
	}
	if ref || len(text) > MaxCallback {
		parts = append(parts, "(cut: get_agent_session_result with session_id "+in.SessionID+" has more of it)")
	}
	if r.Status == Failed && r.Stderr != "" {
		parts = append(parts, "stderr: "+inside(r.Stderr, MaxCallback/4))
	}
	return strings.Join(parts, "\n")
}

// said is what a run gave, as text: an agent's words, JSON as it is, else stdout. ref tells
// that there is more of it.
func said(r Result) (text string, ref bool) {
	if r.OutputIs == outputText {
		if s, ok := unquoted(r.Output); ok {
			return s, r.OutputRef != nil
		}
	}
	if out := string(r.Output); out != "" && out != "null" {
		return out, r.OutputRef != nil
	}
	return r.Stdout, r.OutputRef != nil || r.StdoutRef != nil
}

// attribute is a text within quotes of a tag.
func attribute(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\n", " ").Replace(clean(text))
}

// tags are what could begin or end a callback within a callback.
var tags = regexp.MustCompile(`(?i)<([\s/]*agent-callback)`)

// inside is a text between tags, cut to some bytes, which cannot end the callback.
func inside(text string, limit int) string {
	text = strings.TrimSpace(clean(text))
	if len(text) > limit {
		for limit > 0 && !utf8.RuneStart(text[limit]) {
			limit--
		}
		text = text[:limit] + "…"
	}
	return tags.ReplaceAllString(text, "&lt;$1")
}

// clean is a text without what is no text: control characters, and those that are not seen.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
}
