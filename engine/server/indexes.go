package server

import "database/sql"

// usedIndexes are the indexes of the visibility table that acescope's queries, and
// Temporal's own, go by: the list's order, ids, type, status, times, parents, and the
// nine search attributes. The schema has 41 more, for attributes that this namespace
// does not have; each is written with every start, change and close of a run, which more
// than doubles the cost of that. A query on such a column still works: it reads the table.
// That is so too of the attributes that an older database was given later.
var usedIndexes = map[string]bool{
	"default_idx": true, "by_workflow_id": true, "by_workflow_type": true, "by_status": true, "by_execution_time": true,
	"by_parent_workflow_id": true, "by_root_workflow_id": true, "by_temporal_namespace_division": true,
	"by_keyword_01": true, "by_keyword_02": true, "by_keyword_03": true, "by_keyword_04": true, "by_keyword_05": true,
	"by_keyword_06": true, "by_keyword_07": true, "by_keyword_08": true, "by_keyword_09": true,
}

// dropUnusedIndexes takes the others out of a new database.
func dropUnusedIndexes(tx *sql.Tx) error {
	names, err := unusedIndexes(tx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := tx.Exec(`DROP INDEX "` + name + `"`); err != nil {
			return err
		}
	}
	return nil
}

func unusedIndexes(tx *sql.Tx) (names []string, err error) {
	rows, err := tx.Query(`SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'executions_visibility' AND sql IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		if !usedIndexes[name] {
			names = append(names, name)
		}
	}
	return names, rows.Err()
}
