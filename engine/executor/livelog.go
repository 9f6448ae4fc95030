package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"acescope/engine/ace"
	"acescope/engine/artifact"
)

// Streams of a [LogLine].
const (
	streamOut = "stdout"
	streamErr = "stderr"
)

// Bounds of the log, in bytes: of the text of a line, of which a longer one is taken in
// pieces, and of what one output may fill.
const (
	maxLine = 8 << 10
	maxLog  = 32 << 20
)

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
	mu    sync.Mutex
	to    logFile          // nil for none
	left  map[string]int64 // bytes of the log that each output may still fill
	block bytes.Buffer
	err   error
}

// openLog begins the log of a name, nil for none.
func (e *Executor) openLog(n *artifact.LogName) *liveLog {
	l := &liveLog{left: map[string]int64{streamOut: maxLog, streamErr: maxLog}}
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
		now, err := json.Marshal(time.Now().UTC())
		if err != nil {
			return // a clock that is beyond the year 9999
		}
		block := l.encode(fmt.Sprintf(`{"at":%s,"stream":%q,"text":`, now, name), text)
		if l.left[name] -= int64(len(block)); l.left[name] < 0 {
			block = fmt.Appendf(nil, `{"at":%s,"stream":%q,"text":"","note":"there is more, which is left out here"}`, now, name)
		}
		// Many lines are one write, so that a program that says much does not wait for the log.
		if err := l.to.Line(block); l.err == nil {
			l.err = err
		}
	}
}

// encode makes lines of the log of text.
func (l *liveLog) encode(head string, text []byte) []byte {
	l.block.Reset()
	e := json.NewEncoder(&l.block)
	e.SetEscapeHTML(false)
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		for first := true; first || len(line) > 0; first = false {
			n := min(len(line), maxLine)
			l.block.WriteString(head)
			_ = e.Encode(strings.ToValidUTF8(string(line[:n]), "�")) // a string can be
			l.block.Truncate(l.block.Len() - 1)
			l.block.WriteString("}\n")
			line = line[n:]
		}
	}
	return bytes.TrimSuffix(l.block.Bytes(), []byte("\n"))
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
