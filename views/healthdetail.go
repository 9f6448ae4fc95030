package views

import (
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// healthDetail is all that is known of the row that the health's cursor is on.
type healthDetail struct {
	*console
	from          *health
	styles        theme.Styles
	width, height int
	reader        runReader
	doc           document
	key           string
}

func newHealthDetail(c *console, from *health) *healthDetail {
	return &healthDetail{console: c, from: from}
}

func (v *healthDetail) Name() string { return "Detail" }

func (v *healthDetail) Title() string { return "Detail" }

func (v *healthDetail) Footer() string { return v.reader.position() }

func (v *healthDetail) Bindings() []tui.Binding { return motions("detail", &v.reader) }

func (v *healthDetail) Update(tea.Msg) tea.Cmd { return nil }

func (v *healthDetail) SetShown(bool) {}

func (v *healthDetail) SetStyles(s theme.Styles) { v.styles = s }

func (v *healthDetail) SetSize(width, height int) { v.width, v.height = width, height }

func (v *healthDetail) SetSnapshot(*sources.Snapshot) {}

// Copy is what the row stands for.
func (v *healthDetail) Copy() (what, copied string) { return v.from.Copy() }

func (v *healthDetail) Draw(now time.Time, focused bool) []string {
	v.from.arrange(now)
	c, ok := v.from.selected()
	if !ok {
		return centre([]string{"nothing is selected"}, v.width, v.height, v.styles)
	}
	v.reader.setSize(v.width, v.height)
	w := &checkWriter{writer{doc: &v.doc, s: v.styles, width: max(v.width-pointerWidth, 1), now: now, loc: v.Location}}
	w.check(c)
	if s := v.from.arranged; s != nil {
		w.more(c, s)
	}
	key := string(c.Section) + "/" + c.Name
	v.reader.set(w.lines, nil, key != v.key)
	v.key = key
	return v.reader.draw(v.styles, focused)
}

// checkWriter writes one check and what it was judged by.
type checkWriter struct{ writer }

func (w *checkWriter) check(c sources.Check) {
	m := checkMark(c.State, w.s)
	w.end(w.line().Add(m.Ink, " "+m.Glyph+" "+m.Word).Add(w.s.Strong, "  "+text.Safe(c.Name, " ")))
	w.prose("   ", w.s.Text, c.Text)
	if !c.At.IsZero() {
		w.say(w.s.Muted, "   "+c.At.In(w.loc).Format("2006-01-02 15:04:05")+", "+w.ago(c.At))
	}
	if c.Advice != "" {
		w.section("What to do", "y copies it")
		w.prose("   ", w.s.Accent, c.Advice)
	}
}

func (w *checkWriter) more(c sources.Check, s *sources.System) {
	switch c.Section {
	case sources.SectionWorkers:
		for _, q := range s.Queues {
			if q.Name+" "+q.Kind == c.Name {
				w.queue(q)
			}
		}
	case sources.SectionCalls:
		w.calls(c, s.Calls)
	case sources.SectionServer:
		w.server(s)
	case sources.SectionProcess:
		w.process(s.Process)
	}
}

func (w *checkWriter) fact(label, value string) {
	if value != "" {
		w.prose("   "+text.Fit(label, 11, "")+" ", w.s.Text, value)
	}
}

func (w *checkWriter) queue(q sources.Queue) {
	w.section("Task queue", "")
	w.fact("name", q.Name)
	w.fact("tasks", q.Kind+" tasks")
	w.fact("waiting", text.Count(q.Backlog)+" (approximately)")
	if q.Backlog > 0 {
		w.fact("oldest", text.Took(q.Oldest))
	}
	w.fact("rate", perSecond(q.In)+" in, "+perSecond(q.Out)+" out")
	w.section("Pollers", howMany(len(q.Pollers), "worker"))
	for _, p := range q.Pollers {
		w.end(w.line().Add(w.s.Success, "   "+w.s.Glyphs.Running+" ").Add(w.s.Text, text.Safe(p.Identity, " ")).
			Add(w.s.Muted, "  asked "+w.ago(p.Last)))
	}
	if len(q.Pollers) == 0 {
		w.say(w.s.Muted, "   nobody asked for work in the last minutes")
	}
}

func perSecond(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) + "/s" }

