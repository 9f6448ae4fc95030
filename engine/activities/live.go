package activities

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"acescope/engine/ace"
	"acescope/engine/internal/redact"
	"acescope/engine/learning/model"
	"acescope/engine/store/artifact"
)

// Bounds of a live file.
const (
	liveEvery = 250 * time.Millisecond // minimum time between two lines
	liveBytes = 1 << 20                // of text; a note replaces the rest
)

// liveLine is a line of a live file: the text since the previous line.
type liveLine struct {
	At       time.Time `json:"at"`
	Activity string    `json:"activity"`
	Attempt  int32     `json:"attempt"`
	Text     string    `json:"text,omitempty"`
	Note     string    `json:"note,omitempty"`
}

// live returns a provider that streams its text to a live file, if it can, and a function that
// closes the file. Write errors are ignored: the step's result contains the same text.
func (p *phases) live(ctx context.Context, of model.Provider, t ace.TaskContext) (model.Provider, func()) {
	s, ok := of.(model.Streamer)
	if !ok || p.logs == nil {
		return of, func() {}
	}
	info := activity.GetInfo(ctx)
	name := info.ActivityType.Name
	log := artifact.LogName{WorkflowID: t.WorkflowID, RunID: t.RunID, Activity: name,
		Attempt: info.Attempt}.Path()
	l := &liveFile{path: p.logs.Path(log), copy: p.logs.Copy(log), name: name, attempt: info.Attempt,
		secrets: p.secrets.Stream()}
	return s.Live(l.add), l.close
}

// liveFile buffers text and writes it a few times a second.
type liveFile struct {
	path, name string
	attempt    int32
	secrets    *redact.Stream
	copy       *artifact.LogCopy

	mu     sync.Mutex
	text   []byte // without secrets
	size   int
	timer  *time.Timer
	f      *os.File
	broken bool
}

func (l *liveFile) add(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken || l.size > liveBytes {
		return
	}
	if l.size += len(text); l.size > liveBytes {
		l.flush()
		l.write("the rest of the text is left out")
		return
	}
	l.text = append(l.text, l.secrets.Add([]byte(text))...)
	if l.timer == nil {
		l.timer = time.AfterFunc(liveEvery, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.timer = nil
			l.write("")
		})
	}
}

// flush writes the remaining text. The caller holds the lock.
func (l *liveFile) flush() {
	l.text = append(l.text, l.secrets.Flush()...)
	l.write("")
}

// write appends a line. The caller holds the lock.
func (l *liveFile) write(note string) {
	if l.broken || len(l.text) == 0 && note == "" {
		return
	}
	if l.f == nil {
		var err error
		if err = os.MkdirAll(filepath.Dir(l.path), 0o700); err == nil {
			l.f, err = os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		}
		if err != nil {
			l.broken = true
			return
		}
	}
	line := liveLine{At: time.Now().UTC(), Activity: l.name, Attempt: l.attempt, Note: note}
	if note == "" {
		line.Text = string(l.text)
		l.text = l.text[:0]
	}
	data, err := json.Marshal(line)
	if err == nil {
		data = append(data, '\n')
		_, err = l.f.Write(data)
	}
	if l.broken = err != nil; !l.broken {
		l.copy.Grew(len(data))
	}
}

func (l *liveFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	l.flush()
	l.broken = true // ignore later text
	if l.f != nil {
		_ = l.f.Close()
		_ = l.copy.Finish(context.Background(), true)
	}
}
