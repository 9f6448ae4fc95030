package server

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"

	"acescope/engine/ace"
)

// retention is how long a closed run keeps its history: ten years, so that runs stay
// until somebody deletes them. The server's default for a new namespace is one day.
const retention = 3650 * 24 * time.Hour

// createDatabase makes the tables, all or none, and the namespace with its search
// attributes. On a database that has them it does nothing.
func createDatabase(dir string, cfg *config.SQL) error {
	path := filepath.Join(dir, databaseFile)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // SQLite would make it 0644
	if err != nil {
		return dirError(dir, err)
	}
	if err := file.Close(); err != nil {
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

// tables runs the schema's statements in a transaction. The rest of the interface is
// not called by SetupSchemaOnDB.
type tables struct {
	sqlplugin.AdminDB
	tx *sql.Tx
}

func (t tables) Exec(stmt string, args ...any) error {
	_, err := t.tx.Exec(stmt, args...)
	return err
}

func createTables(cfg *config.SQL) error {
	db, err := sql.Open("sqlite", "file:"+cfg.DatabaseName+"?mode=rwc&_pragma=journal_mode(wal)&_pragma=busy_timeout(5000)")
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
	if err := tx.QueryRow("SELECT count(*) FROM sqlite_master WHERE name = 'executions'").Scan(&n); err != nil {
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
	attributes := map[string]enumspb.IndexedValueType{}
	for _, name := range ace.SearchAttributes() {
		attributes[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	namespace, err := sqliteschema.NewNamespaceConfig(clusterName, ace.DefaultNamespace, false, attributes)
	if err != nil {
		return err
	}
	namespace.Detail.Info.Description = "acescope: runs of agent-learning loops"
	namespace.Detail.Config.Retention = durationpb.New(retention)
	return sqliteschema.CreateNamespaces(cfg, namespace)
}

// Result codes of SQLite, https://www.sqlite.org/rescode.html.
var databaseFaults = map[int]string{
	8:  "the database is read-only",
	10: "reading or writing the disk failed",
	11: "the database is damaged",
	13: "no space left",
	14: "the database cannot be opened",
	26: "the database file holds something else",
}

func databaseError(dir string, err error) error {
	var coded interface{ Code() int }
	if errors.As(err, &coded) {
		if why := databaseFaults[coded.Code()&0xff]; why != "" {
			return failf(ErrDataDir, err, "data directory %s: %s (%s); mend that or choose another with --data-dir", dir, why, databaseFile)
		}
	}
	return failf(ErrDataDir, err, "data directory %s: %s: %v; mend that or choose another with --data-dir", dir, databaseFile, err)
}
