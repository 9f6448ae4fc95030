package transcripts

import (
	"path/filepath"
	"time"

	"acescope/engine/transcript"
)

// entry is a transcript as the index knows it.
type entry struct {
	path, project  string
	session, agent string // as its name tells; session is "" where only its lines do
	size           int64
	modTime        time.Time

	done    bool // the summary is of this size and time
	cached  bool // it comes from the cache
	queued  bool
	seen    int // the last scan that met it
	used    int64
	reader  *transcript.Reader // nil where reading would begin anew
	fold    *transcript.Fold
	offset  int64
	summary transcript.Summary
	err     string
}

// owner is the session that the transcript belongs to, and the key of that.
func (e *entry) owner() (id, key string) {
	id = e.session
	if id == "" {
		id = e.summary.SessionID
	}
	dir := filepath.Dir(e.path)
	if e.agent != "" && e.session != "" {
		dir = filepath.Dir(filepath.Dir(dir)) // SESSION/subagents
	}
	return id, filepath.Join(dir, id)
}

// forget gives back what is only needed to go on reading where it ended.
func (e *entry) forget() { e.reader, e.fold = nil, nil }
