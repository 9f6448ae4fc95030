package agentrun

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
	"acescope/engine/price"
	"acescope/engine/transcript"
)

// past is what earlier attempts of a call left behind.
type past struct {
	end    *End   // of a call that was found done
	resume string // the session to go on with, "" where one begins
	begun  bool   // the agent may have the instruction already
	before int64  // bytes of the session's transcript before the call
}

// past looks into the logs of earlier attempts, and into the agent's transcript.
func (x *run) past(ctx context.Context) (past, error) {
	p := past{resume: x.c.Resume, before: -1}
	if x.c.Log.Attempt > 1 {
		if err := x.earlier(ctx, &p); err != nil || p.end != nil {
			return p, err
		}
	}
	path := x.transcript()
	if path == "" {
		return p, nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	if x.c.Log.Attempt <= 1 {
		p.before = info.Size()
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

// found is the end that a log tells.
func (x *run) found(l Log, rel string, ref ace.Ref, sealed bool) *End {
	e := x.endOf(l.Outcome)
	e.Recovered, e.LogPath, e.Events, e.LogComplete = true, rel, l.Events, l.End != nil
	if sealed {
		e.Log = &ref
	}
	if f := l.End; f != nil {
		e.Success, e.ExitClass, e.Error, e.Usage, e.CostUSD, e.DurationMS = f.Success, f.ExitClass, f.Error, f.Usage, f.CostUSD, f.DurationMS
		e.say()
	}
	x.keepMeter(e, agentcli.Meter{Cost: sumCost(l.Outcome), Usage: sumUsage(l.Outcome)})
	return e
}

// transcript is where the agent's transcript of the session is, "" where it is not known.
func (x *run) transcript() string {
	if x.c.CLI != agentcli.Claude || x.session == "" {
		return ""
	}
	dir := ""
	for _, v := range x.r.environ(x.adapter, agentcli.Command{}) {
		if name, value, _ := strings.Cut(v, "="); name == "CLAUDE_CONFIG_DIR" {
			dir = value
		}
	}
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".claude")
	}
	path, err := transcript.Find(dir, x.session)
	if err != nil {
		return ""
	}
	return path
}

// remembered is what the agent's transcript tells of the call, after its first p.before
// bytes.
func (x *run) remembered(ctx context.Context, path string, p *past) error {
	p.resume = x.session
	r := transcript.NewReader(path, nil)
	if p.before > 0 {
		r.SkipTo(p.before - 1) // which is the end of a line
	}
	fold := transcript.NewFold(price.Shipped())
	last, failed := "", false
	progress, err := r.Read(ctx, 0, nil, func(raw []byte, _ int64) {
		fold.Add(raw)
		for _, e := range transcript.Events(raw) {
			switch e.Kind {
			case agentcli.KindText:
				last, failed = e.Text, false
			case agentcli.KindError:
				failed = true
			}
		}
	})
	if err != nil {
		return err
	}
	s := fold.Summary()
	p.begun = s.Turns > 0
	if !p.begun || s.Unfinished || failed || last == "" || progress.Oversized > 0 {
		return nil
	}
	x.r.log.Info("the call was found done in the agent's transcript", "workflow", x.c.Log.WorkflowID, "run", x.c.Log.RunID, "session", x.session)
	t := s.Totals.Tokens
	p.end = x.endOf(agentcli.Outcome{Class: agentcli.ClassOK, OK: true, Text: last, SessionID: x.session,
		Usage: ace.Usage{InputTokens: t.Input + t.CacheWrite(), OutputTokens: t.Output, CacheReadTokens: t.CacheRead, CostUSD: s.Totals.CostUSD}})
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
