package agentclitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
)

// transcript is a session as the process knows it. It takes no lock, and knows nothing of
// what other processes add.
type transcript struct {
	path    string
	session string
	cwd     string
	version string
	last    string          // uuid of the last message in the chain
	uuids   map[string]bool // of all lines
	turns   int             // messages of the user, in the chain
	told    costState       // the last
}

// costState is the line by which a process tells, when it ends, what the session has cost so
// far. The next process counts on from there.
type costState struct {
	Type      string  `json:"type"`
	SessionID string  `json:"sessionId"`
	Cost      float64 `json:"totalCostUSD"`
	Messages  int     `json:"messages"`
}

const costType = "cost-state"

// record is a line of a transcript.
type record struct {
	Type       string          `json:"type"`
	UUID       string          `json:"uuid,omitempty"`
	ParentUUID *string         `json:"parentUuid"`
	SessionID  string          `json:"sessionId"`
	Timestamp  string          `json:"timestamp"`
	CWD        string          `json:"cwd"`
	Version    string          `json:"version"`
	GitBranch  string          `json:"gitBranch"`
	Sidechain  bool            `json:"isSidechain"`
	UserType   string          `json:"userType"`
	Message    json.RawMessage `json:"message,omitempty"`
	RequestID  string          `json:"requestId,omitempty"`
	ToolResult any             `json:"toolUseResult,omitempty"`
}

// transcriptPath is where the transcript of a session is.
func transcriptPath(config, cwd, session string) string {
	return filepath.Join(config, "projects", slug(cwd), session+".jsonl")
}

// slug is the name of a directory's transcripts.
func slug(cwd string) string {
	if real, err := filepath.EvalSymlinks(cwd); err == nil {
		cwd = real
	}
	name := []byte(cwd)
	for i, c := range name {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			name[i] = '-'
		}
	}
	if len(name) <= 200 {
		return string(name)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(cwd))
	return fmt.Sprintf("%s-%x", name[:200], h.Sum32())
}

// load reads what there is of a session; there tells whether there is anything.
func load(path, session, cwd, version string) (t *transcript, there bool) {
	t = &transcript{path: path, session: session, cwd: cwd, version: version, uuids: map[string]bool{}}
	data, err := os.ReadFile(path)
	if err != nil {
		return t, false
	}
	all := map[string]record{}
	for line := range bytes.Lines(data) {
		var r record
		if json.Unmarshal(line, &r) != nil {
			continue
		}
		if r.Type == costType {
			_ = json.Unmarshal(line, &t.told)
		}
		if r.UUID == "" {
			continue
		}
		all[r.UUID] = r
		t.uuids[r.UUID] = true
		t.last = r.UUID
	}
	// The chain goes back from the last line: what another process added beside it is lost.
	for at := t.last; at != ""; {
		r := all[at]
		t.count(r)
		if r.ParentUUID == nil {
			break
		}
		at = *r.ParentUUID
	}
	return t, true
}

func (t *transcript) count(r record) {
	var m struct {
		Content json.RawMessage `json:"content"`
	}
	_ = json.Unmarshal(r.Message, &m)
	if r.Type == "user" && !bytes.Contains(m.Content, []byte(`"tool_result"`)) {
		t.turns++
	}
}

// add appends a line.
func (t *transcript) add(kind, uuid string, message any, more func(*record)) {
	r := record{
		Type: kind, UUID: uuid, SessionID: t.session, Timestamp: now(), CWD: t.cwd, Version: t.version, UserType: "external",
	}
	if t.last != "" {
		last := t.last
		r.ParentUUID = &last
	}
	data, err := json.Marshal(message)
	if err != nil {
		panic(err) // a message of our own making
	}
	r.Message = data
	if more != nil {
		more(&r)
	}
	t.write(r)
	t.last = uuid
	t.uuids[uuid] = true
}

func (t *transcript) write(r any) {
	line, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(t.path), 0o700)
	}
	if err == nil {
		err = appendLine(t.path, line)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stand-in:", err)
		os.Exit(70)
	}
}
