package console

import (
	"strings"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// ArtifactFeed reads the artifacts that the user opens.
type ArtifactFeed interface {
	Feed[*histories.Artifacts]
	Open(ace.Ref)
}

// Artifacts shows the artifacts that the user opens, on every screen that refers to artifacts.
type Artifacts struct {
	ArtifactFeed
	read     *histories.Artifacts
	asked    map[string]bool // artifacts that are being read, by SHA-256
	Payloads widget.Payloads
}

// NewArtifacts returns an Artifacts without an open artifact.
func NewArtifacts(feed ArtifactFeed) *Artifacts {
	return &Artifacts{ArtifactFeed: feed, asked: map[string]bool{}}
}

// ArtifactState changes when an artifact is opened or read.
type ArtifactState struct {
	read  *histories.Artifacts
	asked int
}

func (a *Artifacts) State() ArtifactState { return ArtifactState{a.read, len(a.asked)} }

// Take takes the newest data.
func (a *Artifacts) Take() {
	if a.read = a.Value(); a.read != nil {
		for _, r := range a.read.List {
			delete(a.asked, r.Ref.SHA256)
		}
	}
}

// IsRead reports whether an artifact was read.
func (a *Artifacts) IsRead(ref ace.Ref) bool {
	have := a.read.Find(ref.SHA256)
	return have != nil && have.Err == ""
}

// OpenFirst reads the first artifact that is not read yet. It returns false if all are read.
func (a *Artifacts) OpenFirst(s tui.Shell, refs []ace.Ref) bool {
	for _, ref := range refs {
		if !a.IsRead(ref) {
			a.asked[ref.SHA256] = true
			a.Open(ref)
			s.Note("reading " + RefText(ref))
			return true
		}
	}
	return false
}

// Write writes the contents of artifacts of a run, or how to open them.
func (a *Artifacts) Write(w *widget.Writer, nav *Navigation, refs []ace.Ref, name string) {
	for _, r := range refs {
		have := a.read.Find(r.SHA256)
		command := nav.Command("show", name, "--artifact", r.SHA256)
		if have != nil && have.Err == "" {
			WritePayload(w, "Artifact "+Short(r.SHA256, w.S.Glyphs), a.Payloads.Of(have.Data),
				command+" prints all of it")
			continue
		}
		w.Section("Artifact", strings.TrimPrefix(RefText(r), "artifact "))
		switch {
		case have != nil:
			w.Prose(" "+w.S.Glyphs.Failed+" ", w.S.Error, have.Err)
			w.Prose(" ", w.S.Muted, command)
		case a.asked[r.SHA256]:
			w.Say(w.S.Muted, " reading"+w.S.Glyphs.Ellipsis)
		default:
			w.End(w.Line().Add(w.S.Key, " O").Add(w.S.Hint, " opens it"))
		}
	}
}

// WritePayload writes a payload. The text says how to print the rest of a large one.
func WritePayload(w *widget.Writer, title string, p *widget.Shown, whole string) {
	w.Section(title, p.Kind+", "+widget.SizeText(int64(p.Size)))
	for _, l := range p.Lines {
		w.Spans(" ", w.S.Text, p.Spans(l, w.S))
	}
	if p.Rest > 0 {
		w.Prose(" ", w.S.Warning, w.S.Glyphs.Ellipsis+" and "+widget.SizeText(int64(p.Rest))+" more: "+whole)
	}
}

// RefText names an artifact.
func RefText(r ace.Ref) string {
	summary := "artifact " + text.Safe(r.SHA256[:min(len(r.SHA256), 12)], " ") + ", " +
		widget.SizeText(r.Size)
	summary += widget.If(r.MediaType != "", ", "+text.Safe(r.MediaType, " "), "")
	return summary
}

// RequestsText describes the record of the requests to a model.
func RequestsText(log ace.CallLog) string {
	summary := ace.Count(log.Requests, "request") + " to the model on record"
	summary += widget.If(log.Omitted > 0, ", "+ace.Number(log.Omitted)+" more are not", "")
	return summary
}

// UsageText returns the tokens and the cost of a usage.
func UsageText(u ace.Usage) string {
	summary := ace.Count(u.InputTokens, "input token") + ", " + ace.Number(u.OutputTokens) + " output"
	summary += widget.If(u.CacheReadTokens > 0, ", "+ace.Number(u.CacheReadTokens)+" from cache", "")
	return summary + ", " + u.Cost()
}
