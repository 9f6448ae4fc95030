package durable

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
)

// LoadCache reads the value that [SaveCache] wrote to a file: compressed JSON, whose checksum detects damage.
// It does not read more than limit bytes of JSON. A cache that cannot be read is to be replaced.
func LoadCache(path string, limit int64, value any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	content, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(content, limit))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, value)
}

// SaveCache writes a value to a file that only the user can read, and makes its directory.
func SaveCache(path string, value any) error {
	var out bytes.Buffer
	content := gzip.NewWriter(&out)
	if err := json.NewEncoder(content).Encode(value); err != nil {
		return err
	}
	if err := content.Close(); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return WriteFile(path, dir, out.Bytes(), false)
}
