// Package transcripttest generates transcripts for tests and benchmarks: sessions of any size
// with prompts, thinking, parallel tool calls, streamed parts and subagents. The same options
// give the same files. It imports nothing of the project.
package transcripttest

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
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
	Files  int
	Bytes  int64
	Tokens int64 // each message counted once
	Calls  int
}

// ID returns the ID of the n-th session; 0 is the newest.
func ID(n int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", n+1, n+1) }

// Write writes sessions below dir/projects.
func Write(dir string, o Options) (made Made, err error) {
	if o.Newest.IsZero() {
		o.Newest = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	}
	each := o.Bytes / int64(max(o.Sessions, 1))
	for n := range o.Sessions {
		project := fmt.Sprintf("/home/user/project-%d", n%7)
		path := filepath.Join(dir, "projects", strings.ReplaceAll(project, "/", "-"), ID(n))
		last := o.Newest.Add(-time.Duration(n) * 37 * time.Minute)
		w := &writer{made: &made, session: ID(n), cwd: project}
		size := each
		if o.Subagent > 0 && n%o.Subagent == 0 {
			size = each * 3 / 4
		}
		if err := w.file(path+".jsonl", size, last); err != nil {
			return made, err
		}
		if size == each {
			continue
		}
		w.agent = fmt.Sprintf("a%07x", n)
		path = filepath.Join(path, "subagents", "agent-"+w.agent+".jsonl")
		if err := w.file(path, each-size, last); err != nil {
			return made, err
		}
	}
	return made, nil
}

//go:embed turn.tmpl
var turnText string

var turn = template.Must(template.New("").Parse(turnText))

// writer is the data of the template. Its exported methods return JSON.
type writer struct {
	made                *Made
	session, cwd, agent string
	lines               int
	at                  time.Time
}

// file writes turns up to a size.
func (w *writer) file(path string, size int64, mtime time.Time) error {
	w.at = mtime.Add(-time.Hour)
	var out bytes.Buffer
	for int64(out.Len()) < max(size, 1) {
		if err := turn.Execute(&out, w); err != nil {
			return err
		}
	}
	w.made.Files++
	w.made.Bytes += int64(out.Len())
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, out.Bytes(), 0o600)
	}
	if err == nil {
		err = os.Chtimes(path, mtime, mtime)
	}
	return err
}

func (w *writer) id(n int) string { return fmt.Sprintf("%s-%s%06d", w.session, w.agent, n) }

// Line returns the members of every line.
func (w *writer) Line() string {
	w.lines++
	w.at = w.at.Add(500 * time.Millisecond)
	return fmt.Sprintf(`"uuid":%q,"parentUuid":%q,"sessionId":%q,"cwd":%q,"version":"2.1.90","timestamp":%q,`+
		`"gitBranch":"main","isSidechain":%t,"agentId":%q,"userType":"external"`, w.id(w.lines),
		w.id(w.lines-1),
		w.session, w.cwd, w.at.Format("2006-01-02T15:04:05.000Z"), w.agent != "", w.agent)
}

// Message returns the beginning of a message up to its content.
func (w *writer) Message(stop string) string {
	input, output, cached := 4+w.lines%40, 50+w.lines%900, 10_000+w.lines%60_000
	w.made.Tokens += int64(input + output + cached + 800)
	return fmt.Sprintf(`"requestId":"req_%[1]s","message":{"id":"msg_%[1]s","type":"message","role":"assistant",`+
		`"model":"claude-sonnet-4-5-20250929","stop_reason":%[2]q,"stop_sequence":null,"usage":{"input_tokens":%[3]d,`+
		`"output_tokens":%[4]d,"cache_read_input_tokens":%[5]d,"cache_creation_input_tokens":800,`+
		`"cache_creation":{"ephemeral_5m_input_tokens":800,"ephemeral_1h_input_tokens":0},`+
		`"service_tier":"standard"},"content":[`, w.id(w.lines), stop, input, output, cached)
}

type call struct {
	ID, Tool string
	Failed   bool
}

// Calls returns parallel calls, some of which fail.
func (w *writer) Calls() (list []call) {
	for _, tool := range []string{"Bash", "Read", "WebFetch"} {
		w.made.Calls++
		list = append(list, call{fmt.Sprintf("toolu_%d", w.made.Calls), tool, w.made.Calls%12 == 0})
	}
	return list
}

// Rounds returns the rounds of thinking and tools of a turn.
func (w *writer) Rounds() []int { return make([]int, 1+w.lines%6) }

// Prose returns n sentences.
func (w *writer) Prose(n int) string {
	const sentence = "The \"quoted\" file reads größer values and 変更 which the test writes. "
	return strconv.Quote(strings.Repeat(sentence, n))
}

// Code returns the lines of a program.
func (w *writer) Code() string {
	const line = "   17\t\tif err := store.Put(key, value[i]); err != nil {\n"
	return strconv.Quote(strings.Repeat(line, 10+w.lines%150))
}
