package transcript

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/price"
)

// opencode reads the sessions of OpenCode: rows of opencode.db, or of the database of another release
// channel, in $XDG_DATA_HOME/opencode; and the JSON files in storage that versions before the database have
// left. The path of a session in a database is DATABASE/ID. The source is packages/opencode/src/session of
// github.com/sst/opencode (session.sql.ts, message-v2.ts), checked with versions 1.0 and 1.18.
//
// A database is opened read-only for the time of a query, which never makes its writer wait.
type opencode struct{}

const opencodeSession = "ses_" // begins the IDs of sessions

func (opencode) Agent() agentcli.CLI { return agentcli.OpenCode }

func (opencode) Root(getenv func(string) string) string {
	if data := getenv("XDG_DATA_HOME"); data != "" {
		return filepath.Join(data, "opencode")
	}
	return inHome(filepath.Join(".local", "share", "opencode"))
}

func (opencode) Dir(root string) string { return root }

func (f opencode) Owns(path string) bool {
	dir, id := filepath.Split(path)
	return strings.HasPrefix(id, opencodeSession) && (isDatabase(filepath.Base(dir)) || isStored(path))
}

// isDatabase reports whether a file name is that of a database of sessions.
func isDatabase(name string) bool {
	return strings.HasPrefix(name, "opencode") && strings.HasSuffix(name, ".db")
}

