package server

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"

	"acescope/engine/ace"
	"acescope/engine/store/durable"
	"acescope/engine/temporal/searchattr"
)

// retention is how long a closed run keeps its history: ten years, so that runs stay until
// they are deleted. The server's default for a new namespace is one day.
const retention = 3650 * 24 * time.Hour

// createDatabase creates the tables in one transaction, and the namespace with its search
// attributes, unless they exist.
func createDatabase(dir string, cfg *config.SQL, key Key) error {
	path := filepath.Join(dir, databaseFile)
	_, err := os.Stat(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if missing && readPort(dir) != 0 { // a host has run
		return failf(ErrDatabase, err,
			"data directory %s: %s, which held the runs, is missing: restore it, or delete the file %s to "+
				"start without runs (playbooks and artifacts stay)",
			dir, databaseFile, filepath.Join(dir, portFile))
	}
	if missing {
		err = newDatabase(dir, path, key)
	}
	if err != nil {
		return dirError(dir, err)
	}
	if err := createTables(cfg); err != nil {
		return databaseError(dir, err)
	}
	if err := createNamespace(cfg); err != nil {
		return databaseError(dir, err)
	}
	return nil
}

// newDatabase makes an empty database. It is confirmed before another process can find it. Without a key, the
// next start says why it is not.
func newDatabase(dir, path string, key Key) error {
	file, err := os.CreateTemp(dir, durable.TempPrefix+"*") // with mode 0600; SQLite would use 0644
	if err != nil {
		return err
	}
	_ = confirm(dir, file.Name(), key)
	return errors.Join(file.Close(), os.Rename(file.Name(), path))
}

// tables runs the schema's statements in a transaction. SetupSchemaOnDB calls no other method
// of the interface.
type tables struct {
	sqlplugin.AdminDB
	tx *sql.Tx
}

func (t tables) Exec(stmt string, args ...any) error {
	_, err := t.tx.Exec(stmt, args...)
	return err
}

func createTables(cfg *config.SQL) error {
	db, err := sql.Open("sqlite", "file:"+cfg.DatabaseName+
		"?mode=rwc&_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var n int
	row := tx.QueryRow("SELECT count(*) FROM sqlite_master WHERE name = 'executions'")
	if err := row.Scan(&n); err != nil {
		return err
	}
	if n > 0 {
		return nil
	}
	if err := sqliteschema.SetupSchemaOnDB(tables{tx: tx}); err != nil {
		return err
	}
	if err := dropUnusedIndexes(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func createNamespace(cfg *config.SQL) error {
	attributes := searchattr.Keywords(ace.SearchAttributes())
	namespace, err := sqliteschema.NewNamespaceConfig(clusterName, ace.DefaultNamespace, false, attributes)
	if err != nil {
		return err
	}
	namespace.Detail.Info.Description = description
	namespace.Detail.Config.Retention = durationpb.New(retention)
	return sqliteschema.CreateNamespaces(cfg, namespace)
}

func databaseError(dir string, err error) error {
	if err := storageError(dir, err.Error()); err != nil {
		return err
	}
	return dirError(dir, fmt.Errorf("%s: %w", databaseFile, err))
}

// SQLite's messages for a damaged database, and for a disk that fails or refuses writes. The server returns
// errors of SQLite as text only.
var (
	damageTexts = []string{"database disk image is malformed", "file is not a database"}
	diskTexts   = []string{"disk I/O error", "database or disk is full", "unable to open database file",
		"attempt to write a readonly database"}
)

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// storageError returns the error for a text with one of SQLite's messages about its file, otherwise nil. A
// disk that fails while it is read can look like a damaged database, so storageError reads the file again.
func storageError(dir, text string) error {
	if containsAny(text, damageTexts) {
		switch err := checkDatabase(dir); {
		case err == nil:
			text += fmt.Sprintf(", but %s is intact", databaseFile)
		case containsAny(err.Error(), diskTexts):
			text = err.Error()
		default:
			return failf(ErrDatabase, nil,
				"data directory %s: %s is damaged: %s; restore it from a backup, or move %s and the files "+
					"temporal.db* away to start without runs (playbooks and artifacts stay)",
				dir, databaseFile, text, portFile)
		}
	} else if !containsAny(text, diskTexts) {
		return nil
	}
	return failf(ErrDataDir, nil, "data directory %s: its disk failed or refuses writes: %s; check that it "+
		"is mounted, writable and not full, then start acescope again", dir, text)
}

// checkLimit bounds the time to check a database.
const checkLimit = time.Minute

// checkDatabase reads the whole database, without its indexes.
func checkDatabase(dir string) error {
	db, err := sql.Open("sqlite", "file:"+sqlConfig(dir).DatabaseName+"?mode=rw&_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), checkLimit)
	defer cancel()
	var result string
	err = db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&result)
	if err == nil && result != "ok" {
		return errors.New(result)
	}
	return err
}

// description identifies the namespace of acescope's databases.
const description = "acescope: runs of agent-learning loops"

// isOurDatabase reports whether acescope made the database: its namespace is in the file or in the
// write-ahead log. It does not open the database, because that would change it.
func isOurDatabase(dir string) bool {
	for _, suffix := range []string{"", "-wal"} {
		f, err := os.Open(filepath.Join(dir, databaseFile+suffix))
		if err != nil {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(f, searchedSize))
		_ = f.Close()
		if err == nil && bytes.Contains(data, []byte(description)) {
			return true
		}
	}
	return false
}

// searchedSize bounds the part of a file that isOurDatabase reads, in bytes. The namespace is at the
// beginning.
const searchedSize = 64 << 20

// usedIndexes are the indexes of the visibility table that queries of acescope and Temporal use: the list's
// order, IDs, type, status, times, parents, and the nine search attributes. The schema has 41 more indexes
// for attributes that this namespace does not have. Updating them would more than double the cost of every
// start, change and close of a run. A query on a column without an index, such as an attribute added to an
// older database, scans the table.
var usedIndexes = strings.Fields("default_idx by_workflow_id by_workflow_type by_status by_execution_time " +
	"by_parent_workflow_id by_root_workflow_id by_temporal_namespace_division " +
	"by_keyword_01 by_keyword_02 by_keyword_03 by_keyword_04 by_keyword_05 " +
	"by_keyword_06 by_keyword_07 by_keyword_08 by_keyword_09")

func dropUnusedIndexes(tx *sql.Tx) error {
	var statements string
	err := tx.QueryRow(`SELECT coalesce(group_concat('DROP INDEX ' || name, ';'), '') FROM sqlite_master
		WHERE type = 'index' AND tbl_name = 'executions_visibility' AND sql IS NOT NULL
		AND name NOT IN ('` + strings.Join(usedIndexes, "', '") + `')`).Scan(&statements)
	if err != nil {
		return err
	}
	_, err = tx.Exec(statements)
	return err
}
