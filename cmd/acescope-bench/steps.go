package main

import (
	"acescope/engine/stepper"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"

	"acescope/engine/temporal/historyfile"
	"acescope/sources/historytest"
)

// stepEvents is how long the history is that is stepped through.
const stepEvents = 50_000

// step measures the time machine: reading a long history from a file beside the bare
// decoding of the same JSON, and going to any of its events.
func (b *bench) step(ctx context.Context) error {
	events := historytest.Long(stepEvents).Events
	var file bytes.Buffer
	if err := historyfile.Write(&file, events); err != nil {
		return err
	}
	load := row{section: "step", what: fmt.Sprintf("read %d events", len(events)), unit: "s", target: atMost(1.5)}
	for range b.size.runs {
		begin := time.Now()
		h, err := historyfile.Read(bytes.NewReader(file.Bytes()))
		if err != nil || len(h) != 1 {
			return fmt.Errorf("read: %d histories, %w", len(h), err)
		}
		load.ours = append(load.ours, time.Since(begin).Seconds())
		begin = time.Now()
		if err := (temporalproto.CustomJSONUnmarshalOptions{DiscardUnknown: true}).Unmarshal(file.Bytes(), &historypb.History{}); err != nil {
			return err
		}
		load.peer = append(load.peer, time.Since(begin).Seconds())
	}
	fold := row{section: "step", what: "fold them and keep checkpoints", unit: "s"}
	any99 := row{section: "step", what: "to any event, p99", unit: "ms", target: below(5)}
	for range b.size.runs {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		begin := time.Now()
		s := stepper.New(events, stepper.Options{})
		fold.ours = append(fold.ours, time.Since(begin).Seconds())
		r, took := rand.New(rand.NewPCG(1, 2)), series{}
		for range 2000 {
			at := 1 + r.IntN(s.Len())
			begin := time.Now()
			s.Frame(at)
			took = append(took, time.Since(begin).Seconds()*1000)
		}
		any99.ours = append(any99.ours, took.percentile(99))
	}
	b.report.add(load, fold, any99)
	return nil
}
