package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/tui"
	"acescope/tui/text"
)

// fromField is the field with the fork point: a phase, or the number of an event.
const fromField = "from"

// promptOf is the prefix of the names of the fields with phase prompts.
const promptOf = "prompts."

// forkForm is the form for a fork of a run, or of several runs with the same changes. Its fields are named
// like the fields of a change.
type forkForm struct {
	launch
	names    []string // of the arguments of acescope fork
	at       string   // first value of the point
	original map[string]string
	several  bool
}

// provided lists the phases that a provider executes.
func provided() []string { return phaseNames()[:len(phaseNames())-1] }

func (f forkForm) fields() []tui.Field {
	fields := []tui.Field{
		{Name: fromField, Label: "From", Value: f.at, Options: phaseNames(), Hint: "first phase, or event"},
		{Name: promptField, Label: "Prompt", Lines: true, Hint: "ctrl+e opens $EDITOR"},
		{Name: "label", Label: "Expected answer", Hint: "grades the answer"},
		{Name: "provider", Label: "Provider", Complete: f.choices("provider"), Hint: "of all phases"},
		{Name: "model", Label: "Model", Complete: f.models("provider"), Follow: f.model,
			Hint: "of all phases"},
		{Name: "playbook", Label: "Playbook", Complete: f.playbooks, Hint: "branch, version, file"},
	}
	for i, phase := range provided() {
		reruns := func(v tui.Values) bool { return slices.Index(phaseNames(), v[fromField]) <= i }
		label := capital(phase)
		fields = append(fields,
			tui.Field{Name: "steps." + phase, Label: label + " provider", Complete: f.choices("provider"),
				Shown: reruns, Hint: "empty: as above"},
			tui.Field{Name: "models." + phase, Label: label + " model", Shown: reruns,
				Complete: f.models("steps."+phase, "provider"), Hint: "empty: as above"},
			f.prompt(phase, reruns))
	}
	if f.several {
		fields[0].Hint = "first phase to rerun"
		fields = slices.DeleteFunc(fields, func(f tui.Field) bool {
			return f.Name == promptField || f.Name == "label"
		})
	}
	for i := range fields {
		if value, ok := f.original[fields[i].Name]; ok {
			fields[i].Value = value
		}
	}
	return fields
}

// model returns the model of the original, or the default of another provider, which the fork then has.
func (f forkForm) model(v tui.Values) string {
	provider := v["provider"]
	if provider == f.original["provider"] {
		return f.original["model"]
	}
	if name, ok := ace.BlueprintOf(provider); ok {
		return name
	}
	return cmp.Or(f.Actions.Choices(f.Context, "model."+provider)...)
}

// prompt is the field for the prompt of a phase.
func (f forkForm) prompt(phase string, reruns func(tui.Values) bool) tui.Field {
	field := f.phasePrompt(phase)
	asks := field.Shown
	field.Shown = func(v tui.Values) bool { return reruns(v) && asks(v) }
	return field
}

// change returns the changes that the values stand for. In forks of several runs, an empty field changes
// nothing.
func (f forkForm) change(v tui.Values) (c runs.Change, err error) {
	c.Verb = "fork"
	from := strings.TrimSpace(v[fromField])
	if n, numberErr := strconv.ParseInt(from, 10, 64); numberErr == nil && n > 0 && !f.several {
		c.At.Event = n
	} else if phase := ace.Phase(from); phase.Activity() != "" {
		c.At.Phase = phase
	} else {
		return c, fmt.Errorf("--from: use one of %s%s", strings.Join(phaseNames(), ", "),
			map[bool]string{false: ", or the number of an event"}[f.several])
	}
	for _, field := range f.fields() {
		value, shown := v[field.Name]
		if field.Name == fromField || !shown || value == f.original[field.Name] ||
			field.Name == "model" && value == f.model(v) {
			continue
		}
		name := field.Name
		if phase, ok := strings.CutPrefix(name, promptOf); ok {
			name, value = "phase-prompt", phase+"="+cmp.Or(value, "default")
		} else if name == "label" && value == "" {
			value = "null"
		}
		c.Fields = append(c.Fields, runs.Field{Name: name, Value: value})
	}
	return c, nil
}

// planOf returns the lines of a plan, without the run and the fork point, which the form shows above them.
func planOf(p runs.Prepared) (lines []string) {
	for _, l := range p.Lines {
		word, _, _ := strings.Cut(l, "  ")
		if !slices.Contains([]string{"workflow", "run", "forked at"}, word) {
			lines = append(lines, l)
		}
	}
	return lines
}

// command returns the command line of a fork.
func (f forkForm) command(c runs.Change) string {
	words := append([]string{"fork"}, f.names...)
	if c.At.Event != 0 {
		words = append(words, "--at", strconv.FormatInt(c.At.Event, 10))
	} else {
		words = append(words, "--phase", string(c.At.Phase))
	}
	for _, field := range c.Fields {
		switch field.Name {
		case promptField, "provider", "model", "playbook", "phase-prompt":
			words = append(words, "--"+field.Name, field.Value)
		default:
			words = append(words, "--set", field.Name+"="+field.Value)
		}
	}
	return f.nav.Command(words...)
}

