package transcript

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/tidwall/gjson"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/price"
)

// Meter measures a part of a session: the lines of its transcript and of those of its subagents
// from a time on. It reads each line once, and is not safe for concurrent use.
type Meter struct {
	path   string
	from   time.Time
	prices *price.Prices
	until  time.Time
	files  map[string]*meteredFile // by path
}

type meteredFile struct {
	reader *Reader
	fold   *Fold
	at     time.Time // of the line
}

// NewMeter measures the session with a transcript from a time on.
func NewMeter(path string, from time.Time, prices *price.Prices) *Meter {
	return &Meter{path: path, from: from, prices: prices, files: map[string]*meteredFile{}}
}

// Read reads up to the first line after until. It returns the model of the session, and its usage
// with that of its subagents. If result is set, it is called with each new result of a tool call.
// Missing files have no lines.
func (m *Meter) Read(ctx context.Context, until time.Time, result func(agentcli.Tool)) (string, Totals,
	error) {
	m.until = until
	var sum Totals
	for _, path := range append(AgentPaths(m.path), m.path) {
		f := m.files[path]
		if f == nil {
			f = &meteredFile{reader: NewReader(path), fold: NewFold(m.prices)}
			f.reader.Until = func(raw []byte) bool {
				f.at, _ = time.Parse(time.RFC3339Nano, gjson.GetBytes(raw, "timestamp").String())
				return f.at.After(m.until)
			}
			m.files[path] = f
		}
		restart := func() { f.fold = NewFold(m.prices) }
		_, err := f.reader.Read(ctx, 0, restart, func(raw []byte, _ int64) { m.add(f, raw, result) })
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", sum, err
		}
		sum = sum.Add(f.fold.s.Totals)
	}
	return m.files[m.path].fold.s.Model, sum, nil
}

func (m *Meter) add(f *meteredFile, raw []byte, result func(agentcli.Tool)) {
	if f.at.Before(m.from) && !f.at.IsZero() {
		return
	}
	f.fold.Add(raw)
	if result == nil || !bytes.Contains(raw, []byte("tool_result")) {
		return
	}
	for _, e := range Events(raw) {
		if e.Kind == agentcli.KindToolResult {
			result(*e.Tool)
		}
	}
}
