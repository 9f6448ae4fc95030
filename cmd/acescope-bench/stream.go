package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"acescope/engine/agents/agentcli"
)

// streamTimes is what a child measured of reading a stream.
type streamTimes struct {
	CPU    float64 `json:"cpu_seconds"`
	Events int64   `json:"events"`
	HeapMB float64 `json:"heap_mb"` // the most that the heap took of the system
}

// decoder is the variant that reads with a bare json.Decoder.
const decoder = "decoder"

// stream measures how fast the output of agents becomes events, in bytes for each second of
// a processor, against a bare json.Decoder.
func (b *bench) stream(ctx context.Context) error {
	dir, remove, err := b.fresh("stream")
	if err != nil {
		return err
	}
	defer remove()
	whole := min(b.size.logMB, 512) << 20
	for _, cli := range agentcli.CLIs() {
		file := filepath.Join(dir, string(cli)+".jsonl")
		once, err := b.gather(file, cli)
		if err != nil {
			return err
		}
		rounds := whole/once + 1
		size := rounds * once
		rate := row{section: "stream", what: fmt.Sprintf("%s: %d MB of its output to events, for a second of a processor", cli, size>>20), unit: "MB/s", target: above(200)}
		heap := row{section: "stream", what: string(cli) + ": heap meanwhile, at most", unit: "MB", target: below(32)}
		for range b.size.runs {
			for _, who := range []struct {
				variant    string
				rate, heap *series
			}{{ours, &rate.ours, &heap.ours}, {decoder, &rate.peer, &heap.peer}} {
				s := spec{Kind: kindStream, Variant: who.variant, Dir: file, Name: string(cli), Tasks: rounds, Profile: b.profile}
				if err := ask(ctx, s, func(t streamTimes) error {
					*who.rate, *who.heap = append(*who.rate, float64(size)/1e6/t.CPU), append(*who.heap, t.HeapMB)
					return nil
				}); err != nil {
					return err
				}
			}
		}
		b.report.add(rate, heap)
	}
	return nil
}

// gather writes the recorded streams of a CLI into one file, and is its size.
func (b *bench) gather(to string, cli agentcli.CLI) (size int, err error) {
	files, err := filepath.Glob(filepath.Join(b.streams, string(cli), "*.jsonl"))
	if err != nil {
		return 0, err
	}
	var all []byte
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		if line, _, _ := bytes.Cut(data, []byte("\n")); json.Valid(line) && bytes.HasPrefix(line, []byte("{")) && !strings.HasPrefix(filepath.Base(file), "hooks-") {
			all = append(append(all, bytes.TrimSpace(data)...), '\n')
		}
	}
	if len(all) == 0 {
		return 0, fmt.Errorf("there are no streams of %s in %s; -streams says where they are", cli, b.streams)
	}
	return len(all), os.WriteFile(to, all, 0o600)
}

// again is a stream that comes again and again.
type again struct {
	stream []byte
	rest   []byte
	rounds int // to come
}

func (a *again) Read(p []byte) (int, error) {
	if len(a.rest) == 0 {
		if a.rounds--; a.rounds < 0 {
			return 0, io.EOF
		}
		a.rest = a.stream
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// reading is the child.
func reading(s spec) error {
	data, err := os.ReadFile(s.Dir)
	if err != nil {
		return err
	}
	f := &again{stream: data, rounds: s.Tasks}
	end, err := profile(s, "stream-"+s.Name+"-"+s.Variant)
	if err != nil {
		return err
	}
	var t streamTimes
	cpu := ownCPU()
	if s.Variant == decoder {
		t.Events, err = decode(f)
	} else {
		err = agentcli.NewReader(f, agentcli.CLI(s.Name)).All(func(agentcli.Event) error {
			t.Events++
			return nil
		})
	}
	end()
	if err != nil {
		return err
	}
	t.CPU = (ownCPU() - cpu).Seconds()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.HeapMB = float64(m.HeapSys-m.HeapReleased) / (1 << 20)
	return tell(t)
}

// decode reads values until the end. Lines that are none, which agents print too, are what
// it cannot go on after: it takes line by line.
func decode(r io.Reader) (n int64, err error) {
	lines := agentcli.NewLineReader(r)
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		var v map[string]any
		if json.NewDecoder(bytes.NewReader(line.Bytes)).Decode(&v) == nil {
			n++
		}
	}
}
