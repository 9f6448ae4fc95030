package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
	"acescope/engine/session"
)

// remembered is what an agent's own transcript tells of a turn.
type remembered struct {
	Exists bool // there is a transcript of the conversation
	Begun  bool // the turn's message is in it
	Ended  bool // and so is the end of the answer
	// Interrupted and Failed are of an end that was not the agent's.
	Interrupted bool
	Failed      string
	Text        string // what was said last
	Model       string
	Messages    []session.Out
	Omitted     int
	Usage       ace.Usage // of the turn: tokens, not money
}

// memory reads what an agent remembers of a turn whose message bears one of the uuids.
type memory interface {
	turn(agentSession string, turn int, uuids []string) (remembered, error)
}

// transcripts is the memory of Claude Code.
type transcripts struct{ config string }

// memory is that of Claude Code's processes as this host starts them.
func (h *Host) memory(adapter agentcli.Adapter) memory {
	env := h.environ(adapter, agentcli.Command{})
	dir := ""
	for _, v := range env {
		if name, value, _ := strings.Cut(v, "="); name == "CLAUDE_CONFIG_DIR" {
			dir = value
		}
	}
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return transcripts{}
		}
		dir = filepath.Join(home, ".claude")
	}
	return transcripts{dir}
}

// path is where a conversation's transcript is, "" where there is none. Its id is unique,
// so it is looked for under every project: how a project's name is made of a directory has
// changed more than once.
func (t transcripts) path(agentSession string) (string, error) {
	if t.config == "" || !agentcli.ValidSessionID(agentSession) {
		return "", nil
	}
	projects := filepath.Join(t.config, "projects")
	dirs, err := os.ReadDir(projects)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, d := range dirs {
		path := filepath.Join(projects, d.Name(), agentSession+".jsonl")
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", nil
}

func (t transcripts) turn(agentSession string, turn int, uuids []string) (remembered, error) {
	path, err := t.path(agentSession)
	if err != nil || path == "" {
		return remembered{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return remembered{}, fmt.Errorf("transcript: %w", err)
	}
	defer f.Close()
	s := seeker{turn: turn, uuids: uuids}
	s.Exists = true
	lines := agentcli.NewLineReader(f)
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return s.sum(), nil
		}
		if err != nil {
			return remembered{}, fmt.Errorf("transcript: %w", err)
		}
		var l transcriptLine
		if !line.TooLong() && json.Unmarshal(line.Bytes, &l) == nil {
			s.add(l)
		}
	}
}

// transcriptLine is what is read of a transcript's line.
type transcriptLine struct {
	Type      string `json:"type"`
	UUID      string `json:"uuid"`
	Sidechain bool   `json:"isSidechain"`
	Meta      bool   `json:"isMeta"`
	APIError  bool   `json:"isApiErrorMessage"`
	Message   struct {
		ID         string          `json:"id"`
		Model      string          `json:"model"`
		StopReason string          `json:"stop_reason"`
		Content    json.RawMessage `json:"content"`
		Usage      struct {
			Input   int64 `json:"input_tokens"`
			Created int64 `json:"cache_creation_input_tokens"`
			Read    int64 `json:"cache_read_input_tokens"`
			Output  int64 `json:"output_tokens"`
		} `json:"usage"`
	} `json:"message"`
}

// block is a part of a message.
type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	CallID  string          `json:"tool_use_id"`
	Content json.RawMessage `json:"content"`
	Error   bool            `json:"is_error"`
}

// seeker looks for a turn in the lines of a transcript.
type seeker struct {
	remembered
	turn    int
	uuids   []string
	last    string          // id of the message before
	counted map[string]int  // usage that was counted, by message: its place in spent
	spent   []ace.Usage     // of each message
	open    map[string]bool // calls without a result
	record  record
}

// synthetic is the model of what the CLI says in the model's place.
const synthetic = "<synthetic>"

// interruptedMark begins what the CLI writes in the user's name when a turn is broken off.
const interruptedMark = "[Request interrupted by user"

func (s *seeker) add(l transcriptLine) {
	if l.UUID != "" && slices.Contains(s.uuids, l.UUID) && l.Type == "user" {
		if !s.Begun {
			s.record = record{turn: s.turn, begun: true, names: map[string]string{}}
			s.counted, s.open = map[string]int{}, map[string]bool{}
		}
		// A later message goes on with what the first began.
		s.Begun, s.Ended, s.Interrupted, s.Failed, s.Text = true, false, false, "", ""
		clear(s.open)
		return
	}
	if !s.Begun || l.Sidechain || l.Meta {
		return
	}
	switch l.Type {
	case "assistant":
		s.assistant(l)
	case "user":
		s.user(l)
	}
}

func (s *seeker) assistant(l transcriptLine) {
	m := l.Message
	if m.Model == synthetic && !l.APIError {
		return // what the CLI puts after a turn that was broken off, when it is resumed
	}
	s.count(l)
	if m.Model != "" && m.Model != synthetic {
		s.Model = m.Model
	}
	for _, b := range blocks(m.Content) {
		switch b.Type {
		case "text":
			s.Text = b.Text
			if l.APIError {
				s.Failed = b.Text
			}
			s.record.tell(agentcli.Event{Kind: agentcli.KindText, Text: b.Text})
		case "tool_use":
			if len(s.open) < maxNames {
				s.open[b.ID] = true
			}
			s.record.tell(agentcli.Event{Kind: agentcli.KindToolUse, Tool: &agentcli.Tool{ID: b.ID, Name: b.Name, Args: b.Input}})
		}
	}
	switch m.StopReason {
	case "", "tool_use", "pause_turn":
		s.Ended = l.APIError
	default:
		s.Ended = len(s.open) == 0
	}
}

func (s *seeker) user(l transcriptLine) {
	for _, b := range blocks(l.Message.Content) {
		switch {
		case b.Type == "tool_result":
			delete(s.open, b.CallID)
			s.record.tell(agentcli.Event{Kind: agentcli.KindToolResult, Tool: &agentcli.Tool{ID: b.CallID, Result: b.Content, OK: !b.Error}})
			s.Ended = false
		case b.Type == "text" && strings.HasPrefix(b.Text, interruptedMark):
			s.Ended, s.Interrupted = true, true
		}
	}
}

// count adds what a message used, once: its parts stand in several lines.
func (s *seeker) count(l transcriptLine) {
	u := l.Message.Usage
	use := ace.Usage{InputTokens: u.Input + u.Created, OutputTokens: u.Output, CacheReadTokens: u.Read}
	if at, ok := s.counted[l.Message.ID]; ok {
		s.spent[at] = use
	} else {
		s.counted[l.Message.ID] = len(s.spent)
		s.spent = append(s.spent, use)
	}
}

// sum is what was found, in all.
func (s *seeker) sum() remembered {
	for _, u := range s.spent {
		s.Usage = s.Usage.Add(u)
	}
	s.Messages, s.Omitted = s.record.out, s.record.left
	return s.remembered
}

// blocks are the parts of a message's content, which may be a mere text.
func blocks(raw json.RawMessage) []block {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	var list []block
	_ = json.Unmarshal(raw, &list) // what is neither has no parts
	return list
}