func (f opencode) List(ctx context.Context, root string) ([]Entry, error) {
	var l lister
	listed := map[string]bool{}
	for _, e := range l.read(root) {
		if !isDatabase(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		list, err := f.query(ctx, filepath.Join(root, e.Name()), "")
		if err != nil {
			l.err = err
		}
		for _, e := range list {
			listed[cmp.Or(e.Agent, e.Session)] = true
			l.entries = append(l.entries, e)
		}
	}
	for _, e := range l.stored(ctx, root) {
		if !listed[cmp.Or(e.Agent, e.Session)] {
			l.entries = append(l.entries, e)
		}
	}
	return l.entries, l.err
}

func (f opencode) Stat(ctx context.Context, path string) ([]Entry, error) {
	if isStored(path) {
		return statFile(path, storedEntry)
	}
	database, id := filepath.Split(path)
	list, err := f.query(ctx, filepath.Clean(database), id)
	if err == nil && len(list) == 0 {
		err = &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
	}
	return list, err
}

// query returns the session with the ID, or all sessions of a database if id is "". A subagent is a session
// with a parent.
func (f opencode) query(ctx context.Context, database, id string) (list []Entry, err error) {
	parents := map[string]string{}
	add := func(row *sql.Rows) error {
		e := Entry{Project: database}
		var parent string
		var updated int64
		if err := row.Scan(&e.Session, &parent, &updated); err != nil {
			return err
		}
		if !agentcli.ValidSessionID(e.Session) {
			return nil
		}
		parents[e.Session] = parent
		e.Path, e.ModTime = filepath.Join(database, e.Session), time.UnixMilli(updated).UTC()
		if !inRange(e.ModTime) {
			e.ModTime = time.Time{}
		}
		list = append(list, e)
		return nil
	}
	err = withDatabase(database, func(db *sql.DB) error {
		return eachRow(ctx, db, `SELECT s.id, coalesce(s.parent_id, ''), max(s.time_updated,
			coalesce((SELECT max(m.time_updated) FROM message m WHERE m.session_id = s.id), 0))
			FROM session s WHERE ?1 = '' OR s.id = ?1`, []any{id}, add)
	})
	for i := range list {
		list[i].Session, list[i].Agent = rootOf(parents, list[i].Session)
	}
	return list, err
}

// rootOf returns the session at the root of a session's parents, and the session as a subagent of it, "" if
// it is the root.
func rootOf(parents map[string]string, id string) (root, agent string) {
	root = id
	for range maxDepth {
		parent := parents[root]
		if !agentcli.ValidSessionID(parent) || parent == id {
			break
		}
		root, agent = parent, id
	}
	return root, agent
}

// maxDepth bounds the subagents of subagents.
const maxDepth = 20

// withDatabase calls fn with a database, which need not be complete or valid.
func withDatabase(path string, fn func(*sql.DB) error) error {
	db, err := openDatabase(path)
	if err != nil {
		return err
	}
	err = fn(db)
	return databaseError(path, errors.Join(err, db.Close()))
}

// eachRow calls fn with the rows of a query.
func eachRow(ctx context.Context, db *sql.DB, query string, args []any, fn func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func openDatabase(path string) (*sql.DB, error) {
	file, _, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	file.Close()
	options := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(100)", "query_only(1)",
		"trusted_schema(0)"}}
	if _, err := os.Stat(path + "-wal"); os.IsNotExist(err) {
		// No process writes: without this, SQLite would create files for its locks.
		options.Set("immutable", "1")
	}
	dsn := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: options.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, databaseError(path, err)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

func databaseError(path string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%s: cannot read the sessions of OpenCode: %w", path, err)
}

func (opencode) Open(path string) LineReader {
	if isStored(path) {
		return &storedReader{wholeReader{path: path}}
	}
	return &databaseReader{wholeReader{path: path}}
}

func (opencode) Fold(prices *price.Prices) Folder { return &opencodeFold{tally: newTally(prices)} }

func (opencode) Events() func(raw []byte) []agentcli.Event { return new(opencodeEvents).events }

// databaseReader reads a session in a database as lines: the session, and each message followed by its parts.
// Every read starts again.
type databaseReader struct{ wholeReader }

func (r *databaseReader) Read(
	ctx context.Context, _ int64, restart func(), fn func(raw []byte, at int64),
) (Progress, error) {
	out := rowWriter{fn: fn, p: Progress{Restarted: r.begin(restart)}}
	database, id := filepath.Split(r.path)
	err := withDatabase(filepath.Clean(database), func(db *sql.DB) error { return out.session(ctx, db, id) })
	out.p.Size = out.p.Offset
	return out.p, err
}

// rowWriter writes rows as lines.
type rowWriter struct {
	fn func(raw []byte, at int64)
	p  Progress
}

// put writes a row with the JSON of its data, or counts it if that is too long.
func (w *rowWriter) put(kind, id string, data []byte) {
	if data == nil {
		w.p.Oversized++
		return
	}
	name, _ := json.Marshal(id) // a string has no error
	line := make([]byte, 0, len(data)+len(name)+len(kind)+32)
	line = append(append(append(line, `{"type":"`...), kind...), `","id":`...)
	line = append(append(append(line, name...), `,"data":`...), data...)
	line = append(line, '}')
	w.fn(line, w.p.Offset)
	w.p.Offset += int64(len(line))
}

func (w *rowWriter) session(ctx context.Context, db *sql.DB, id string) error {
	var data []byte
	err := db.QueryRowContext(ctx, `SELECT json_object('title', title, 'directory', directory,
		'version', version, 'time', json_object('created', time_created)) FROM session WHERE id = ?`, id).Scan(&data)
	if err != nil {
		return err
	}
	w.put("session", id, data)
	var messages []string // read first, because the database has one connection
	err = eachRow(ctx, db, `SELECT id FROM message WHERE session_id = ? ORDER BY time_created, id`, []any{id},
		func(row *sql.Rows) error {
			var message string
			err := row.Scan(&message)
			messages = append(messages, message)
			return err
		})
	for _, message := range messages {
		if err == nil {
			err = w.query(ctx, db, "message", "id", message)
		}
		if err == nil {
			err = w.query(ctx, db, "part", "message_id", message)
		}
	}
	return err
}

// query writes the rows of a table with a key.
func (w *rowWriter) query(ctx context.Context, db *sql.DB, table, key, value string) error {
	query := `SELECT id, CASE WHEN octet_length(data) <= ? THEN data END FROM ` + table +
		` WHERE ` + key + ` = ? ORDER BY id`
	return eachRow(ctx, db, query, []any{MaxLine, value}, func(row *sql.Rows) error {
		var id string
		var data []byte
		if err := row.Scan(&id, &data); err != nil {
			return err
		}
		w.put(table, id, data)
		return nil
	})
}