func (w *checkWriter) calls(c sources.Check, calls []sources.CallStat) {
	w.section("Calls", "of this process, over the last minute")
	name := clamp(w.width-38, 10, 40)
	w.say(w.s.Muted, "   "+text.Fit("CALL", name, "")+"  /MIN FAIL     P50     P95")
	for _, k := range calls {
		p50, p95 := text.Took(k.P50), text.Took(k.P95)
		if k.Waits || k.PerMinute == 0 {
			p50, p95 = w.s.Glyphs.Dash, w.s.Glyphs.Dash
		}
		mark, ink := "   ", w.s.Text
		if k.Name == c.Name {
			mark, ink = " "+w.s.Glyphs.Pointer+" ", w.s.Strong
		}
		l := w.line().Add(ink, mark+text.Fit(text.Safe(k.Name, " "), name, w.s.Glyphs.Ellipsis)+text.FitLeft(text.Count(int64(k.PerMinute)), 6, ""))
		l.Add(unless(k.Failed == 0, w.s.Muted, w.s.Failed), text.FitLeft(text.Count(int64(k.Failed)), 5, ""))
		w.end(l.Add(w.s.Muted, text.FitLeft(p50, 8, "")+text.FitLeft(p95, 8, "")))
	}
	for _, k := range calls {
		if k.LastError != "" && (k.Name == c.Name || c.Name == "all calls") {
			w.section("Last error of "+text.Safe(k.Name, " "), w.ago(k.LastAt)+", "+text.Count(k.Failures)+" of "+text.Count(k.Total)+" failed in all")
			w.prose("   ", w.s.Error, k.LastError)
		}
	}
	w.say(w.s.Text, "")
	w.prose(" ", w.s.Muted, "A call that waits for news (a poll, a history that is followed) has no times: they tell nothing of the server.")
}

func (w *checkWriter) server(s *sources.System) {
	w.section("Server", "")
	w.fact("mode", s.Mode)
	w.fact("address", s.Address)
	w.fact("namespace", s.Space)
	w.fact("Temporal", s.Server.Version)
	w.fact("cluster", s.Server.Cluster)
	w.fact("keeps runs", s.Server.Store)
	w.fact("lists from", s.Server.Search)
	if s.Server.Shards > 0 {
		w.fact("shards", strconv.Itoa(int(s.Server.Shards)))
	}
	h := s.Host
	if h.PID == 0 {
		return
	}
	w.section("Host", "")
	w.fact("process", strconv.Itoa(h.PID)+ours(h.PID == s.Process.PID))
	w.fact("acescope", h.Version)
	if !h.Started.IsZero() {
		w.fact("up for", text.Span(w.now.Sub(h.Started)))
	}
	w.fact("data", h.DataDir)
	w.fact("holds", sources.Bytes(uint64(h.Size))+" in "+text.Count(int64(h.Files))+" files")
	w.fact("free", sources.Bytes(h.Free))
	w.fact("works", strings.TrimSpace(map[bool]string{true: "this process serves runs too", false: "this process only looks"}[h.Worker]))
}

func ours(is bool) string {
	if is {
		return " (this one)"
	}
	return ""
}

func (w *checkWriter) process(p sources.Process) {
	w.section("This process", "")
	w.fact("id", strconv.Itoa(p.PID))
	w.fact("up for", text.Span(w.now.Sub(p.Started)))
	w.fact("resident", unlessZero(p.RSS))
	w.fact("heap", sources.Bytes(p.Heap)+" of "+sources.Bytes(p.HeapSys)+" held")
	w.fact("goroutines", text.Count(int64(p.Goroutines)))
	w.fact("collections", text.Count(int64(p.GCs))+", "+text.Took(p.GCPause)+" paused in all")
	w.fact("snapshots", text.Count(int64(p.Snapshots))+" made")
}

func unlessZero(n uint64) string {
	if n == 0 {
		return ""
	}
	return sources.Bytes(n)
}
