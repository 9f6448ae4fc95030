package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"acescope/engine/ace"
	"acescope/engine/artifact"
	"acescope/engine/run"
)

// Streams of a [LogLine].
const (
	streamOut = "stdout"
	streamErr = "stderr"
)

// maxLine bounds a line of the log, in bytes of text. A longer one is taken in pieces.
const maxLine = 8 << 10

// LogLine is a line of a run's live log.
type LogLine struct {
	At     time.Time `json:"at"`
	Stream string    `json:"stream"`
	Text   string    `json:"text"`
	Note   string    `json:"note,omitempty"` // of acescope itself
}

// logFile is the part of a live log that is used here.
type logFile interface {
	Line(line []byte) error
	Path() string
	Complete() bool
	Seal(ctx context.Context) (ace.Ref, error)
}

// liveLog is what a program writes, as it comes, for those who watch. A log that cannot be
// written is done without: the outputs are kept by themselves.
type liveLog struct {
	mu   sync.Mutex
	to   logFile // nil for none
	left map[string]int64
	err  error
}

// openLog begins the log of a name, nil for none.
func (e *Executor) openLog(n *artifact.LogName) *liveLog {
	l := &liveLog{left: map[string]int64{streamOut: run.MaxCapture, streamErr: run.MaxCapture}}
	if n == nil || e.o.Logs == nil {
		return l
	}
	to, err := e.o.Logs.Create(*n)
	if err != nil {
		l.err = err
		return l
	}
	l.to = to
	return l
}

// stream is what takes the lines of one output.
func (l *liveLog) stream(name string) func([]byte) {
	return func(text []byte) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.to == nil || l.left[name] < 0 {
			return
		}
		now := time.Now().UTC()
		for line := range bytes.Lines(text) {
			line = bytes.TrimRight(line, "\r\n")
			for first := true; first || len(line) > 0; first = false {
				n := min(len(line), maxLine)
				l.line(LogLine{At: now, Stream: name, Text: strings.ToValidUTF8(string(line[:n]), "�")})
				line = line[n:]
			}
		}
		if l.left[name] -= int64(len(text)); l.left[name] < 0 {
			l.line(LogLine{At: now, Stream: name, Note: "there is more, which is left out here"})
		}
	}
}

// line is called with the lock held.
func (l *liveLog) line(line LogLine) {
	data, err := json.Marshal(line)
	if err == nil {
		err = l.to.Line(data)
	}
	if l.err == nil {
		l.err = err
	}
}

// close seals the log. The reference is nil where there is none.
func (l *liveLog) close(ctx context.Context) (ref *ace.Ref, path string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to == nil {
		return nil, "", l.err
	}
	sealed, err := l.to.Seal(ctx)
	if err != nil {
		return nil, l.to.Path(), err
	}
	return &sealed, l.to.Path(), l.err
}
