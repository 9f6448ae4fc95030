package sessions

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"acescope/engine/agents/agentcli"
	"acescope/sources/transcripts"
)

// Bounds of the logs of turns.
const (
	keptTurns = 5        // ended turns whose entries are kept
	maxLogged = 64 << 20 // bytes at the end of an existing log that are read
	logPiece  = 4 << 20  // bytes that are read at a time
)

// turnLogs reads the logs of a session's turns. It is for one goroutine.
type turnLogs struct {
	// path returns the file with the log of an attempt at a turn, or "" if it is not on this machine.
	path  func(workflowID, runID string, turn int, attempt int32) string
	turns []*turnLog // the newest last
}

// turnLog reads the logs of the attempts at one turn.
type turnLog struct {
	runID   string
	turn    int
	attempt int32
	file    *os.File
	name    string
	events  *agentcli.Reader
	entries transcripts.Builder
}

// follow reads new data from the log of the current turn and reports whether there was any. If the turn has just ended,
// the log is read to its end.
func (l *turnLogs) follow(workflowID string, f *Folder) (changed bool) {
	turn := f.last()
	if turn == nil || turn.Began.IsZero() {
		return false
	}
	last := l.of(turn.Turn)
	if last == nil {
		if !turn.Ended.IsZero() {
			return false // its history has the entries
		}
		last = &turnLog{runID: turn.RunID, turn: turn.Turn}
		for _, old := range l.turns {
			old.close()
		}
		l.turns = append(l.turns[max(0, len(l.turns)+1-keptTurns):len(l.turns):len(l.turns)], last)
	}
	if last.file == nil && !turn.Ended.IsZero() {
		return false
	}
	cli := agentcli.CLI(f.State.Input.Agent)
	for {
		changed = last.read() || changed
		if !last.next(l.path, workflowID, cli) {
			break
		}
		changed = true
	}
	if !turn.Ended.IsZero() {
		last.close()
	}
	return changed
}

func (l *turnLogs) of(turn int) *turnLog {
	i := slices.IndexFunc(l.turns, func(t *turnLog) bool { return t.turn == turn })
	if i < 0 {
		return nil
	}
	return l.turns[i]
}

// next opens the log of the next attempt, if it exists.
func (t *turnLog) next(path func(string, string, int, int32) string, workflowID string, cli agentcli.CLI) bool {
	name := path(workflowID, t.runID, t.turn, t.attempt+1)
	if name == "" {
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	t.close()
	t.attempt++
	t.file, t.name = f, name
	lines := agentcli.NewLineReader(f)
	if info, err := f.Stat(); err == nil && info.Size() > maxLogged {
		if at, err := f.Seek(-maxLogged, io.SeekEnd); err == nil {
			lines = agentcli.NewLineReaderAt(f, at)
		}
	}
	lines.Follow = true
	t.events = agentcli.NewLinesReader(lines, agentcli.NewParser(cli))
	if t.attempt > 1 {
		t.entries.End()
		t.entries.Add(&transcripts.Entry{Kind: transcripts.KindStatus, Name: fmt.Sprintf("attempt %d", t.attempt),
			Text: "the turn continues after a crash"})
	}
	return true
}

// read reads a bounded piece of new data and reports whether there was any.
func (t *turnLog) read() (changed bool) {
	if t.file == nil {
		return false
	}
	for read := 0; read < logPiece; {
		e, err := t.events.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.close()
			}
			return changed
		}
		if e.Part == 0 {
			read += len(e.Raw)
		}
		changed = t.add(e) || changed
	}
	return changed
}

// add adds an event of the agent. The events of its subagents are only in the log.
func (t *turnLog) add(e agentcli.Event) bool {
	switch e.Kind {
	case agentcli.KindText, agentcli.KindThinking, agentcli.KindDelta, agentcli.KindToolUse, agentcli.KindToolResult,
		agentcli.KindError:
		if e.ParentID != "" {
			return false
		}
	case agentcli.KindResult:
	default:
		return false
	}
	t.entries.Event(e)
	return true
}

func (t *turnLog) close() {
	if t.file != nil {
		_ = t.file.Close()
		t.file = nil
	}
}

// close closes all logs.
func (l *turnLogs) close() {
	for _, t := range l.turns {
		t.close()
	}
}

// current returns the file that is being read, or "".
func (l *turnLogs) current() string {
	if n := len(l.turns); n > 0 && l.turns[n-1].file != nil {
		return l.turns[n-1].name
	}
	return ""
}

// entries returns the entries in the logs by turn.
func (l *turnLogs) entries() map[int][]*transcripts.Entry {
	all := map[int][]*transcripts.Entry{}
	for _, t := range l.turns {
		if list, _ := t.entries.Entries(); len(list) > 0 {
			all[t.turn] = list
		}
	}
	return all
}
