// Package transcripttest makes up transcripts for tests and benchmarks: sessions with
// prompts, thinking, parallel tool calls, streamed parts, subagents and forks, as large as
// wanted, the same each time. It imports nothing of the project.
package transcripttest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options say what [Write] makes.
type Options struct {
	Sessions int
	Bytes    int64     // in all, about
	Newest   time.Time // when the newest session was written last; others before it
	Subagent int       // each so many sessions has a subagent, 0 for none
}

// Made is what was made.
type Made struct {
	Files, Sessions, Subagents int
	Bytes                      int64
	Tokens                     int64 // of all messages, each counted once
	Calls                      int
}

// ID is the id of the n-th session, from 0, the newest.
func ID(n int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", n+1, n+1) }

// Write makes sessions below dir/projects.
func Write(dir string, o Options) (Made, error) {
	var m Made
	if o.Newest.IsZero() {
		o.Newest = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	}
	each := o.Bytes / int64(max(o.Sessions, 1))
	for n := range o.Sessions {
		project := fmt.Sprintf("/home/user/project-%d", n%7)
		folder := filepath.Join(dir, "projects", strings.ReplaceAll(project, "/", "-"))
		last := o.Newest.Add(-time.Duration(n) * 37 * time.Minute)
		w := &writer{rand: rand.New(rand.NewPCG(7, uint64(n))), session: ID(n), cwd: project, last: last}
		path := filepath.Join(folder, w.session+".jsonl")
		size := each
		sub := o.Subagent > 0 && n%o.Subagent == 0
		if sub {
			size = each * 3 / 4
		}
		if err := w.file(path, size, last); err != nil {
			return m, err
		}
		m.Sessions++
		m.add(w)
		if !sub {
			continue
		}
		a := &writer{rand: w.rand, session: w.session, cwd: project, last: last, agent: fmt.Sprintf("a%07x", n)}
		if err := a.file(filepath.Join(folder, w.session, "subagents", "agent-"+a.agent+".jsonl"), each-size, last); err != nil {
			return m, err
		}
		m.Subagents++
		m.add(a)
	}
	return m, nil
}

func (m *Made) add(w *writer) {
	m.Files++
	m.Bytes += w.bytes
	m.Tokens += w.tokens
	m.Calls += w.calls
}

type writer struct {
	rand                *rand.Rand
	session, cwd, agent string
	last                time.Time

	out    *bufio.Writer
	bytes  int64
	tokens int64
	calls  int
	seq    int
	parent string
	at     time.Time
}

func (w *writer) file(path string, size int64, mtime time.Time) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w.out = bufio.NewWriterSize(f, 1<<20)
	w.at = w.last.Add(-time.Hour)
	for w.bytes < size || w.seq == 0 {
		w.turn()
	}
	if err := w.out.Flush(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Chtimes(path, mtime, mtime)
}

type object map[string]any

func (w *writer) line(kind string, more object) {
	w.seq++
	w.at = w.at.Add(time.Duration(200+w.rand.IntN(800)) * time.Millisecond)
	id := fmt.Sprintf("%s-%s%06d", w.session, w.agent, w.seq)
	o := object{"type": kind, "uuid": id, "parentUuid": w.parent, "sessionId": w.session, "timestamp": w.at.Format("2006-01-02T15:04:05.000Z"),
		"cwd": w.cwd, "version": "2.1.90", "gitBranch": "main", "isSidechain": w.agent != "", "userType": "external"}
	if w.agent != "" {
		o["agentId"] = w.agent
	}
	for k, v := range more {
		o[k] = v
	}
	data, err := json.Marshal(o)
	if err != nil {
		panic(err) // made of texts and numbers
	}
	w.parent = id
	w.bytes += int64(len(data)) + 1
	w.out.Write(data)     // the flush tells what went wrong
	w.out.WriteByte('\n') // the same
}

// turn is a prompt, some rounds of thinking and tools, and an answer.
func (w *writer) turn() {
	w.line("user", object{"message": object{"role": "user", "content": "Please " + w.prose(12) + " in project " + w.cwd}})
	for range 1 + w.rand.IntN(6) {
		w.round()
	}
	w.message("end_turn", object{"type": "text", "text": "Done.\n\n" + w.prose(80)})
	if w.rand.IntN(4) == 0 {
		w.line("file-history-snapshot", object{"snapshot": object{"messageId": "x", "trackedFileBackups": object{}}})
	}
}

var tools = []string{"Bash", "Read", "Edit", "Grep", "WebFetch", "TodoWrite"}

func (w *writer) round() {
	content := []object{{"type": "thinking", "thinking": w.prose(60), "signature": strings.Repeat("Zm9v", 80)}, {"type": "text", "text": w.prose(25)}}
	var ids, names []string
	for range 1 + w.rand.IntN(3) {
		w.calls++
		id, name := fmt.Sprintf("toolu_%s%s%05d", w.session[:8], w.agent, w.calls), tools[w.rand.IntN(len(tools))]
		ids, names = append(ids, id), append(names, name)
		content = append(content, object{"type": "tool_use", "id": id, "name": name,
			"input": object{"command": "go test ./... | grep \"FAIL\"", "file_path": w.cwd + "/main.go", "description": w.prose(6)}})
	}
	w.message("tool_use", content...)
	for i, id := range ids {
		out := w.code(10 + w.rand.IntN(150))
		failed := w.rand.IntN(12) == 0
		result := any(object{"stdout": out, "stderr": "", "interrupted": false, "durationMs": 20 + w.rand.IntN(900)})
		if failed {
			out = "Exit code 1\n" + out
			result = "Error: " + out
		}
		w.line("user", object{"toolUseResult": result, "message": object{"role": "user",
			"content": []object{{"type": "tool_result", "tool_use_id": id, "content": out, "is_error": failed}}}, "tool": names[i]})
	}
}

// message writes a message in parts, as streaming does: they share its id and repeat what
// it used.
func (w *writer) message(stop string, content ...object) {
	usage := object{"input_tokens": 4 + w.rand.IntN(40), "output_tokens": 50 + w.rand.IntN(900), "cache_read_input_tokens": 10_000 + w.rand.IntN(60_000),
		"cache_creation_input_tokens": 800, "cache_creation": object{"ephemeral_5m_input_tokens": 800, "ephemeral_1h_input_tokens": 0}, "service_tier": "standard"}
	w.tokens += int64(usage["input_tokens"].(int) + usage["output_tokens"].(int) + usage["cache_read_input_tokens"].(int) + 800)
	id := fmt.Sprintf("msg_%s%s%06d", w.session[:8], w.agent, w.seq)
	for _, c := range content {
		w.line("assistant", object{"requestId": "req_" + id, "message": object{"id": id, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929",
			"content": []object{c}, "stop_reason": stop, "stop_sequence": nil, "usage": usage}})
	}
}

var words = strings.Fields(`the a of and run test file value error return "quoted" list every change that which reads writes
	session tool result counts over under größer 変更 with without first last`)

func (w *writer) prose(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[w.rand.IntN(len(words))])
	}
	return b.String()
}

func (w *writer) code(lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "%5d\t\tif err := store.Put(%q, value[%d]); err != nil {\n", i+1, words[w.rand.IntN(len(words))], i)
	}
	return b.String()
}
