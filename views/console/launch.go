package console

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/tui"
)

// LaunchActions start runs and experiments as the command acescope run does.
type LaunchActions interface {
	// LaunchDefaults returns the default of each flag of acescope run.
	LaunchDefaults() map[string]string
	// CheckLaunch returns the errors in the arguments of acescope run, and the warnings that the command
	// would print.
	CheckLaunch(ctx context.Context, args []string) (wrong []error, warnings []string)
	// Launch starts what acescope run starts with the arguments.
	Launch(ctx context.Context, args []string) (runs.Run, error)
	// StartDemo starts an experiment on generated problems.
	StartDemo(ctx context.Context) error
	// Choices lists the known values of a field: dataset, provider, model, model.PROVIDER, playbook,
	// experiment or prompts.PHASE.
	Choices(ctx context.Context, field string) []string
	PromptActions
}

type Launcher struct {
	Context  context.Context
	Actions  LaunchActions // nil for a console that only reads
	nav      *Navigation
	listing  *Listing
	controls Controls
	texts    *promptTexts
}

// LaunchBinding returns the key that starts an experiment or a task, on a screen.
func (l *Launcher) LaunchBinding(view string) []tui.Binding {
	if l.Actions == nil {
		return nil
	}
	b := MutatingKey(view+".new", "start a new experiment or task: opens a form", "new", l.AskLaunch, "n")
	b.Hints = []string{"overview", "experiments"}
	return []tui.Binding{b}
}

// AskLaunch opens the form for a new experiment or task.
func (l *Launcher) AskLaunch(s tui.Shell) tea.Cmd {
	if l.Actions == nil {
		s.Note("nothing can be started here")
		return nil
	}
	f := launch{l, l.Actions.LaunchDefaults(), modelsOf(l.listing.Runs.Rows)}
	return s.Fill(tui.Form{Title: "New experiment or task", Name: "new", Verb: "start", Fields: f.fields(),
		Check: f.check, Submit: f.submit})
}

// launch is the form for a new experiment or task. Its fields are named like the flags of acescope run,
// besides the fields start and prompt.
type launch struct {
	*Launcher
	defaults map[string]string
	seen     []string // models of loaded runs
}

const (
	startField  = "start"
	promptField = "prompt"
)

func isTask(v tui.Values) bool       { return v[startField] == "task" }
func isExperiment(v tui.Values) bool { return !isTask(v) }

func (l launch) fields() []tui.Field {
	online := func(v tui.Values) bool { return isExperiment(v) && v["adapter"] == string(ace.Online) }
	evaluated := func(v tui.Values) bool { return isExperiment(v) && v["eval"] != "" }
	fields := []tui.Field{
		{Name: startField, Label: "Start", Value: "experiment", Options: []string{"experiment", "task"},
			Fixed: true, Hint: "or one task"},
		{Name: "dataset", Label: "Data set", Options: []string{"problems:60", "problems:120"},
			Complete: l.datasets, Hint: "file or stored data set", Shown: isExperiment},
		{Name: "eval", Label: "Evaluation set", Options: []string{"problems:30:2", "problems:60:2"},
			Complete: l.datasets, Hint: "measured, not learned", Shown: isExperiment},
		{Name: promptField, Label: "Prompt", Lines: true, Hint: "ctrl+e opens $EDITOR", Shown: isTask},
		{Name: "expected", Label: "Expected answer", Hint: "grades the answer", Shown: isTask},
		{Name: "provider", Label: "Provider", Complete: l.choices("provider"), Hint: "model server or agent"},
		{Name: "model", Label: "Model", Complete: l.models("provider"), Hint: "empty: its default"},
		{Name: "playbook", Label: "Playbook", Complete: l.playbooks, Hint: "empty: an empty one"},
		{Name: "epochs", Label: "Epochs", Number: true, Shown: isExperiment, Hint: "passes over the data"},
		{Name: "adapter", Label: "Adapter", Options: []string{string(ace.Offline), string(ace.Online)},
			Fixed: true, Shown: isExperiment, Hint: "by task, or by window"},
		{Name: "window", Label: "Window", Number: true, Shown: online, Hint: "tasks; 0: 20"},
		{Name: "eval-every", Label: "Evaluate every", Number: true, Shown: evaluated,
			Hint: "tasks; 0: each epoch"},
	}
	for _, phase := range provided() {
		fields = append(fields, l.phasePrompt(phase))
	}
	fields = append(fields,
		tui.Field{Name: "max-cost", Label: "Budget", Number: true, Hint: "US dollars; 0: none"},
		tui.Field{Name: "review", Label: "Review", Options: []string{"false", "true"}, Fixed: true,
			Hint: "operations wait for you"},
		tui.Field{Name: "experiment", Label: "Name", Complete: l.choices("experiment"),
			Hint: "empty: generated"})
	for i := range fields {
		if value, ok := l.defaults[fields[i].Name]; ok {
			fields[i].Value = value
		}
	}
	return fields
}

func (l launch) choices(field string) func(string, tui.Values) []string {
	return func(string, tui.Values) []string { return l.Actions.Choices(l.Context, field) }
}

// asksModel reports whether the provider of a phase follows a prompt.
func asksModel(phase string) func(tui.Values) bool {
	return func(v tui.Values) bool { return cmp.Or(v["steps."+phase], v["provider"]) != ace.Builtin }
}

// phasePrompt returns the field for the prompt of a phase.
func (l launch) phasePrompt(phase string) tui.Field {
	return tui.Field{Name: promptOf + phase, Label: capital(phase) + " prompt",
		Complete: l.choices(promptOf + phase), Text: l.texts.field(ace.Phase(phase)), Hint: "ctrl+e edits",
		Shown: asksModel(phase)}
}

