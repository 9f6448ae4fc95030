package problems

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// Problem is one labelled problem, a line of a data set.
type Problem struct {
	Context string `json:"context"`
	Target  string `json:"target"`
}

// WriteJSONL writes the problems as JSON, one a line.
func WriteJSONL(w io.Writer, problems []Problem) error {
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	for i, p := range problems {
		if err := enc.Encode(p); err != nil {
			return fmt.Errorf("writing problem %d: %w", i+1, err)
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("writing problems: %w", err)
	}
	return nil
}