// askForkForm reads the selected run, then opens the form for a fork of it.
func (fs *Forks) askForkForm(s tui.Shell, of runs.ID, point string) tea.Cmd {
	ctx, stop := context.WithTimeout(fs.launcher.Context, ActionTimeout)
	name := NameOf(fs.nav.Selected.Run)
	w := &tui.Waiting{Title: "Fork " + name + "?", Leave: stop, Lines: []string{"reading its input"}}
	s.Wait(w)
	f := forkForm{launch: launch{Launcher: fs.launcher, seen: modelsOf(fs.listing.Runs.Rows)},
		names: []string{name}, at: point}
	return func() tea.Msg {
		defer stop()
		of, err := fs.pipeline.frozen(ctx, of)
		var o runs.Original
		if err == nil {
			o, err = fs.actions.Original(ctx, of)
		}
		if err != nil {
			return tui.Settled(w, tui.Failed(fmt.Errorf("fork: %w", err)))
		}
		return tui.Settled(w, tui.Filled(f.of(o, of)))
	}
}

// of returns the form for a fork of a run.
func (f forkForm) of(o runs.Original, of runs.ID) tui.Form {
	f.original = map[string]string{}
	for _, field := range o.Fields {
		f.original[field.Name] = field.Value
	}
	plan := func(ctx context.Context, v tui.Values) (runs.Change, runs.Prepared, error) {
		c, err := f.change(v)
		if err != nil {
			return c, runs.Prepared{}, err
		}
		p, err := o.Plan(ctx, c.At, c.Fields)
		return c, p, err
	}
	return tui.Form{Title: "Fork " + text.Safe(f.names[0], " "), Name: "fork " + of.RunID + " " + f.at,
		Verb: "fork", Fields: f.fields(),
		Check: func(v tui.Values) tui.Report {
			c, p, err := plan(f.Context, v)
			r := tui.Report{Problems: map[string]string{}, Lines: planOf(p)}
			if err != nil {
				addProblem(r.Problems, v, err)
			}
			if c.At != (runs.Point{}) {
				r.Command = f.command(c)
			}
			return r
		},
		Submit: func(ctx context.Context, v tui.Values) (func(tui.Shell) tea.Cmd, error) {
			_, p, err := plan(ctx, v)
			if err != nil {
				return nil, err
			}
			done, started, err := p.Do(ctx)
			f.controls.Refresh()
			return func(s tui.Shell) tea.Cmd {
				s.Note(done)
				return func() tea.Msg { return Started{started} }
			}, err
		}}
}

// askForkMarked opens the form for forks of all marked runs.
func (fs *Forks) askForkMarked(s tui.Shell) tea.Cmd {
	originals := fs.listing.Marked()
	f := forkForm{launch: launch{Launcher: fs.launcher, seen: modelsOf(fs.listing.Runs.Rows)}, several: true,
		at: string(ace.PhaseGenerator), names: []string{"-q", queryOf(originals)}}
	title := "Fork " + ace.Count(len(originals), "marked run")
	return s.Fill(tui.Form{Title: title, Name: "fork marked", Verb: "plan", Fields: f.fields(),
		Check: func(v tui.Values) tui.Report {
			c, err := f.change(v)
			r := tui.Report{Problems: map[string]string{}, Lines: []string{
				"empty fields keep what each run has; enter plans the forks and asks before it starts them"}}
			if err != nil {
				addProblem(r.Problems, v, err)
			} else if len(originals) <= shownMarks {
				r.Command = f.command(c)
			}
			return r
		},
		Submit: func(ctx context.Context, v tui.Values) (func(tui.Shell) tea.Cmd, error) {
			c, err := f.change(v)
			if err != nil {
				return nil, err
			}
			working, progress, end := fs.controls.StartWork(ctx, "planning "+ace.Count(len(originals),
				"fork"))
			defer end()
			b, err := fs.actions.PlanForks(working, originals, c, progress)
			return func(s tui.Shell) tea.Cmd { s.Confirm(fs.batchQuestion(b)); return nil }, err
		}})
}

// queryOf returns a query for runs.
func queryOf(list []runs.Run) string {
	var ids []string
	for _, r := range list[:min(len(list), shownMarks)] {
		ids = append(ids, runs.Quote(r.WorkflowID))
	}
	return "WorkflowId IN (" + strings.Join(ids, ", ") + ")"
}

func (fs *Forks) batchQuestion(b runs.Batch) tui.Question {
	return tui.Question{Title: b.Title, Lines: safeLines(b.Lines), Yes: b.Yes,
		Do: func() tea.Cmd { return func() tea.Msg { return fs.startBatch(b) } }}
}

// startBatch starts the forks until the user stops it, then shows the scoreboard.
func (fs *Forks) startBatch(b runs.Batch) tea.Msg {
	working, progress, end := fs.controls.StartWork(fs.launcher.Context, "starting forks")
	started, err := b.Do(working, progress)
	end()
	fs.controls.Refresh()
	if started == 0 {
		return tui.Failed(fmt.Errorf("fork: %w", err))
	}
	return tui.Then(func(s tui.Shell) tea.Cmd {
		fs.listing.Marks.Clear()
		fs.nav.Batch = b.ID
		s.Open("scoreboard")
		switch {
		case errors.Is(err, context.Canceled):
			s.Note("stopped: only " + ace.Count(started, "fork") + " started")
		case err != nil:
			return Failed("fork", err)
		default:
			s.Note("started " + ace.Count(started, "fork"))
		}
		return nil
	})
}
