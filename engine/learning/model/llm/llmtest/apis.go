package llmtest

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
)

type object = map[string]any

func sendAnthropic(s *stream, q Request, a Reply) {
	in, out := tokens(q, a)
	s.event("message_start", object{"type": "message_start", "message": object{"id": "msg_" + rand.Text(),
		"type": "message", "role": "assistant",
		"model": q.Model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": object{"input_tokens": in, "output_tokens": 1, "cache_creation_input_tokens": 0,
			"cache_read_input_tokens": a.Cached}}})
	s.event("ping", object{"type": "ping"})
	index := 0
	if a.Text != "" || len(a.Calls) == 0 && (a.Break || a.Hang || a.ErrorInside != "") {
		s.event("content_block_start", object{"type": "content_block_start", "index": 0,
			"content_block": object{"type": "text", "text": ""}})
		if !s.text(a, func(t string) {
			s.event("content_block_delta", object{"type": "content_block_delta", "index": 0,
				"delta": object{"type": "text_delta", "text": t}})
		}, func(kind string) {
			s.event("error", object{"type": "error", "error": object{"type": kind, "message": "it broke"}})
		}) {
			return
		}
		s.event("content_block_stop", object{"type": "content_block_stop", "index": 0})
		index++
	}
	for _, c := range a.Calls {
		s.event("content_block_start", object{"type": "content_block_start", "index": index,
			"content_block": object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}}})
		for _, half := range halves(c.Args) {
			s.event("content_block_delta", object{"type": "content_block_delta", "index": index,
				"delta": object{"type": "input_json_delta", "partial_json": half}})
		}
		s.event("content_block_stop", object{"type": "content_block_stop", "index": index})
		index++
	}
	stop := "end_turn"
	switch {
	case a.Stop == "length":
		stop = "max_tokens"
	case a.Stop == "refusal":
		stop = "refusal"
	case len(a.Calls) > 0:
		stop = "tool_use"
	}
	s.event("message_delta", object{"type": "message_delta",
		"delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": out}})
	s.event("message_stop", object{"type": "message_stop"})
}

func sendOpenAI(s *stream, q Request, a Reply) {
	chunk := func(delta object, finish any) {
		s.event("", object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
			"model":   q.Model,
			"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	chunk(object{"role": "assistant", "content": ""}, nil)
	kind := "content"
	if a.Stop == "refusal" {
		kind = "refusal"
	}
	if !s.text(a, func(t string) { chunk(object{kind: t}, nil) }, func(kind string) {
		s.event("", object{"error": object{"type": kind, "code": kind, "message": "it broke"}})
	}) {
		return
	}
	for i, c := range a.Calls {
		for j, half := range halves(c.Args) {
			call := object{"index": i, "function": object{"arguments": half}}
			if j == 0 {
				call["id"], call["type"] = c.ID, "function"
				call["function"] = object{"name": c.Name, "arguments": half}
			}
			chunk(object{"tool_calls": []any{call}}, nil)
		}
	}
	finish := "stop"
	switch {
	case a.Stop == "length":
		finish = "length"
	case len(a.Calls) > 0:
		finish = "tool_calls"
	}
	chunk(object{}, finish)
	in, out := tokens(q, a)
	// Some servers omit the ID here.
	s.event("", object{"id": "", "object": "chat.completion.chunk", "created": 1, "model": q.Model,
		"choices": []any{},
		"usage": object{"prompt_tokens": in + a.Cached, "completion_tokens": out, "total_tokens": in + out +
			a.Cached,
			"prompt_tokens_details": object{"cached_tokens": a.Cached}}})
	_, _ = s.w.Write([]byte("data: [DONE]\n\n"))
}

func halves(s string) []string {
	at := len(s) / 2
	for at > 0 && at < len(s) && s[at]&0xc0 == 0x80 {
		at--
	}
	return []string{s[:at], s[at:]}
}

func readAnthropic(body gjson.Result) Request {
	q := Request{API: "anthropic", Model: body.Get("model").String(), Tools: list(body.Get("tools.#.name"))}
	for _, b := range body.Get("system").Array() {
		q.System += b.Get("text").String() + "\n"
		q.Cached = q.Cached || b.Get("cache_control").Exists()
	}
	for _, m := range body.Get("messages").Array() {
		out := Message{Role: m.Get("role").String()}
		for _, b := range m.Get("content").Array() {
			switch b.Get("type").String() {
			case "text":
				out.Text += b.Get("text").String()
			case "tool_use":
				out.Calls = append(out.Calls, Call{b.Get("id").String(), b.Get("name").String(),
					b.Get("input").Raw})
			case "tool_result":
				content := b.Get("content")
				if content.IsArray() {
					content = content.Get("#.text")
				}
				out.Results = append(out.Results, list(content)...)
			}
		}
		q.Messages = append(q.Messages, out)
	}
	return q
}

func readOpenAI(body gjson.Result) Request {
	q := Request{API: "openai", Model: body.Get("model").String(),
		Tools: list(body.Get("tools.#.function.name"))}
	for _, m := range body.Get("messages").Array() {
		role, content := m.Get("role").String(), m.Get("content").String()
		switch role {
		case "system", "developer":
			q.System += content + "\n"
		case "tool":
			last := len(q.Messages) - 1
			if last < 0 || q.Messages[last].Role != "user" || q.Messages[last].Text != "" {
				q.Messages = append(q.Messages, Message{Role: "user"})
				last++
			}
			q.Messages[last].Results = append(q.Messages[last].Results, content)
		default:
			out := Message{Role: role, Text: content}
			for _, c := range m.Get("tool_calls").Array() {
				f := c.Get("function")
				call := Call{c.Get("id").String(), f.Get("name").String(), f.Get("arguments").String()}
				out.Calls = append(out.Calls, call)
			}
			q.Messages = append(q.Messages, out)
		}
	}
	return q
}

func readEmbeddings(body gjson.Result) Request {
	q := Request{API: "embeddings", Model: body.Get("model").String()}
	for _, text := range list(body.Get("input")) {
		q.Messages = append(q.Messages, Message{Text: text})
	}
	return q
}

// sendEmbeddings sends the vectors in reverse order, with their indices.
func sendEmbeddings(w http.ResponseWriter, q Request, a Reply) {
	var data []map[string]any
	for i := len(a.Vectors) - 1; i >= 0; i-- {
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": a.Vectors[i]})
	}
	in, _ := tokens(q, a)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "model": q.Model, "data": data,
		"usage": map[string]any{"prompt_tokens": in, "total_tokens": in}})
}

func list(values gjson.Result) (texts []string) {
	for _, v := range values.Array() {
		texts = append(texts, v.String())
	}
	return texts
}

// Between returns the text between the tags of a name in a prompt, or "".
func Between(prompt, name string) string {
	_, rest, ok := strings.Cut(prompt, "<"+name+"-")
	if !ok {
		return ""
	}
	_, rest, _ = strings.Cut(rest, ">\n")
	text, _, _ := strings.Cut(rest, "\n</"+name+"-")
	return text
}
