package evaluations

import (
	"encoding/json"
	"strconv"
	"time"

	"acescope/engine/ace"
	"acescope/sources/evaluations"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// answers shows how the selected version and the previous one answered the item under the cursor.
type answers struct {
	console.Reader
	grid    *gridView
	opening string // SHA-256 of the record that the document goes to when it is read
}

// beside is the width from which two answers are shown side by side.
const beside = 90

func (v *answers) Bindings() []tui.Binding {
	return append(widget.Motions("answers", v),
		console.Key("answers.related",
			"open the requests to the model and their responses, of the selected version",
			"requests", v.open, "O"))
}

// record returns the record of the requests behind an answer of the selected version, or nil.
func (v *answers) record(g *evaluations.Grid, index int) []ace.Ref {
	item := g.Versions[v.grid.shown()].Item(index)
	if item == nil || item.Calls == nil {
		return nil
	}
	return []ace.Ref{item.Calls.Ref}
}

func (v *answers) open(s tui.Shell) {
	g, _ := v.grid.page.grid(v.Styles)
	row, ok := v.grid.Current()
	if g == nil || !ok {
		return
	}
	refs := v.record(g, row.Index)
	if refs == nil {
		s.Note("no request of this answer is on record")
		return
	}
	v.opening = refs[0].SHA256
	v.grid.artifacts.OpenFirst(s, refs)
}

func (v *answers) Draw(now time.Time, focused bool) []string {
	g, _ := v.grid.page.grid(v.Styles)
	row, ok := v.grid.Current()
	if g == nil || !ok {
		return v.Message(nil, "no item is selected")
	}
	at := v.grid.shown()
	key := [3]any{v.grid.data.WorkflowID, row.Index, at}
	of := answersOf{v.grid.data, v.grid.artifacts.State(), v.opening}
	return v.Show(key, of, now, focused, func(w *widget.Writer) {
		v.compare(w, g, at, row.Index)
		v.writeRecord(w, g, row.Index)
	})
}

// compare writes how a version and the previous one answered an item.
func (v *answers) compare(w *widget.Writer, g *evaluations.Grid, at, index int) {
	versions := []int{at}
	if at > 0 {
		versions = append(versions, at-1)
	}
	if len(versions) < 2 || w.Width < beside {
		for _, version := range versions {
			v.write(w, g, version, index)
		}
		return
	}
	left, right := *w, *w
	left.Width = w.Width / 2
	right.Width = w.Width - left.Width
	v.write(&left, g, versions[1], index)
	v.write(&right, g, versions[0], index)
	for i := range max(len(left.Lines), len(right.Lines)) {
		var l, r string
		if i < len(left.Lines) {
			l = left.Lines[i]
		}
		if i < len(right.Lines) {
			r = right.Lines[i]
		}
		w.Lines = append(w.Lines, text.Fit(l, left.Width, "")+r)
	}
}

// answersOf identifies what the answers were written from.
type answersOf struct {
	data      *evaluations.Evaluated
	artifacts console.ArtifactState
	opening   string
}

// writeRecord writes the requests behind the answer of the selected version, and goes to them if they were
// opened.
func (v *answers) writeRecord(w *widget.Writer, g *evaluations.Grid, index int) {
	top := len(w.Lines)
	refs := v.record(g, index)
	v.grid.artifacts.Write(w, v.grid.nav, refs, g.Input.ExperimentID)
	if refs != nil && v.opening == refs[0].SHA256 && v.grid.artifacts.IsRead(refs[0]) {
		v.Top = top
		v.opening = ""
	}
}

// write writes how a version answered an item.
func (v *answers) write(w *widget.Writer, g *evaluations.Grid, version, index int) {
	of := g.Versions[version]
	w.Section("Version "+strconv.Itoa(version), evaluations.When(of.EvalResult))
	item := of.Item(index)
	if item == nil {
		w.Say(w.S.Muted, "   not on record")
		return
	}
	verdict, ink := "unlabeled", w.S.Muted
	if item.Correct != nil {
		verdict, ink = string(ace.Correct), w.S.Success
		if !*item.Correct {
			verdict, ink = string(ace.Wrong), w.S.Failed
		}
	}
	if item.Error != "" {
		verdict, ink = "failed: "+item.Error, w.S.Error
	}
	w.Prose(" answer    ", w.S.Strong, item.Answer)
	if item.Label != nil {
		w.Prose(" expected  ", w.S.Text, *item.Label)
	}
	w.Prose(" verdict   ", ink, verdict)
	if item.GradeReason != "" {
		w.Prose(" reason    ", w.S.Text, item.GradeReason)
	}
	if item.Score != nil && g.Input.PartialCredit() {
		w.Prose(" score     ", w.S.Text, strconv.FormatFloat(*item.Score, 'f', 3, 64))
	}
	w.Prose(" plan      ", w.S.Text, item.Plan)
	for _, id := range item.BulletIDs {
		content := "not in the playbook"
		if book := v.grid.data.Books[of.Playbook]; book != nil {
			if bullet, ok := book.Find(id); ok {
				content = bullet.Content
			}
		}
		w.Prose(" bullet    ", w.S.Accent, id+": "+content)
	}
	for _, call := range item.ToolCalls {
		w.Prose(" called    ", w.S.Text, call.Name+" "+plain(call.Args)+" "+w.S.Glyphs.Arrow+" "+
			plain(call.Result))
	}
	if u := item.Usage; u != nil {
		w.Prose(" usage     ", w.S.Muted, ace.Count(u.Tokens(), "token")+", "+u.Cost())
	}
	w.Prose(" took      ", w.S.Muted, widget.Milliseconds(item.DurationMS, w.S.Glyphs))
	if c := item.Calls; c != nil {
		w.Prose(" requests  ", w.S.Muted, console.RequestsText(*c))
	}
}

// plain returns a JSON text without its quotes, and other JSON as it is.
func plain(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}
