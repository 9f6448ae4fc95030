//go:build unix

package agentclitest

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
)

// sessionLog writes the transcript of a Claude session. It takes no lock and does not see what
// other processes append.
type sessionLog struct {
	path    string
	session string
	cwd     string
	version string
	last    string          // uuid of the last message, the parent of the next one
	uuids   map[string]bool // of all lines
	turns   int             // user messages among the last message and its ancestors
	cost    costState       // the last one
}

// costState is the line with the cost of the session that a process writes when it exits. The
// next process counts from there.
type costState struct {
	Type      string  `json:"type"`
	SessionID string  `json:"sessionId"`
	Cost      float64 `json:"totalCostUSD"`
	Messages  int     `json:"messages"`
}

const costType = "cost-state"

// loadSession reads the transcript of a session, if it exists.
func loadSession(path, session, cwd, version string) (log *sessionLog, exists bool) {
	log = &sessionLog{path: path, session: session, cwd: cwd, version: version, uuids: map[string]bool{}}
	data, err := os.ReadFile(path)
	if err != nil {
		return log, false
	}
	type record struct {
		Type    string `json:"type"`
		UUID    string `json:"uuid"`
		Parent  string `json:"parentUuid"`
		Message struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	records := map[string]record{}
	for line := range bytes.Lines(data) {
		var r record
		if json.Unmarshal(line, &r) != nil {
			continue
		}
		if r.Type == costType {
			_ = json.Unmarshal(line, &log.cost)
		}
		if r.UUID != "" {
			records[r.UUID] = r
			log.uuids[r.UUID] = true
			log.last = r.UUID
		}
	}
	// Messages that other processes appended to an earlier message are not ancestors of the last one.
	for at := log.last; at != ""; at = records[at].Parent {
		r := records[at]
		if r.Type == "user" && !bytes.Contains(r.Message.Content, []byte(`"tool_result"`)) {
			log.turns++
		}
	}
	return log, true
}

// add appends a message with extra fields.
func (l *sessionLog) add(kind, uuid string, message, extra object) {
	line := object{
		"type": kind, "uuid": uuid, "parentUuid": nil, "sessionId": l.session, "timestamp": now(),
		"cwd":     l.cwd,
		"version": l.version, "gitBranch": "", "isSidechain": false, "userType": "external",
		"message": message,
	}
	if l.last != "" {
		line["parentUuid"] = l.last
	}
	maps.Copy(line, extra)
	l.write(line)
	l.last = uuid
	l.uuids[uuid] = true
}

func (l *sessionLog) write(line any) {
	check(os.MkdirAll(filepath.Dir(l.path), 0o700))
	appendLine(l.path, line)
}
