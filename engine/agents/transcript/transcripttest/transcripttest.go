// Package transcripttest generates transcripts for tests and benchmarks: sessions of any size
// with prompts, thinking, parallel tool calls, streamed parts and subagents. The same options
// give the same files. It imports nothing of the project.
package transcripttest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options configure [Write].
type Options struct {
	Sessions int
	Bytes    int64     // in total, approximately
	Newest   time.Time // last write of the newest session; others are older
	Subagent int       // every Nth session has a subagent, 0 for none
}

// Made sums up what [Write] wrote.
type Made struct {
	Files, Sessions, Subagents int
	Bytes                      int64
	Tokens                     int64 // each message counted once
	Calls                      int
}

// ID returns the ID of the n-th session; 0 is the newest.
func ID(n int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", n+1, n+1) }

// Write writes sessions below dir/projects.
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
		path = filepath.Join(folder, w.session, "subagents", "agent-"+a.agent+".jsonl")
		if err := a.file(path, each-size, last); err != nil {
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
	o := object{
		"type": kind, "uuid": id, "parentUuid": w.parent, "sessionId": w.session, "cwd": w.cwd, "version": "2.1.90",
		"timestamp": w.at.Format("2006-01-02T15:04:05.000Z"), "gitBranch": "main", "isSidechain": w.agent != "",
		"userType": "external",
	}
	if w.agent != "" {
		o["agentId"] = w.agent
	}
	maps.Copy(o, more)
	data, err := json.Marshal(o)
	if err != nil {
		panic(err) // only strings and numbers
	}
	w.parent = id
	w.bytes += int64(len(data)) + 1
	w.out.Write(data) // Flush returns the error
	w.out.WriteByte('\n')
}

// turn writes a prompt, some rounds of thinking and tools, and an answer.
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
	content := []object{
		{"type": "thinking", "thinking": w.prose(60), "signature": strings.Repeat("Zm9v", 80)},
		{"type": "text", "text": w.prose(25)},
	}
	var ids, names []string
	for range 1 + w.rand.IntN(3) {
		w.calls++
		id := fmt.Sprintf("toolu_%s%s%05d", w.session[:8], w.agent, w.calls)
		name := tools[w.rand.IntN(len(tools))]
		ids, names = append(ids, id), append(names, name)
		content = append(content, object{"type": "tool_use", "id": id, "name": name, "input": object{
			"command": "go test ./... | grep \"FAIL\"", "file_path": w.cwd + "/main.go", "description": w.prose(6),
		}})
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
		block := object{"type": "tool_result", "tool_use_id": id, "content": out, "is_error": failed}
		w.line("user", object{
			"toolUseResult": result, "message": object{"role": "user", "content": []object{block}}, "tool": names[i],
		})
	}
}

// message writes a streamed message: one line per block, which share its ID and repeat its
// usage.
func (w *writer) message(stop string, content ...object) {
	input, output, cached := 4+w.rand.IntN(40), 50+w.rand.IntN(900), 10_000+w.rand.IntN(60_000)
	usage := object{
		"input_tokens": input, "output_tokens": output, "cache_read_input_tokens": cached,
		"cache_creation_input_tokens": 800,
		"cache_creation":              object{"ephemeral_5m_input_tokens": 800, "ephemeral_1h_input_tokens": 0},
		"service_tier":                "standard",
	}
	w.tokens += int64(input + output + cached + 800)
	id := fmt.Sprintf("msg_%s%s%06d", w.session[:8], w.agent, w.seq)
	for _, c := range content {
		w.line("assistant", object{"requestId": "req_" + id, "message": object{
			"id": id, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929",
			"content": []object{c}, "stop_reason": stop, "stop_sequence": nil, "usage": usage,
		}})
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
