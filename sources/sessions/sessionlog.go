package sessions

import (
	"errors"
	"fmt"
	"io"
	"os"

	"acescope/engine/agents/agentcli"
	"acescope/sources/transcripts"
)

// Bounds of the logs of turns.
const (
	keptTurns = 5        // ended turns whose entries are kept
	maxLogged = 64 << 20 // bytes at the end of an existing log that are read
	logPiece  = 4 << 20  // bytes that are read at a time
)

// turnLog reads the logs of the attempts at one turn. It is for one goroutine.
type turnLog struct {
	// path returns the file with the log of an attempt, or "" if it is not on this machine.
	path    func(attempt int32) string
	cli     agentcli.CLI
	attempt int32
	file    *os.File
	events  *agentcli.Reader
	builder transcripts.Builder
}

// locateLog returns the file with the log of an attempt at a turn, or "" if it is not on this machine.
type locateLog func(workflowID, runID string, turn int, attempt int32) string

// followLog reads new data from the log of the current turn and reports whether there was any. If the turn
// has just ended, the log is read to its end.
func (f *Folder) followLog(workflowID string, locate locateLog) (changed bool) {
	turn := f.last()
	if turn == nil || turn.Began.IsZero() {
		return false
	}
	if turn.log == nil {
		if !turn.Ended.IsZero() {
			return false // its history has the entries
		}
		path := func(attempt int32) string { return locate(workflowID, turn.RunID, turn.Turn, attempt) }
		turn.log = &turnLog{path: path, cli: agentcli.CLI(f.State.Input.Agent)}
		f.closeLogs(turn)
	}
	if turn.log.file == nil && !turn.Ended.IsZero() {
		return false
	}
	changed = turn.log.read()
	for turn.log.next() {
		turn.log.read()
		changed = true
	}
	if !turn.Ended.IsZero() {
		turn.log.close()
	}
	return changed
}

// closeLogs closes the logs of all turns but one, and forgets the oldest ones.
func (f *Folder) closeLogs(but *Turn) {
	for i, t := range f.Turns {
		if t.log == nil || t == but {
			continue
		}
		t.log.close()
		if i < len(f.Turns)-keptTurns {
			t.log = nil
		}
	}
}

// next opens the log of the next attempt, if it exists.
func (t *turnLog) next() bool {
	name := t.path(t.attempt + 1)
	if name == "" {
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	t.close()
	t.attempt++
	t.file = f
	lines := agentcli.NewLineReader(f)
	if info, err := f.Stat(); err == nil && info.Size() > maxLogged {
		if at, err := f.Seek(-maxLogged, io.SeekEnd); err == nil {
			lines = agentcli.NewLineReaderAt(f, at)
		}
	}
	lines.Follow = true
	t.events = agentcli.NewLinesReader(lines, agentcli.NewParser(t.cli))
	if t.attempt > 1 {
		t.builder.End()
		t.builder.Add(&transcripts.Entry{Kind: transcripts.KindStatus,
			Name: fmt.Sprintf("attempt %d", t.attempt),
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
	case agentcli.KindText, agentcli.KindThinking, agentcli.KindDelta, agentcli.KindToolUse,
		agentcli.KindToolResult,
		agentcli.KindError:
		if e.ParentID != "" {
			return false
		}
	case agentcli.KindResult:
	default:
		return false
	}
	t.builder.Event(e)
	return true
}

func (t *turnLog) close() {
	if t.file != nil {
		_ = t.file.Close()
		t.file = nil
	}
}

// entries returns the entries in the logs, or nil without entries.
func (t *turnLog) entries() []*transcripts.Entry {
	if t == nil {
		return nil
	}
	list, _ := t.builder.Entries()
	return list
}
