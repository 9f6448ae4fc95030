package cli

import (
	"errors"
	"io"
	"os"
)

// ReadFile reads a file, or standard input for "-".
func ReadFile(path string, limit int64) ([]byte, error) {
	in := io.Reader(os.Stdin)
	if path != "-" {
		file, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil, &ExitError{ExitNotFound, err}
		}
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = UsageError("%s: longer than %d bytes", path, limit)
	}
	return data, err
}
