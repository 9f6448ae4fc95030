package histories

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"
	"unicode"

	"acescope/engine/ace"
	"acescope/engine/kind"
	"acescope/engine/stepper"
	"acescope/sources/cluster"
)

// Bounds of a page: events, bytes of the texts of states, and spans of the timeline. The page says how many
// events and states it leaves out.
const (
	pageEvents = 2000
	pageStates = 16 << 20
	pageLanes  = 60
)

//go:embed walk.html
var pageSource string

var pageTemplate = template.Must(template.New("walk").
	Funcs(template.FuncMap{"count": ace.Count[int]}).Parse(pageSource))

// Page returns one HTML file with every event of the run, what it did and the state after it, for readers
// without acescope. Secrets are replaced. It reads the records of requests to models.
func (w *Walk) Page(ctx context.Context, d cluster.Deps) ([]byte, error) {
	p := &page{walk: w}
	p.build(ctx, d)
	var out bytes.Buffer
	err := pageTemplate.Execute(&out, p)
	return out.Bytes(), err
}

// page is the data of the template. All of its texts are results of clean.
type page struct {
	walk   *Walk
	states int // bytes

	Name, Type, Written string
	Wrong               *stepper.WrongAnswer
	Lanes               []pageLane
	Height              int
	Events              []pageEvent
	LeftOut             int
	NoStates            int // events without their state
}

// pageLane is a span of the timeline. X and Width are of pageWidth units.
type pageLane struct {
	Name            string
	Y, TextY, TextX int
	X, Width        float64
	Event           int64
	Bad             bool
}

// pageEvent is an event.
type pageEvent struct {
	ID                int64
	At, Words         string
	Error, Wrong      bool
	Notes             []string
	Changed, Sections []kind.Section
	Calls             []StepCalls
}

func (p *page) build(ctx context.Context, d cluster.Deps) {
	w := p.walk
	p.Name = p.clean(cmp.Or(w.About.TaskID, w.About.WorkflowID))
	p.Type = p.clean(w.About.WorkflowType)
	p.Written = time.Now().UTC().Format("2006-01-02 15:04 UTC")
	if wrong := w.Wrong(); wrong != nil {
		p.Wrong = p.wrong(*wrong)
	}
	p.lanes()
	for pos := 1; pos <= w.Len() && ctx.Err() == nil; pos++ {
		if pos > pageEvents {
			p.LeftOut = w.Len() - pageEvents
			break
		}
		p.Events = append(p.Events, p.event(ctx, d, pos))
	}
}

func (p *page) event(ctx context.Context, d cluster.Deps, pos int) pageEvent {
	w := p.walk
	f := w.Step(pos)
	e := pageEvent{ID: f.EventID, At: fmt.Sprintf("%.3f s", f.ElapsedMS/1000), Words: p.clean(w.Words(pos)),
		Error: f.Error, Wrong: pos == w.WrongAt()}
	for _, n := range f.Notes {
		e.Notes = append(e.Notes, p.clean(n))
	}
	state := p.sections(w.Sections(pos))
	for _, s := range state {
		items := slices.DeleteFunc(slices.Clone(s.Items), func(i kind.Item) bool { return !i.Changed })
		if len(items) > 0 {
			e.Changed = append(e.Changed, kind.Section{Title: s.Title, Items: items})
		}
	}
	switch {
	case e.Changed == nil:
	case p.states > pageStates:
		p.NoStates++
	default:
		e.Sections = state
		p.states += sizeOf(state)
	}
	for _, c := range callsAt(w.Events(pos)) {
		c.record = readRecord(ctx, d, c.Log)
		c.Step, c.Model = p.clean(c.Step), p.clean(c.Model)
		c.Prompt, c.Response, c.Err = p.clean(c.Prompt), p.clean(c.Response), p.clean(c.Err)
		e.Calls = append(e.Calls, c)
	}
	return e
}

// sizeOf returns the bytes of the texts of sections.
func sizeOf(sections []kind.Section) (n int) {
	for _, s := range sections {
		for _, i := range s.Items {
			for _, f := range i.Fields {
				n += len(f.Text)
			}
		}
	}
	return n
}

// clean returns a text without secrets, control characters and invisible characters.
func (p *page) clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return -1
		}
		return r
	}, stepper.Redacted(s))
}

func (p *page) sections(all []kind.Section) []kind.Section {
	for n := range all {
		s := &all[n]
		s.Title, s.Remark = p.clean(s.Title), p.clean(s.Remark)
		for i := range s.Items {
			item := &s.Items[i]
			item.Head, item.Bullet = p.clean(item.Head), p.clean(item.Bullet)
			item.Outcome = kind.Outcome(p.clean(string(item.Outcome)))
			for f := range item.Fields {
				item.Fields[f].Label, item.Fields[f].Text = p.clean(item.Fields[f].Label),
					p.clean(item.Fields[f].Text)
			}
		}
	}
	return all
}

func (p *page) wrong(w stepper.WrongAnswer) *stepper.WrongAnswer {
	for _, t := range []*string{&w.Answer, &w.Expected, &w.Reason, &w.Cause, &w.Insights, &w.Plan} {
		*t = p.clean(*t)
	}
	w.Bullets = slices.Clone(w.Bullets)
	for i := range w.Bullets {
		b := &w.Bullets[i]
		b.ID, b.Content, b.Tag, b.AddedBy = p.clean(b.ID), p.clean(b.Content), p.clean(b.Tag),
			p.clean(b.AddedBy)
	}
	return &w
}

// Dimensions of the timeline, in units of its drawing.
const (
	pageWidth  = 720
	barsFrom   = 200 // after the names
	laneHeight = 18
)

// lanes lays out the first spans of the run.
func (p *page) lanes() {
	spans := Work(p.walk.Log.Spans)
	if len(spans) == 0 {
		return
	}
	last := p.walk.Log.Row(p.walk.Log.Len() - 1)
	w := Extent(spans, last.At())
	for i, s := range spans[:min(len(spans), pageLanes)] {
		end := max(s.End, s.Start)
		if s.End == 0 {
			end = w.To
		}
		scale := float64(pageWidth-barsFrom) / float64(max(w.To-w.From, 1))
		p.Lanes = append(p.Lanes, pageLane{Name: p.clean(s.Name), Y: i*laneHeight + 3, TextY: i*laneHeight +
			13,
			TextX: 10 * int(s.Depth), X: barsFrom + float64(s.Start-w.From)*scale,
			Width: max(float64(end-s.Start)*scale, 2),
			Event: s.Event, Bad: s.State.Bad()})
	}
	p.Height = len(p.Lanes)*laneHeight + 4
}
