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

	"acescope/engine/agentcli"
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
	megabytes := min(b.size.logMB, 512)
	for _, cli := range agentcli.CLIs() {
		file := filepath.Join(dir, string(cli)+".jsonl")
		size, err := b.repeatStreams(file, cli, int64(megabytes)<<20)
		if err != nil {
			return err
		}
		rate := row{section: "stream", what: fmt.Sprintf("%s: %d MB of its output to events, for a second of a processor", cli, size>>20), unit: "MB/s", target: above(200)}
		heap := row{section: "stream", what: string(cli) + ": heap meanwhile, at most", unit: "MB", target: below(32)}
		for range b.size.runs {
			for _, who := range []struct {
				variant  string
				rate, heap *series
			}{{ours, &rate.ours, &heap.ours}, {decoder, &rate.peer, &heap.peer}} {
				s := spec{Kind: kindStream, Variant: who.variant, Dir: file, Name: string(cli), Profile: b.profile}
				if err := ask(ctx, s, func(t streamTimes) error {
					*who.rate, *who.heap = append(*who.rate, float64(size)/1e6/t.CPU), append(*who.heap, t.HeapMB)
					return nil
				}); err != nil {
					return err
				}
			}
		}
		if err := os.Remove(file); err != nil {
			return err
		}
		b.report.add(rate, heap)
	}
	return nil
}

// repeatStreams writes the recorded streams of a CLI again and again.
func (b *bench) repeatStreams(to string, cli agentcli.CLI, size int64) (written int64, err error) {
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
	f, err := os.Create(to)
	if err != nil {
		return 0, err
	}
	for err == nil && written < size {
		n := 0
		n, err = f.Write(all)
		written += int64(n)
	}
	return written, errors.Join(err, f.Close())
}

// reading is the child.
func reading(s spec) error {
	f, err := os.Open(s.Dir)
	if err != nil {
		return err
	}
	defer f.Close()
	end, err := profile(s, "stream-"+s.Name)
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
