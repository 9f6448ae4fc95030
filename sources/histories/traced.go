package histories

import (
	"cmp"
	"context"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/kind"
	"acescope/engine/temporal/history"
	"acescope/engine/trace"
	"acescope/engine/trace/adapter"
	"acescope/sources/runs"
)

// maxTraceEvents bounds the events that [ReadTrace] reads of a run.
const maxTraceEvents = 10_000

// maxSentence bounds the texts of a summary, in bytes.
const maxSentence = 160

// Traced is what the history of a run says of its agents, without their calls. Summary and Trace are nil if it
// says nothing.
type Traced struct {
	Summary *ace.Summary   `json:"summary,omitempty"`
	Trace   *trace.Summary `json:"trace,omitempty"`
	// Cut is the number of events that were read if the history has more, otherwise 0.
	Cut int64 `json:"cut,omitempty"`
	// Encoded reports whether the history has payloads that only a codec server can decode.
	Encoded bool `json:"-"`
}

// Set sets the trace and the summary of a run. A model that the run has stays.
func (t Traced) Set(r *runs.Run) {
	r.Trace, r.TraceEvents = t.Trace, t.Cut
	if t.Summary != nil {
		r.Summary = t.Summary
	}
	if t.Trace != nil {
		r.Model = cmp.Or(r.Model, t.Trace.Model)
	}
}

// LacksTrace reports whether only the history of a run says what its agents did: acescope's workflows and
// those that set a summary have it in the memo.
func LacksTrace(r runs.Run) bool { return r.Summary == nil && runs.TypeOf(r.Type) == runs.OtherType }

// AddTrace reads from the history of a run what its agents did, and sets the run's trace and summary if it
// says anything of them. See [LacksTrace].
func AddTrace(ctx context.Context, c client.Client, r *runs.Run) error {
	t, err := ReadTrace(ctx, c, r.ID())
	if err == nil {
		t.Set(r)
	}
	return err
}

// ReadTrace reads from the history of a run what its agents did.
func ReadTrace(ctx context.Context, c client.Client, id runs.ID) (Traced, error) {
	var u ace.Usage // of coding agents that the run called
	var f adapter.Folder
	var encoded encodedFolder
	var last *historypb.HistoryEvent
	var read Traced
	iter := c.GetWorkflowHistory(ctx, id.WorkflowID, id.RunID, false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for n := int64(0); iter.HasNext(); n++ {
		if n == maxTraceEvents {
			read.Cut = n
			break
		}
		e, err := iter.Next()
		if err != nil {
			return Traced{}, err
		}
		f.Apply(e)
		encoded.apply(e)
		u = u.Add(agentUsage(e))
		last = e
	}
	// A payload that is stored outside the history stays unreadable.
	read.Encoded = slices.ContainsFunc(encoded.list, func(p EncodedPayload) bool { return p.Storage == "" })
	t := f.Trace()
	u = u.Add(UsageOf(t.Sum))
	if u.Unpriced = u.Unpriced || u != (ace.Usage{}) && read.Cut > 0; t.Empty() && u == (ace.Usage{}) {
		return Traced{Encoded: read.Encoded}, nil
	}
	read.Summary = &ace.Summary{Usage: u, Skills: t.Tools, SkillsOK: t.OK,
		Subject: strings.Clone(ace.OneLine(t.Prompt(), maxSentence))}
	if _, closed := history.CloseStatus(last.GetEventType()); closed {
		result, failure := history.Outcome(last)
		if failure == nil {
			read.Summary.Answer = strings.Clone(ace.OneLine(kind.Plain(history.JSON(result)), maxSentence))
		} else {
			read.Summary.Cause = strings.Clone(ace.OneLine(history.FailureOf(failure).Message, maxSentence))
		}
	}
	if !t.Empty() {
		read.Trace = detached(t.Summary)
	}
	return read, nil
}

// detached returns a copy of a summary that keeps no payload in memory.
func detached(s trace.Summary) *trace.Summary {
	s.Framework, s.Agent, s.Model = strings.Clone(s.Framework), strings.Clone(s.Agent), strings.Clone(s.Model)
	parts := make([]trace.Part, len(s.Parts))
	for i, p := range s.Parts {
		parts[i] = trace.Part{Framework: strings.Clone(p.Framework), Agent: strings.Clone(p.Agent),
			Provider: strings.Clone(p.Provider), Model: strings.Clone(p.Model), Sum: p.Sum}
	}
	s.Parts = parts
	return &s
}

// UsageOf returns the usage of requests to models. It lacks a price if it lacks a figure of any request.
func UsageOf(s trace.Sum) ace.Usage {
	return ace.Usage{InputTokens: s.Input + s.CacheWrite, CacheReadTokens: s.CacheRead,
		OutputTokens: s.Output, CostUSD: s.Cost, Unpriced: s.Unpriced > 0}
}
