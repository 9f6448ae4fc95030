package observe

import (
	"context"
	"maps"
	"slices"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/transcript"
)

// Bounds of measurements.
const (
	maxMeters       = 64 // transcripts of which a decoder keeps how far it has read them
	maxOpenCalls    = 200
	measureInterval = 30 * time.Second // within a turn
	measureTimeout  = 5 * time.Second
)

// measure returns the events that the transcript of a session adds to those of its hooks: the
// usage of its run so far, when a turn or the session ends or after measureInterval, and the
// results of the calls whose hook did not report one, such as denied calls.
func (d *hookDecoder) measure(h hookCall, s *hookSession) (events []ace.ToolEvent) {
	path := h.text("transcript_path")
	_, agent, ok := transcript.SessionOf(path)
	ends := h.name == "Stop" || h.name == "StopFailure" || h.name == "SessionEnd"
	since := time.Duration(h.rec.Micros-s.Measured) * time.Microsecond
	if !ok || agent != "" || !ends && since < measureInterval {
		return nil
	}
	s.Measured = h.rec.Micros
	from := time.UnixMicro(s.From).UTC()
	ctx, cancel := context.WithTimeout(context.Background(), measureTimeout)
	defer cancel()
	model, totals, err := d.meter(s, path, from).Read(ctx, h.at, func(t agentcli.Tool) {
		if e, ok := s.answer(t); ok {
			e.EventID, e.Seq = h.rec.ID+"."+t.ID, h.rec.Micros-1 // a result that the hook reports counts as newer
			e.Error = string(d.redact.apply([]byte(e.Error)))
			events = append(events, e)
		}
	})
	if h.name == "SessionEnd" {
		delete(d.meters, s.Start)
	}
	if err != nil || model == "" {
		return events
	}
	use := ace.PhaseUsage{Model: model, Usage: totals.Usage(), StartedAt: from, EndedAt: h.at}
	return append(events, ace.ToolEvent{EventID: h.rec.ID + ".usage", Kind: ace.KindUsage,
		Name: string(ace.PhaseSkills), Result: mustJSON(use)})
}

func (d *hookDecoder) meter(s *hookSession, path string, from time.Time) *transcript.Meter {
	m := d.meters[s.Start]
	if m == nil {
		if len(d.meters) >= maxMeters {
			clear(d.meters) // new meters read the transcripts again from the start
		}
		m = transcript.NewMeter(path, from, d.prices)
		d.meters[s.Start] = m
	}
	return m
}

// began records a call without a result.
func (s *hookSession) began(e ace.ToolEvent, h hookCall) {
	if s.Calls == nil {
		s.Calls = map[string]openCall{}
	}
	if e.CallID != "" && len(s.Calls) < maxOpenCalls {
		s.Calls[e.CallID] = openCall{e.Name, h.rec.Micros}
	}
}

// ended removes a call that has a result and returns its duration in milliseconds: the reported
// one, otherwise the time since the call.
func (s *hookSession) ended(id string, h hookCall) float64 {
	call, known := s.Calls[id]
	delete(s.Calls, id)
	if took := h.json.Get("duration_ms"); took.Exists() || !known {
		return took.Float()
	}
	return float64(max(h.rec.Micros-call.At, 0)) / 1000
}

// answer returns the event of a result in the transcript, if the call has no result yet.
func (s *hookSession) answer(t agentcli.Tool) (e ace.ToolEvent, ok bool) {
	call, ok := s.Calls[t.ID]
	if !ok {
		return e, false
	}
	delete(s.Calls, t.ID)
	e = ace.ToolEvent{Kind: ace.KindToolResult, CallID: t.ID, Name: call.Name, OK: &t.OK,
		DurationMS: float64(t.Duration) / float64(time.Millisecond)}
	if !t.OK {
		e.Error = t.ResultText()
	}
	if t.Denied {
		accepted := false
		e.Kind, e.OK, e.Accepted = ace.KindPermission, nil, &accepted
	}
	return e, true
}

// unanswered returns the results of the calls that have none when the session ends.
func (s *hookSession) unanswered(h hookCall) (events []ace.ToolEvent) {
	no := false
	for _, id := range slices.Sorted(maps.Keys(s.Calls)) {
		events = append(events, ace.ToolEvent{EventID: h.rec.ID + "." + id, Kind: ace.KindToolResult,
			CallID: id,
			Name:   s.Calls[id].Name, OK: &no, Error: "the session ended without a result"})
	}
	s.Calls = nil
	return events
}
