package calls

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"acescope/engine/ace"
)

// Text formats requests and their responses for a user. The text is untrusted: sanitize it for a terminal.
func Text(list []ace.ModelCall) string {
	var b strings.Builder
	for i, c := range list {
		if i > 0 {
			b.WriteString("\n\n")
		}
		fmt.Fprintf(&b, "request %d of %d: %s\n", i+1, len(list), Title(c))
		b.WriteString(Request(c.Request))
		if c.Error != "" {
			part(&b, "error", c.Error)
		} else if c.Response != nil {
			b.WriteString(Response(*c.Response))
		}
	}
	return b.String()
}

// Title returns the model, the phase prompt, the time, the tokens and the cost of a request in one line.
func Title(c ace.ModelCall) string {
	words := []string{c.Provider + " " + c.Request.Model}
	if c.PhasePrompt != nil {
		words = append(words, "prompt "+c.PhasePrompt.String())
	}
	if !c.StartedAt.IsZero() {
		words = append(words, c.StartedAt.Local().Format(time.DateTime))
	}
	words = append(words, (time.Duration(c.DurationMS) * time.Millisecond).String())
	if r := c.Response; r != nil {
		if r.Model != "" && r.Model != c.Request.Model {
			words[0] += " (answered by " + r.Model + ")"
		}
		words = append(words, ace.Count(r.Usage.InputTokens+r.Usage.CacheReadTokens, "token")+" in",
			ace.Number(r.Usage.OutputTokens)+" out", r.Usage.Cost(), "finish: "+r.FinishReason)
	}
	return strings.Join(words, ", ")
}

// Request formats the system instructions, tools and messages of a request, so that two requests can be
// compared.
func Request(r ace.ModelRequest) string {
	var b strings.Builder
	for _, s := range r.System {
		part(&b, "system", s.Text)
	}
	for _, t := range r.Tools {
		part(&b, "tool "+t.Name, t.Description+"\n"+string(t.Parameters))
	}
	for _, m := range r.Messages {
		if m.Content.Text != "" {
			part(&b, m.Role, m.Content.Text)
		}
		toolCalls(&b, m.Calls)
		for _, t := range m.Results {
			name := "result of " + t.ID
			if t.Failed {
				name += ", failed"
			}
			part(&b, name, t.Content.Text)
		}
	}
	return b.String()
}

// Response formats the answer of a model. JSON is indented.
func Response(r ace.ModelResponse) string {
	var b strings.Builder
	if text := r.Text.Text; text != "" || len(r.Calls) == 0 {
		var out bytes.Buffer
		if json.Indent(&out, []byte(text), "", "  ") == nil {
			text = out.String()
		}
		part(&b, "answer", text)
	}
	toolCalls(&b, r.Calls)
	return b.String()
}

func toolCalls(b *strings.Builder, list []ace.ModelToolCall) {
	for _, c := range list {
		part(b, "calls "+c.Name+" as "+c.ID, c.Arguments)
	}
}

// part writes a heading and a text.
func part(b *strings.Builder, heading, text string) {
	fmt.Fprintf(b, "\n--- %s\n%s\n", heading, strings.TrimSuffix(text, "\n"))
}
