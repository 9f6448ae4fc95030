package main

import (
	"context"
	"fmt"
)

// What the frame section does to a console.
const (
	frameRuns   = 10_000 // in the list
	frameEvents = 1000   // tool events a second
	frameKeys   = 100    // keystrokes a second
	frameWidth  = 200
	frameHeight = 50
)

// frameTimes is what a child measured of a console under keys and events. Work is what
// one message costs from its arrival to the drawn frame, in milliseconds.
type frameTimes struct {
	KeyP50  float64 `json:"key_p50_ms"`
	KeyP99  float64 `json:"key_p99_ms"`
	DataP50 float64 `json:"data_p50_ms"` // of a snapshot
	DataP99 float64 `json:"data_p99_ms"`
	Sent    int     `json:"sent"`    // keystrokes
	Handled int     `json:"handled"` // of them
	Events  int     `json:"events"`
	Seconds float64 `json:"seconds"`
	Frames  int     `json:"frames"` // written to the terminal
	Bytes   int64   `json:"bytes"`
	CPU     float64 `json:"cpu_pct"` // of one core
}

// frame measures the console while runs go on and somebody types, beside the table of
// Bubbles with the same rows, changes and keys.
func (b *bench) frame(ctx context.Context) error {
	key, data := row{section: "frame", unit: "ms", target: below(1000.0 / 60)}, row{section: "frame", unit: "ms"}
	ratio := row{section: "frame", what: "the same, p50", unit: "ms", target: atMost(1.0 / 3)}
	cpu := row{section: "frame", what: "CPU all in all", unit: "% of a core"}
	size := row{section: "frame", what: "to the terminal, a frame", unit: "bytes"}
	lost := row{section: "frame", what: "keystrokes lost", unit: "of " + number(float64(frameKeys*b.size.frameSecs)), target: below(0)}
	key.what = fmt.Sprintf("key to drawn frame, %d runs, %d events/s, p99", frameRuns, frameEvents)
	data.what = "snapshot to drawn frame, p99"
	for range b.size.runs {
		for _, variant := range []string{ours, bare} {
			var t frameTimes
			err := ask(ctx, spec{Kind: kindFrame, Variant: variant, Seconds: b.size.frameSecs, Profile: b.profile}, func(got frameTimes) error { t = got; return nil })
			if err != nil {
				return err
			}
			for _, f := range []struct {
				row   *row
				value float64
			}{{&key, t.KeyP99}, {&ratio, t.KeyP50}, {&data, t.DataP99}, {&cpu, t.CPU}, {&size, float64(t.Bytes) / float64(max(t.Frames, 1))}, {&lost, float64(t.Sent - t.Handled)}} {
				if variant == ours {
					f.row.ours = append(f.row.ours, f.value)
				} else {
					f.row.peer = append(f.row.peer, f.value)
				}
			}
		}
	}
	b.report.add(key, ratio, data, cpu, size, lost)
	return nil
}
