package agentrun

import (
	"context"
	"errors"
	"os"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
)

// past is what earlier attempts of a call left behind, and the session's earlier calls.
type past struct {
	end    *End           // of a call that was found done
	resume string         // the session to go on with, "" where one begins
	begun  bool           // the agent may have the instruction already
	before int64          // bytes of the session's transcript before the call; -1 where that is not known
	meter  agentcli.Meter // the sums that the agent's process counts on from
	used   ace.Usage      // by earlier attempts
	told   bool           // the log of the last of them has all of that
}

// past looks into the logs of earlier attempts, and into the agent's transcript.
func (x *run) past(ctx context.Context) (past, error) {
	p := past{resume: x.c.Resume, before: -1}
	if x.c.Resume != "" {
		p.meter = x.r.meter(x.c.Resume)
	}
	if x.c.Log.Attempt > 1 {
		if err := x.earlier(ctx, &p); err != nil || p.end != nil {
			return p, err
		}
	}
	path := x.transcript()
	if path == "" {
		return p, nil
	}
	return p, x.remembered(ctx, path, &p)
}

// earlier reads the logs of earlier attempts, in their order.
func (x *run) earlier(ctx context.Context, p *past) error {
	digest := instructionOf(x.c.Instruction).SHA256
	for n := int32(1); n < x.c.Log.Attempt; n++ {
		name := x.c.Log
		name.Attempt = n
		paths, err := x.r.logs.Existing(name)
		if err != nil {
			return err
		}
		for _, rel := range paths {
			l, err := readLogFile(x.r.logs.Path(rel), nil)
			if errors.Is(err, ErrNoLog) || err == nil && (l.Header.ID != x.c.ID || l.Header.Instruction.SHA256 != digest) {
				continue
			}
			if err != nil {
				return err
			}
			if p.before < 0 {
				p.before = l.Header.Before
			}
			ref, sealErr := x.r.logs.Seal(ctx, rel)
			if sealErr != nil {
				x.r.log.Warn("the log of an earlier attempt was not sealed", "log", rel, "error", sealErr)
			}
			if l.final() {
				p.end = x.found(l, rel, ref, sealErr == nil)
				return nil
			}
			p.meter, p.used, p.told = l.Meter, l.used(), l.told()
			if !p.told && x.c.CLI == agentcli.Claude && l.Events > 0 {
				p.used.Unpriced = true // unless its transcript tells
			}
			if id := l.Outcome.SessionID; id != "" && agentcli.ValidSessionID(id) && !x.adapter.Features().SessionID && x.adapter.Features().Resume {
				p.resume, p.begun = id, true
			}
		}
	}
	return nil
}

// final tells whether a log holds an end that another attempt would not mend.
func (l Log) final() bool {
	switch {
	case l.End != nil && (l.End.Success || l.Ended):
		return !l.End.Retry
	case l.End != nil:
		return !l.End.Retry && agentcli.Class(l.End.ExitClass) != ClassCancelled
	}
	return l.Ended && !l.Outcome.Retry
}

// told tells whether a log has all that was used up to its end.
func (l Log) told() bool { return l.End != nil || l.Ended }

// used is what the call used, up to the log's end, as far as the log tells.
func (l Log) used() ace.Usage {
	if l.End != nil {
		return l.End.Usage
	}
	return l.Header.Used.Add(l.Outcome.Usage)
}

// found is the end that a log tells.
func (x *run) found(l Log, rel string, ref ace.Ref, sealed bool) *End {
	e := x.endOf(l.Outcome)
	e.Recovered, e.LogPath, e.Events, e.LogComplete = true, rel, l.Events, l.End != nil
	if sealed {
		e.Log = &ref
	}
	e.costs(l.used())
	if f := l.End; f != nil {
		e.Success, e.ExitClass, e.Error, e.DurationMS = f.Success, f.ExitClass, f.Error, f.DurationMS
		e.say()
	}
	x.keepMeter(e.SessionID, l.Meter)
	return e
}

// remembered takes what the agent's transcript tells.
func (x *run) remembered(ctx context.Context, path string, p *past) error {
	first := x.c.Log.Attempt <= 1
	// A log is begun before its process, so that a session that is gone on with has nothing of
	// a call without one.
	if p.before < 0 && (first || x.c.Resume != "") {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		p.before = info.Size()
	}
	m, err := remember(ctx, path, p.before)
	if err != nil {
		return err
	}
	p.meter = agentcli.Meter{Cost: m.Counted}
	if !p.told {
		p.used = m.Used
	}
	if first {
		return nil
	}
	p.resume, p.begun = x.session, m.Begun
	if !m.Done {
		return nil
	}
	x.r.log.Info("the call was found done in the agent's transcript", "workflow", x.c.Log.WorkflowID, "run", x.c.Log.RunID, "session", x.session)
	p.end = x.endOf(agentcli.Outcome{Class: agentcli.ClassOK, OK: true, Text: m.Text, SessionID: x.session, Usage: p.used})
	p.end.Recovered = true
	return x.lastLog(p.end)
}

// lastLog gives an end the log of the last attempt before this one, which it is not whole
// in.
func (x *run) lastLog(e *End) error {
	for n := x.c.Log.Attempt - 1; n > 0; n-- {
		name := x.c.Log
		name.Attempt = n
		paths, err := x.r.logs.Existing(name)
		if err != nil || len(paths) > 0 {
			if err == nil {
				e.LogPath = paths[len(paths)-1]
				if ref, sealErr := x.r.logs.Seal(context.Background(), e.LogPath); sealErr == nil {
					e.Log = &ref
				}
			}
			return err
		}
	}
	return nil
}
