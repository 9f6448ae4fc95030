package agentrun

import (
	"cmp"
	"context"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
	"acescope/engine/price"
	"acescope/engine/transcript"
)

// memory is what the agent's own transcript tells of a call.
type memory struct {
	Begun   bool // the agent has the instruction
	Done    bool // and has answered, for certain
	Text    string
	Used    ace.Usage // by all attempts
	Counted float64   // the session's cost that the agent's next process counts on from
}

// transcript is where the agent's transcript of the session is, "" where it is not known.
func (x *run) transcript() string {
	id := cmp.Or(x.c.Resume, x.minted)
	dir := transcript.ConfigDir(x.r.environ(x.adapter, agentcli.Command{}))
	if x.c.CLI != agentcli.Claude || !agentcli.ValidSessionID(id) || dir == "" {
		return ""
	}
	path, err := transcript.Find(dir, id)
	if err != nil {
		x.r.log.Warn("the agent's transcript is not known", "session", id, "error", err)
	}
	return path
}

// remember reads a transcript. The call's part of it comes after its first before bytes. No
// process may be writing there.
func remember(ctx context.Context, path string, before int64) (m memory, err error) {
	spent := transcript.NewSpent(price.Shipped(), 0)
	failed := false
	progress, err := transcript.NewReader(path, nil).Read(ctx, 0, nil, func(raw []byte, at int64) {
		if spent.Count(raw) || at < before {
			return
		}
		events := transcript.Events(raw)
		if transcript.Filler(events) {
			return
		}
		spent.Add(raw)
		for _, e := range events {
			switch {
			case e.ParentID != "": // a subagent's
			case e.Kind == agentcli.KindUser:
				m.Text, failed = "", false
			case e.Kind == agentcli.KindText:
				m.Text, failed = e.Text, false
			case e.Kind == agentcli.KindError:
				failed = true
			}
		}
	})
	m.Begun = spent.Summary().Turns > 0
	m.Done = m.Begun && spent.Ended() && !failed && m.Text != "" && progress.Oversized == 0
	m.Used, m.Counted = spent.Usage(), spent.Counted
	return m, err
}

// spent is what a process has used that is over, with what was used before it. Of one that
// ended without a result only the transcript tells.
func (x *run) spent(ctx context.Context, own ace.Usage, p past) ace.Usage {
	all := own.Add(p.used)
	if x.judge.Ended() || x.c.CLI != agentcli.Claude {
		return all
	}
	path := x.transcript()
	if path == "" {
		all.Unpriced = all.Unpriced || x.events > 0 // it began, and nobody knows where it notes that
		return all
	}
	m, err := remember(context.WithoutCancel(ctx), path, max(p.before, 0))
	if err != nil {
		x.r.log.Warn("what the call cost is not known", "session", x.session, "error", err)
		all.Unpriced = true
		return all
	}
	return m.Used
}
