package flow

import (
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/history"
	"acescope/engine/session"
)

// signals are those that a session hears and those that it sends.
type signals struct {
	deliver, withdraw workflow.ReceiveChannel
	heard             int
	sent              []workflow.Future // reports of which is not known whether they arrived
}

func (s *signals) channels(ctx workflow.Context) {
	s.deliver = workflow.GetSignalChannel(ctx, session.SignalDeliver)
	s.withdraw = workflow.GetSignalChannel(ctx, session.SignalWithdraw)
}

// listen has signals, and what became of reports, applied when nobody else does.
func (t *talk) listen(ctx workflow.Context) {
	calm, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	for {
		if err := workflow.Await(calm, func() bool { return t.signals.deliver.Len()+t.signals.withdraw.Len() > 0 || t.arrived() }); err != nil {
			return
		}
		t.catchUp(calm)
	}
}

// hear applies the signals that have come. In the history those of both names may be mixed:
// the fold does not mind.
func (t *talk) hear() {
	for _, c := range []struct {
		name string
		from workflow.ReceiveChannel
	}{{session.SignalDeliver, t.signals.deliver}, {session.SignalWithdraw, t.signals.withdraw}} {
		for {
			var raw converter.RawValue // of a signal without an argument nothing is set
			if !c.from.ReceiveAsync(&raw) {
				break
			}
			t.signals.heard++
			if f, ok := session.Signalled(c.name, history.JSONOf(raw.Payload())); ok {
				t.apply(f)
			}
		}
	}
}

// report sends the reports of messages, each once: that it is on its way is a fact of the
// history, so that another worker, or the next run of the session, does not send it again.
func (t *talk) report(ctx workflow.Context) {
	calm, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	for {
		if err := workflow.Await(calm, t.owes); err != nil {
			return
		}
		t.catchUp(calm)
		for r, ok := t.state.NextReport(); ok; r, ok = t.state.NextReport() {
			t.apply(session.Reported(r.Report.MessageID))
			t.signals.sent = append(t.signals.sent, workflow.SignalExternalWorkflow(calm, r.To, "", session.SignalReport, r.Report))
		}
	}
}

func (t *talk) owes() bool {
	_, ok := t.state.NextReport()
	return ok
}

// toldAll tells whether all reports have arrived: a signal that is on its way when a workflow
// closes is lost.
func (t *talk) toldAll() bool { return len(t.signals.sent) == 0 && !t.owes() }

// arrived tells whether it is known of a report what became of it.
func (t *talk) arrived() bool {
	for _, f := range t.signals.sent {
		if f.IsReady() {
			return true
		}
	}
	return false
}

// arrivals applies what became of reports. A receiver that is gone is noted.
func (t *talk) arrivals(ctx workflow.Context) {
	left := t.signals.sent[:0:0]
	for _, f := range t.signals.sent {
		if !f.IsReady() {
			left = append(left, f)
			continue
		}
		if err := f.Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Warn("nobody heard the report of a message", "error", err)
			t.apply(session.Unheard())
		}
	}
	t.signals.sent = left
}
