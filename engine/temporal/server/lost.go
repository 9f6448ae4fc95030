package server

import (
	"fmt"
	"os"
	"path/filepath"
)

// Lost returns why a data directory no longer has the data of the host that e describes, or "".
func (e Endpoint) Lost(dir string) string {
	if _, err := os.Stat(filepath.Join(dir, databaseFile)); err != nil {
		return fmt.Sprintf("%s is missing; what process %d records is lost when it ends", databaseFile, e.PID)
	}
	now, ok := Lookup(dir)
	switch {
	case !ok:
		return fmt.Sprintf("%s of process %d is missing; no other process finds the server", endpointFile,
			e.PID)
	case now.PID != e.PID || now.Address != e.Address:
		return fmt.Sprintf("process %d hosts it now; what process %d records is lost when it ends", now.PID,
			e.PID)
	}
	return ""
}
