package activity

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"acescope/engine/ace"
	"acescope/engine/artifact"
	"acescope/engine/model"
	"acescope/engine/redact"
)

// Bounds of a live file.
const (
	liveEvery = 250 * time.Millisecond // between two lines, at least
	liveBytes = 1 << 20                // of text; what comes after is left out, and a line says so
)

// liveLine is a line of a live file: what a model said since the last one.
type liveLine struct {
	At       time.Time `json:"at"`
	Activity string    `json:"activity"`
	Attempt  int32     `json:"attempt"`
	Text     string    `json:"text,omitempty"`
	Note     string    `json:"note,omitempty"`
}

// livePath is where the text of a step is written while its model says it: among the
// run's own logs, where the console looks for them.
func livePath(logs string, t ace.TaskContext, name string, attempt int32) string {
	return filepath.Join(logs, "runs", artifact.Escape(t.WorkflowID), artifact.Escape(t.RunID), fmt.Sprintf("%s-0-%d.jsonl", name, attempt))
}

// live gives a provider that can stream a file to do so, and what closes that file. A file
// that cannot be written is done without: the step's result says the same in the end.
func (a *Activities) live(ctx context.Context, p model.Provider, t ace.TaskContext) (model.Provider, func()) {
	s, ok := p.(model.Streamer)
	if !ok || a.Logs == "" {
		return p, func() {}
	}
	info := activity.GetInfo(ctx)
	l := &liveFile{path: livePath(a.Logs, t, info.ActivityType.Name, info.Attempt), name: info.ActivityType.Name, attempt: info.Attempt, secrets: a.secrets}
	return s.Live(l.add), l.close
}

// liveFile gathers text and writes it a few times a second.
type liveFile struct {
	path, name string
	attempt    int32
	secrets    *redact.Redactor

	mu     sync.Mutex
	text   []byte
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
		l.write("")
		l.write("there is more, which is left out here")
		return
	}
	l.text = append(l.text, text...)
	if l.timer == nil {
		l.timer = time.AfterFunc(liveEvery, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.timer = nil
			l.write("")
		})
	}
}

// write is called with the lock held.
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
		line.Text = string(l.secrets.Cut(l.text))
		l.text = l.text[:0]
	}
	data, err := json.Marshal(line)
	if err == nil {
		_, err = l.f.Write(append(data, '\n'))
	}
	l.broken = err != nil
}

func (l *liveFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	l.write("")
	l.broken = true // whatever comes now comes too late
	if l.f != nil {
		_ = l.f.Close()
	}
}