// models lists the models for the first provider that the fields name: its default and those of loaded runs,
// without the defaults of other providers.
func (l launch) models(fields ...string) func(string, tui.Values) []string {
	return func(_ string, v tui.Values) []string {
		list := l.Actions.Choices(l.Context, "model")
		provider := ""
		for _, f := range fields {
			provider = cmp.Or(provider, v[f])
		}
		seen := l.seen
		if provider != "" {
			others := list
			list = l.Actions.Choices(l.Context, "model."+provider)
			seen = slices.DeleteFunc(slices.Clone(seen), func(m string) bool {
				return slices.Contains(others, m)
			})
		}
		list = append(list, seen...)
		slices.Sort(list)
		return slices.Compact(list)
	}
}

// datasets lists stored data sets, directories, and files that may hold JSON lines.
func (l launch) datasets(typed string, v tui.Values) []string {
	files := slices.DeleteFunc(completeFiles(typed, v), func(name string) bool {
		return !strings.HasSuffix(name, string(filepath.Separator)) && !strings.Contains(name, "json")
	})
	return append(l.Actions.Choices(l.Context, "dataset"), files...)
}

// playbooks lists branches and files.
func (l launch) playbooks(typed string, v tui.Values) []string {
	return append(l.Actions.Choices(l.Context, "playbook"), completeFiles(typed, v)...)
}

// args returns the arguments of acescope run. Defaults are left out.
func (l launch) args(v tui.Values) (args []string) {
	for _, f := range l.fields() {
		value := strings.TrimSpace(v[f.Name])
		if _, isFlag := l.defaults[f.Name]; isFlag && value != "" && value != l.defaults[f.Name] {
			args = append(args, "--"+f.Name, value)
			if f.Name == "review" { // it has no value
				args = args[:len(args)-1]
			}
		}
		if phase, ok := strings.CutPrefix(f.Name, promptOf); ok && value != "" && value != ace.DefaultPrompt {
			args = append(args, "--phase-prompt", phase+"="+value)
		}
	}
	if prompt := v[promptField]; prompt != "" {
		args = append(args, "--", prompt)
	}
	return args
}

func (l launch) check(v tui.Values) tui.Report {
	args := l.args(v)
	r := tui.Report{Problems: map[string]string{},
		Command: l.nav.Command(append([]string{"run"}, args...)...)}
	switch {
	case isExperiment(v) && v["dataset"] == "":
		r.Problems["dataset"] = "name a file of JSON lines, or problems:60 for 60 generated problems"
	case isTask(v) && strings.TrimSpace(v[promptField]) == "":
		r.Problems[promptField] = "type the task"
	default:
		wrong, warnings := l.Actions.CheckLaunch(l.Context, args)
		r.Lines = warnings
		for _, err := range wrong {
			addProblem(r.Problems, v, err)
		}
	}
	return r
}

// flagOf matches the first flag that an error names, and the phase of a phase prompt.
var flagOf = regexp.MustCompile(`--([a-z][a-z-]+)(?: "?([a-z]+)=)?`)

// addProblem adds an error to the field whose flag it names, or to the form.
func addProblem(problems map[string]string, v tui.Values, err error) {
	field, message := "", err.Error()
	if m := flagOf.FindStringSubmatchIndex(message); m != nil {
		name := message[m[2]:m[3]]
		if name == "phase-prompt" && m[4] > 0 {
			name = promptOf + message[m[4]:m[5]]
		}
		if _, shown := v[name]; shown {
			field = name
		}
		if _, rest, ok := strings.Cut(message, ": "); ok && field != "" && m[0] == 0 {
			message = rest
		}
	}
	if problems[field] == "" {
		problems[field] = message
	}
}

func (l launch) submit(ctx context.Context, v tui.Values) (func(tui.Shell) tea.Cmd, error) {
	ctx, stop := context.WithTimeout(ctx, launchTimeout)
	defer stop()
	r, err := l.Actions.Launch(ctx, l.args(v))
	if err != nil {
		return nil, err
	}
	l.controls.Refresh()
	return func(s tui.Shell) tea.Cmd {
		if isTask(v) {
			s.Note("started " + NameOf(r))
			return l.nav.OpenRun(s, r)
		}
		s.Note("started experiment " + r.Experiment)
		l.nav.Experiment = r.WorkflowID
		s.Open("experiments")
		return nil
	}, nil
}

// launchTimeout bounds how long starting may take: a data set is read and stored first.
const launchTimeout = 2 * time.Minute

// maxFiles bounds the files that completion lists.
const maxFiles = 200

// completeFiles lists the files and directories that complete a typed path. It does I/O.
func completeFiles(typed string, _ tui.Values) (list []string) {
	dir, base := filepath.Split(typed)
	entries, err := os.ReadDir(filepath.Clean(expandHome(dir)))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") && !strings.HasPrefix(base, ".") || !strings.HasPrefix(name, base) {
			continue
		}
		if e.IsDir() {
			name += string(filepath.Separator)
		}
		if list = append(list, dir+name); len(list) == maxFiles {
			break
		}
	}
	return list
}

// expandHome replaces ~ at the beginning of a path.
func expandHome(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	home, err := os.UserHomeDir()
	if !ok || err != nil {
		return path
	}
	return filepath.Join(home, rest)
}

// modelsOf returns the models of runs, each once.
func modelsOf(rows []runs.Run) []string {
	names := map[string]bool{}
	for _, r := range rows {
		if r.Model != "" && !strings.ContainsAny(r.Model, " \"") {
			names[r.Model] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
