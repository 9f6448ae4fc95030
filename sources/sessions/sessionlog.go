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

// Bounds of the logs of turns that are read.
const (
	keptTurns = 5        // whose logs' text is held after they have ended
	maxLogged = 64 << 20 // bytes of a log that are read from its end, where it was there before
	logTurn   = 4 << 20  // bytes that are read at a time
)

// TurnLogs is what the logs of a session's turns tell. Only one goroutine uses it.
type TurnLogs struct {
	// Pathh is where the log of an attempt at a turn lies on this machine.
	Path  func(workflowID, runID string, turn int, attempt int32) string
	turns []*turnLog // the newest last
}

// turnLog is what the logs of the attempts at one turn tell.
type turnLog struct {
	runID   string
	turn    int
	attempt int32
	file    *os.File
	name    string
	events  *agentcli.Reader
	told    transcripts.Builder
}

// Follow reads what is new in the log of the turn under way, and tells whether there was
// anything. A turn that has just ended is read to its end.
func (l *TurnLogs) Follow(workflowID string, f *SessionFolder) (changed bool) {
	turn := f.last()
	if turn == nil || turn.Record != nil {
		return false
	}
	last := l.of(turn.Turn)
	if last == nil {
		if !turn.Ended.IsZero() {
			return false // what its history tells is enough
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
		if !last.next(l.Path, workflowID, cli) {
			break
		}
		changed = true
	}
	if !turn.Ended.IsZero() {
		last.close()
	}
	return changed
}

func (l *TurnLogs) of(turn int) *turnLog {
	i := slices.IndexFunc(l.turns, func(t *turnLog) bool { return t.turn == turn })
	if i < 0 {
		return nil
	}
	return l.turns[i]
}

// next opens the log of the next attempt, where there is one.
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
			lines = agentcli.NewLineReaderAt(f, at, 0)
		}
	}
	lines.Follow = true
	t.events = agentcli.NewLinesReader(lines, agentcli.NewParser(cli))
	if t.attempt > 1 {
		t.told.End()
		t.told.Add(&TranscriptEntry{Kind: EntryStatus, Name: fmt.Sprintf("attempt %d", t.attempt), Text: "the turn is gone on with after a crash"})
	}
	return true
}

// read takes what is new, a bounded piece of it, and tells whether there was anything.
func (t *turnLog) read() (changed bool) {
	if t.file == nil {
		return false
	}
	for read := 0; read < logTurn; {
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
		changed = t.take(e) || changed
	}
	return changed
}

// take takes what the agent itself says and does; what its subagents do is in the log.
func (t *turnLog) take(e agentcli.Event) bool {
	switch e.Kind {
	case agentcli.KindText, agentcli.KindThinking, agentcli.KindDelta, agentcli.KindToolUse, agentcli.KindToolResult, agentcli.KindError:
		if e.ParentID != "" {
			return false
		}
	case agentcli.KindResult:
	default:
		return false
	}
	t.told.Event(e)
	return true
}

func (t *turnLog) close() {
	if t.file != nil {
		_ = t.file.Close()
		t.file = nil
	}
}

func (l *TurnLogs) Close() {
	for _, t := range l.turns {
		t.close()
	}
}

// Current is the log that is being read, "" for none.
func (l *TurnLogs) Current() string {
	if n := len(l.turns); n > 0 && l.turns[n-1].file != nil {
		return l.turns[n-1].name
	}
	return ""
}

// Spoken is what the logs tell, by turn.
func (l *TurnLogs) Spoken() map[int][]*TranscriptEntry {
	all := map[int][]*TranscriptEntry{}
	for _, t := range l.turns {
		if list, _ := t.told.Entries(); len(list) > 0 {
			all[t.turn] = list
		}
	}
	return all
}
