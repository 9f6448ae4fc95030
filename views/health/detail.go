package health

import (
	"strconv"
	"time"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/system"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

type detail struct {
	from *health
	console.Reader
}

func (v *detail) Bindings() []tui.Binding     { return widget.Motions("detail", v) }
func (v *detail) Copy() (what, copied string) { return v.from.Copy() }

func (v *detail) Draw(now time.Time, focused bool) []string {
	v.from.arrange()
	c, ok := v.from.list.Current()
	if !ok {
		return v.Message(nil, "no check is selected")
	}
	return v.Show(string(c.Section)+"/"+c.Name, nil, now, focused, func(writer *widget.Writer) {
		writer.Labels = 14
		w := &checkWriter{writer}
		w.check(c)
		if s := v.from.arranged; s != nil {
			w.more(c, s)
		}
	})
}

// checkWriter writes a check and the data behind it.
type checkWriter struct{ *widget.Writer }

func (w *checkWriter) check(c system.Check) {
	m := checkMark(c.State, w.S)
	w.End(w.Line().Add(m.Ink, " "+m.Glyph+" "+m.Word).Add(w.S.Strong, "  "+text.Safe(c.Name, " ")))
	w.Prose("   ", w.S.Text, c.Text)
	if !c.At.IsZero() {
		w.Say(w.S.Muted, "   "+c.At.In(w.Loc).Format("2006-01-02 15:04:05")+", "+w.Ago(c.At))
	}
	if c.Advice != "" {
		w.Section("What to do", "press y to copy it")
		w.Prose("   ", w.S.Accent, c.Advice)
	}
}

func (w *checkWriter) more(c system.Check, s *system.System) {
	switch c.Section {
	case system.SectionWorkers:
		for _, q := range s.Queues {
			if q.Name+" "+q.Kind == c.Name {
				w.queue(q)
			}
		}
	case system.SectionCalls:
		w.calls(c, s.Calls)
	case system.SectionServer:
		w.server(s)
	case system.SectionProcess:
		w.process(s.Process)
	}
}

func (w *checkWriter) fact(label, value string) { w.Fact("  "+label, w.S.Text, value) }

func (w *checkWriter) queue(q system.Queue) {
	w.Section("Task queue", "")
	w.fact("name", q.Name)
	w.fact("tasks", q.Kind+" tasks")
	w.fact("waiting", ace.Number(q.Backlog)+" (approximately)")
	if q.Backlog > 0 {
		w.fact("oldest", widget.Milliseconds(q.OldestMS, w.S.Glyphs))
	}
	w.fact("rate", perSecond(q.In)+" in, "+perSecond(q.Out)+" out")
	w.Section("Pollers", ace.Count(len(q.Pollers), "worker"))
	for _, p := range q.Pollers {
		w.End(w.Line().Add(w.S.Success, "   "+w.S.Glyphs.Running+" ").Add(w.S.Text,
			text.Safe(p.Identity, " ")).
			Add(w.S.Muted, "  polled "+w.Ago(p.Last)))
	}
	if len(q.Pollers) == 0 {
		w.Say(w.S.Muted, "   no worker polled in the last minutes")
	}
}

func perSecond(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) + "/s" }

func (w *checkWriter) calls(c system.Check, calls []cluster.CallStat) {
	w.Section("Calls", "of this process, over the last minute")
	name := widget.Clamp(w.Width-38, 10, 40)
	w.Say(w.S.Muted, "   "+text.Fit("CALL", name, "")+"  /MIN FAIL     P50     P95")
	for _, k := range calls {
		p50, p95 := widget.Milliseconds(k.P50MS, w.S.Glyphs), widget.Milliseconds(k.P95MS, w.S.Glyphs)
		if k.Waits || k.PerMinute == 0 {
			p50, p95 = w.S.Glyphs.Dash, w.S.Glyphs.Dash
		}
		mark, ink := "   ", w.S.Text
		if k.Name == c.Name {
			mark, ink = " "+w.S.Glyphs.Pointer+" ", w.S.Strong
		}
		l := w.Line().Add(ink, mark+text.Fit(text.Safe(k.Name, " "), name, w.S.Glyphs.Ellipsis)+
			text.FitLeft(ace.Number(k.PerMinute), 6, ""))
		l.Add(widget.If(k.Failed == 0, w.S.Muted, w.S.Failed), text.FitLeft(ace.Number(k.Failed), 5, ""))
		w.End(l.Add(w.S.Muted, text.FitLeft(p50, 8, "")+text.FitLeft(p95, 8, "")))
	}
	for _, k := range calls {
		if k.LastError != "" && (k.Name == c.Name || c.Name == "all calls") {
			w.Section("Last error of "+text.Safe(k.Name, " "),
				w.Ago(k.LastAt)+", "+ace.Number(k.Failures)+" of "+ace.Number(k.Total)+" failed in total")
			w.Prose("   ", w.S.Error, k.LastError)
		}
	}
	w.Say(w.S.Text, "")
	w.Prose(" ", w.S.Muted, "Long polls have no times, because they do not measure the server.")
}

func (w *checkWriter) server(s *system.System) {
	w.Section("Server", "")
	w.fact("mode", s.Mode)
	w.fact("address", s.Address)
	w.fact("namespace", s.Space)
	w.fact("Temporal", s.Server.Version)
	w.fact("cluster", s.Server.Cluster)
	w.fact("storage", s.Server.Store)
	w.fact("visibility", s.Server.Search)
	w.fact("shared store", s.Store.URL)
	if s.Server.Shards > 0 {
		w.fact("shards", strconv.Itoa(int(s.Server.Shards)))
	}
	h := s.Host
	if h.PID == 0 {
		return
	}
	w.Section("Host", "")
	w.fact("process", strconv.Itoa(h.PID)+map[bool]string{true: " (this one)"}[h.PID == s.Process.PID])
	w.fact("acescope", h.Version)
	if !h.Started.IsZero() {
		w.fact("up for", text.Span(w.Now.Sub(h.Started)))
	}
	w.fact("data", h.DataDir)
	w.fact("size", system.Bytes(uint64(h.Size))+" in "+ace.Count(h.Files, "file"))
	w.fact("free", system.Bytes(h.Free))
	worker := "this process runs no worker"
	if h.Worker {
		worker = "this process runs a worker"
	}
	w.fact("worker", worker)
}

func (w *checkWriter) process(p system.Process) {
	w.Section("This process", "")
	w.fact("id", strconv.Itoa(p.PID))
	w.fact("up for", text.Span(w.Now.Sub(p.Started)))
	if p.RSS > 0 {
		w.fact("resident", system.Bytes(p.RSS))
	}
	w.fact("heap", system.Bytes(p.Heap)+" of "+system.Bytes(p.HeapSys)+" held")
	w.fact("goroutines", ace.Number(p.Goroutines))
	w.fact("collections", ace.Number(p.GCs)+", "+text.Duration(p.GCPause)+" paused in total")
	w.fact("snapshots", ace.Number(p.Snapshots)+" made")
}
