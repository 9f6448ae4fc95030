package activities

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/activity"

	"acescope/engine/ace"
)

// syncEvery is the time between two syncs of a journal. If the machine crashes, items since the last sync are
// lost; if only the process crashes, no item is lost.
const syncEvery = time.Second

// journal is a file with the finished items of an evaluation, so that no attempt on this machine repeats
// them. A nil journal keeps nothing.
type journal struct {
	file   *os.File
	synced time.Time
	items  []ace.EvalItem // of earlier attempts
}

// openJournal opens the journal of the calling activity. Without a directory it returns nil.
func openJournal(dir string, ctx context.Context) (*journal, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("journal of the evaluation: %w", err)
	}
	info := activity.GetInfo(ctx)
	id := info.Namespace + "/" + info.WorkflowExecution.ID + "/" + info.WorkflowExecution.RunID + "/" +
		info.ActivityID
	path := filepath.Join(dir, fmt.Sprintf("%x.jsonl", sha256.Sum256([]byte(id))))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("journal of the evaluation: %w", err)
	}
	j := &journal{file: f, synced: time.Now()}
	if err := j.read(); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("journal of the evaluation %s: %w", path, err)
	}
	return j, nil
}

// read reads the items and removes a line that was not written completely.
func (j *journal) read() error {
	r := bufio.NewReader(j.file)
	var size int64
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		var item ace.EvalItem
		if json.Unmarshal(bytes.TrimSpace(line), &item) != nil {
			break
		}
		j.items = append(j.items, item)
		size += int64(len(line))
	}
	if err := j.file.Truncate(size); err != nil {
		return err
	}
	_, err := j.file.Seek(size, io.SeekStart)
	return err
}

// merge returns the items of earlier attempts: those of the file, or the others if there are more of them. It
// appends missing items to the file.
func (j *journal) merge(other []ace.EvalItem) ([]ace.EvalItem, error) {
	if j == nil {
		return other, nil
	}
	if len(j.items) >= len(other) {
		return j.items, nil
	}
	for _, item := range other[len(j.items):] {
		if err := j.add(item); err != nil {
			return nil, err
		}
	}
	return other, nil
}

func (j *journal) add(item ace.EvalItem) error {
	if j == nil {
		return nil
	}
	line, err := json.Marshal(item)
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	if err == nil && time.Since(j.synced) > syncEvery {
		err = j.file.Sync()
		j.synced = time.Now()
	}
	if err != nil {
		return fmt.Errorf("journal of the evaluation: %w", err)
	}
	return nil
}

func (j *journal) close() {
	if j != nil {
		_ = j.file.Close()
	}
}

// remove removes the file, or empties it if it cannot be removed.
func (j *journal) remove() {
	if j == nil {
		return
	}
	if err := os.Remove(j.file.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = j.file.Truncate(0)
	}
}
