package views

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/learning/prompts"
	"acescope/engine/stepper"
	"acescope/sources/cluster"
	"acescope/sources/costs"
	"acescope/sources/evaluations"
	"acescope/sources/experiments"
	"acescope/sources/histories"
	"acescope/sources/logs"
	"acescope/sources/phaseprompts"
	"acescope/sources/playbooks"
	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/sources/scoreboard"
	"acescope/sources/sessions"
	"acescope/sources/system"
	"acescope/sources/transcripts"
	"acescope/sources/triage"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	agentsview "acescope/views/agents"
	"acescope/views/console"
	"acescope/views/cost"
	runview "acescope/views/run"
	runsview "acescope/views/runs"
)

// noon is the time in tests.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// snapshot has the values of all feeds at one moment.
type snapshot struct {
	Seq         uint64
	Costs       *costs.Costs
	At          time.Time
	Connection  cluster.Connection
	Health      []cluster.Health
	Problems    []cluster.Problem
	Work        []cluster.Work
	Runs        runs.RunList
	Facets      *runs.Facets
	Sections    map[string]int64
	Detail      *histories.Detail
	Artifacts   *histories.Artifacts
	Events      *histories.EventLog
	Replay      *histories.Replay
	Lineage     *histories.LineageTree
	RunDiff     *histories.RunDiff
	Verified    *histories.Verified
	Logs        *logs.Logs
	Books       *playbooks.Playbooks
	Experiments *experiments.Experiments
	Evaluated   *evaluations.Evaluated
	Triage      *triage.Result
	Sessions    *sessions.Sessions
	Approvals   *sessions.Approvals
	Scoreboard  *scoreboard.Scoreboard
	Details     *sessions.Detail
	Transcripts *sessions.Transcripts
	Talk        *transcripts.Conversation
	Runners     *runners.Runners
	Prompts     *phaseprompts.Prompts
	System      *system.System
}

// store is a fake source of data. It records its calls.
type store struct {
	mu      sync.Mutex
	snap    *snapshot
	changed chan struct{}
	told    []string
	// onScreen are the run IDs of the rows on the screen of the list.
	onScreen []string
}

func newStore(s *snapshot) *store { return &store{snap: s, changed: make(chan struct{}, 1)} }

// current returns the snapshot, an empty one for nil.
func (s *store) current() *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.snap, &snapshot{})
}

func (s *store) Status() *tui.Status {
	s.mu.Lock()
	none := s.snap == nil
	s.mu.Unlock()
	if none {
		return nil
	}
	c := s.current()
	link := cluster.Status{Seq: c.Seq, Connection: c.Connection, Health: c.Health, Problems: c.Problems,
		Work: c.Work}
	return statusOf(link, c.Runs, c.Approvals.Count())
}

func (s *store) Used() {}

func (s *store) Changed() <-chan struct{} { return s.changed }

func (s *store) set(snap *snapshot) {
	s.mu.Lock()
	s.snap = snap
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// fakeFeed shows one part of the store's snapshot.
type fakeFeed[V any] struct {
	*store
	name string
	part func(*snapshot) V
}

func (f fakeFeed[V]) Value() V     { return f.part(f.current()) }
func (f fakeFeed[V]) Look(on bool) { f.tell("look %s %v", f.name, on) }

type (
	fakeList        struct{ fakeFeed[runs.RunList] }
	fakeCounts      struct{ fakeFeed[map[string]int64] }
	fakeEvents      struct{ fakeFeed[*histories.EventLog] }
	fakeArtifacts   struct{ fakeFeed[*histories.Artifacts] }
	fakeReplay      struct{ fakeFeed[*histories.Replay] }
	fakeDiff        struct{ fakeFeed[*histories.RunDiff] }
	fakeBooks       struct{ fakeFeed[*playbooks.Playbooks] }
	fakeExperiments struct {
		fakeFeed[*experiments.Experiments]
	}
	fakeEvaluations struct {
		fakeFeed[*evaluations.Evaluated]
	}
	fakeTriage struct{ fakeFeed[*triage.Result] }
	fakeLogs   struct{ fakeFeed[*logs.Logs] }
	fakeTalk   struct {
		fakeFeed[*transcripts.Conversation]
	}
	fakeDetails    struct{ fakeFeed[*sessions.Detail] }
	fakeScoreboard struct {
		fakeFeed[*scoreboard.Scoreboard]
	}
	fakeRunners struct{ fakeFeed[*runners.Runners] }
)

// feeds returns all feeds of the store.
func (s *store) feeds() Feeds {
	detail := fakeFeed[*histories.Detail]{s, "detail", func(c *snapshot) *histories.Detail {
		return c.Detail
	}}
	files := fakeFeed[*sessions.Transcripts]{s, "transcripts", func(c *snapshot) *sessions.Transcripts {
		return c.Transcripts
	}}
	return Feeds{
		Runs: runsview.Feeds{
			List: fakeList{fakeFeed[runs.RunList]{s, "runs", func(c *snapshot) runs.RunList {
				return c.Runs
			}}},
			Facets: fakeFeed[*runs.Facets]{s, "facets", func(c *snapshot) *runs.Facets { return c.Facets }},
			Counts: fakeCounts{fakeFeed[map[string]int64]{s, "counts",
				func(c *snapshot) map[string]int64 { return c.Sections }}},
			Detail: detail,
		},
		Run: runview.Feeds{
			Detail: detail,
			Lineage: fakeFeed[*histories.LineageTree]{s, "lineage", func(c *snapshot) *histories.LineageTree {
				return c.Lineage
			}},
			Artifacts: console.NewArtifacts(fakeArtifacts{fakeFeed[*histories.Artifacts]{s, "artifacts",
				func(c *snapshot) *histories.Artifacts { return c.Artifacts }}}),
		},
		Timeline: fakeEvents{fakeFeed[*histories.EventLog]{s, "events",
			func(c *snapshot) *histories.EventLog { return c.Events }}},
		TimeMachine: fakeReplay{fakeFeed[*histories.Replay]{s, "replay",
			func(c *snapshot) *histories.Replay { return c.Replay }}},
		Verified: fakeFeed[*histories.Verified]{s, "verified", func(c *snapshot) *histories.Verified {
			return c.Verified
		}},
		Diff: fakeDiff{fakeFeed[*histories.RunDiff]{s, "diff", func(c *snapshot) *histories.RunDiff {
			return c.RunDiff
		}}},
		Playbooks: fakeBooks{fakeFeed[*playbooks.Playbooks]{s, "playbook",
			func(c *snapshot) *playbooks.Playbooks { return c.Books }}},
		Experiments: s.experiments(),
		Scoreboard: fakeScoreboard{fakeFeed[*scoreboard.Scoreboard]{s, "scoreboard",
			func(c *snapshot) *scoreboard.Scoreboard { return c.Scoreboard }}},
		Evaluations: fakeEvaluations{fakeFeed[*evaluations.Evaluated]{s, "evaluations",
			func(c *snapshot) *evaluations.Evaluated { return c.Evaluated }}},
		Triage: s.triage(),
		Logs:   fakeLogs{fakeFeed[*logs.Logs]{s, "logs", func(c *snapshot) *logs.Logs { return c.Logs }}},
		Cost: cost.Feeds{Transcripts: files,
			Runs: fakeFeed[*costs.Costs]{s, "costs", func(c *snapshot) *costs.Costs { return c.Costs }}},
		Agents: agentsview.Feeds{
			Transcripts: files,
			Conversations: fakeTalk{fakeFeed[*transcripts.Conversation]{s, "talk",
				func(c *snapshot) *transcripts.Conversation { return c.Talk }}},
			Details: fakeDetails{fakeFeed[*sessions.Detail]{s, "session",
				func(c *snapshot) *sessions.Detail { return c.Details }}},
			Sessions: fakeFeed[*sessions.Sessions]{s, "sessions",
				func(c *snapshot) *sessions.Sessions { return c.Sessions }},
			Approvals: fakeFeed[*sessions.Approvals]{s, "approvals",
				func(c *snapshot) *sessions.Approvals { return c.Approvals }},
		},
		Prompts: fakePrompts{fakeFeed[*phaseprompts.Prompts]{s, "prompts",
			func(c *snapshot) *phaseprompts.Prompts { return c.Prompts }}},
		Runners: fakeRunners{fakeFeed[*runners.Runners]{s, "runners", func(c *snapshot) *runners.Runners {
			return c.Runners
		}}},
		Health: fakeFeed[*system.System]{s, "health", func(c *snapshot) *system.System { return c.System }},
	}
}

func (s *store) experiments() fakeExperiments {
	return fakeExperiments{fakeFeed[*experiments.Experiments]{s, "experiments",
		func(c *snapshot) *experiments.Experiments { return c.Experiments }}}
}

func (s *store) triage() fakeTriage {
	return fakeTriage{fakeFeed[*triage.Result]{s, "triage", func(c *snapshot) *triage.Result {
		return c.Triage
	}}}
}

// actions returns the actions of a console, which the store records.
func (s *store) actions() console.Actions {
	return console.Actions{Runs: s, Launch: s, Forks: s, Sessions: s, Runners: s, Flows: s, Reviews: s}
}

func (s *store) tell(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, fmt.Sprintf(format, args...))
}

func (s *store) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.told...)
}

func (s *store) Connection() cluster.Connection { return s.current().Connection }
func (s *store) SetQuery(q string)              { s.tell("query %s", q) }
func (s *store) Select(id runs.ID)              { s.tell("select %s %s", id.WorkflowID, id.RunID) }
func (s *store) Refresh()                       { s.tell("refresh") }
func (s *store) FindRun(_ context.Context, name string) (runs.Run, error) {
	if strings.HasPrefix(name, "no") {
		return runs.Run{}, runs.ErrNotFound.Of(name)
	}
	return runs.Run{WorkflowID: name, RunID: "run-" + name, Status: ace.Completed, Start: noon, Close: noon}, nil
}
func (s *store) SetPaused(paused bool) { s.tell("paused %v", paused) }
func (s *store) VerifyRun(strict bool) { s.tell("verify %v", strict) }
func (s *store) StartWork(ctx context.Context, label string) (context.Context, func(done, total int64),
	func()) {
	return ctx, func(int64, int64) {}, func() {}
}
func (s *store) Compare(ask histories.DiffAsk) {
	s.tell("diff %s %s %v", ask.A.WorkflowID, ask.B.WorkflowID, ask.AllFields)
}
func (s *store) VerifyRuns(w histories.VerifyRequest) {
	s.tell("verify %d runs of %q %v", len(w.Runs), w.Query, w.Strict)
}

func (s fakeList) Show(runIDs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onScreen = runIDs
}

func (s fakeList) Load(part runs.Load) {
	s.tell("%s", map[runs.Load]string{runs.LoadOlder: "more", runs.LoadNewer: "newer",
		runs.LoadFirst: "first",
		runs.LoadLast:  "last", runs.StopWalk: "stop"}[part])
}

func (s fakeArtifacts) Open(r ace.Ref)             { s.tell("artifact %s", r.SHA256) }
func (s fakeEvents) Open(id int64)                 { s.tell("open %d", id) }
func (s fakeReplay) StepTo(event int64)            { s.tell("step to %d", event) }
func (s fakeReplay) WritePage()                    { s.tell("write page") }
func (s fakeReplay) StepToWrong()                  { s.tell("step to wrong") }
func (s fakeReplay) StepToPosition(pos int)        { s.tell("step to position %d", pos) }
func (s fakeReplay) WatchValue(expr string)        { s.tell("watch %s", expr) }
func (s fakeReplay) NextWatched(forward bool)      { s.tell("next change %v", forward) }
func (s fakeBooks) Refine(w playbooks.Ask)         { s.tell("books %+v", w) }
func (s fakeBooks) Again()                         { s.tell("read books") }
func (s fakeEvaluations) Refine(id string)         { s.tell("evaluations %s", id) }
func (s fakeExperiments) Show(ids []string)        { s.tell("experiments %v", ids) }
func (s fakeTriage) SetWindow(n int)               { s.tell("window %d", n) }
func (s fakeTriage) SetSince(d time.Duration)      { s.tell("since %s", d) }
func (s fakeTriage) Stop()                         { s.tell("stop") }
func (s fakeTriage) Again()                        { s.tell("scan") }
func (s fakeLogs) FollowLogs(paths []string)       { s.tell("follow %q", paths) }
func (s fakeLogs) FollowCalls(ref ace.Ref)         { s.tell("calls %s", ref.SHA256) }
func (s fakeTalk) Want(path string) bool           { s.tell("talk %s", path); return true }
func (s fakeDetails) Want(id string) bool          { s.tell("session %s", id); return true }
func (s fakeRunners) Refine(id string)             { s.tell("runner %s", id) }
func (s fakeScoreboard) Want(batch string) bool    { s.tell("scoreboard %s", batch); return true }
func (s fakeDiff) Want(ask histories.DiffAsk) bool { s.Compare(ask); return true }
func (s fakeDiff) Again()                          { s.tell("diff again") }
func (s fakeEvents) Filter(f histories.EventFilter) {
	s.tell("events /%s/ !/%s/ full=%v", f.Include, f.Exclude, f.Full)
}
func (s fakeReplay) StepMove(by stepper.By, forward bool) {
	s.tell("step by %d %v", by, forward)
}

func (s *store) Cancel(_ context.Context, w, r string) error {
	s.tell("cancel %s %s", w, r)
	return nil
}

func (s *store) StartChoices(_ context.Context, dirs []string) console.StartChoices {
	return console.StartChoices{Agents: []string{"claude", "codex"}, Dirs: dirs,
		Install: map[string]string{"gemini": "npm install -g @google/gemini-cli",
			"opencode": "npm install -g opencode-ai"}}
}

func (s *store) StartSession(_ context.Context, in session.Input, first string) (string, error) {
	s.tell("start %s in %s model %q name %q: %q", in.Agent, in.WorkingDir, in.Model, in.Name, first)
	return "s-new", nil
}

func (s *store) SendMessage(_ context.Context, id, message string) (int, error) {
	s.tell("send %s %q", id, message)
	return 1, nil
}

func (s *store) DecideCall(_ context.Context, id, call string, allow bool, reason string) error {
	s.tell("decide %s %s %v %q", id, call, allow, reason)
	return nil
}

func (s *store) DecideReview(_ context.Context, of runs.ID, d ace.ReviewDecision) error {
	data, err := json.Marshal(d)
	s.tell("review %s %s", of.WorkflowID, data)
	return err
}

func (s *store) DecideFlow(_ context.Context, of runs.ID, step string, approved bool, comment string) error {
	s.tell("decide flow %s %s %s %v %q", of.WorkflowID, of.RunID, step, approved, comment)
	return nil
}

func (s *store) InterruptSession(_ context.Context, id string) error {
	s.tell("interrupt %s", id)
	return nil
}

func (s *store) StopSession(_ context.Context, id string) error {
	s.tell("stop %s", id)
	return nil
}

func (s *store) StopRun(_ context.Context, id string) error {
	s.tell("stop run %s", id)
	return nil
}

func (s *store) StartDemo(context.Context) error {
	s.tell("demo")
	return nil
}

func (s *store) ExportPlaybook(_ context.Context, version, path, form string) ([]string, error) {
	s.tell("export %s %s %s", version, path, form)
	return []string{path + ": 2 bullets"}, nil
}

func (s *store) DrainRunner(_ context.Context, id string) error {
	s.tell("drain %s", id)
	return nil
}

func (s *store) Arguments(_ context.Context, ref ace.Ref) ([]byte, error) {
	s.tell("arguments %s", ref.SHA256)
	return []byte(`{"command":"echo whole"}`), nil
}

func (s *store) LaunchDefaults() map[string]string {
	return map[string]string{"dataset": "", "eval": "", "expected": "", "provider": "builtin", "model": "",
		"playbook": "", "epochs": "1", "adapter": "offline", "window": "0", "eval-every": "0",
		"max-cost": "0", "review": "false",
		"experiment": ""}
}

func (s *store) CheckLaunch(_ context.Context, args []string) (wrong []error, warnings []string) {
	if slices.Contains(args, "0") {
		return []error{errors.New("--epochs 0: must be from 1 to 1000")}, nil
	}
	return nil, nil
}

func (s *store) Launch(_ context.Context, args []string) (runs.Run, error) {
	s.tell("launch %q", args)
	if slices.Contains(args, "--") {
		return runs.Run{WorkflowID: "ace/adhoc-1", RunID: "r1", TaskID: "adhoc-1", Type: ace.TaskWorkflow},
			nil
	}
	return runs.Run{WorkflowID: "ace-experiment/new", RunID: "r1", Experiment: "new",
		Type: ace.ExperimentWorkflow}, nil
}

func (s *store) Choices(_ context.Context, field string) []string {
	return map[string][]string{"provider": {"builtin", "anthropic"}, "model": {"claude-1"},
		"model.anthropic": {"claude-1"},
		"playbook":        {"finance-6", "finance-7"}}[field]
}

func (s *store) PromptBase(_ context.Context, phase ace.Phase, ref string) (prompts.Prompt, error) {
	p := prompts.Default(phase)
	if name, _, ok := strings.Cut(ref, "@"); ok {
		p.PhasePrompt.Name, p.PhasePrompt.Version = name, 1
	}
	return p, nil
}

func (s *store) PutPrompt(_ context.Context, phase ace.Phase, name, text, from string) (prompts.Prompt,
	error) {
	if _, err := prompts.Parse(phase, text); err != nil {
		return prompts.Prompt{}, err
	}
	s.tell("put prompt %s/%s from %s: %q", phase, name, from, text)
	return prompts.Prompt{Phase: phase, PhasePrompt: ace.PhasePrompt{Name: name, Version: 2}}, nil
}

func (s *store) Original(_ context.Context, of runs.ID) (runs.Original, error) {
	s.tell("original %s %s", of.WorkflowID, of.RunID)
	return runs.Original{
		Fields: []runs.Field{{Name: "prompt", Value: "What is 3 + 4?"}, {Name: "label", Value: "7"},
			{Name: "provider", Value: "builtin"}, {Name: "model", Value: "small"}},
		Plan: func(_ context.Context, at runs.Point, fields []runs.Field) (runs.Prepared, error) {
			p := prepared(s, "fork")
			p.Lines = append(p.Lines, fmt.Sprintf("plan %v %q", at, fields))
			do := p.Do
			p.Do = func(ctx context.Context) (string, runs.Run, error) {
				s.tell("fork %v %v %q", of, at, fields)
				return do(ctx)
			}
			return p, nil
		}}, nil
}

func (s *store) Matching(_ context.Context, query string, limit int) ([]runs.Run, error) {
	s.tell("read %d runs of %q", limit, query)
	return many(300), nil
}

func (s *store) PlanForks(_ context.Context, originals []runs.Run, c runs.Change, progress runs.Progress) (
	runs.Batch, error,
) {
	s.tell("plan %d forks %v %q", len(originals), c.At, c.Fields)
	progress(int64(len(originals)), int64(len(originals)))
	return runs.Batch{ID: "forks-1", Title: fmt.Sprintf("Fork %d runs?", len(originals)),
		Yes:   "fork the runs",
		Lines: []string{"costs       about $0.12"},
		Do: func(_ context.Context, progress runs.Progress) (int, error) {
			s.tell("start forks")
			progress(1, 1)
			return len(originals), nil
		}}, nil
}

func prepared(s *store, what string) runs.Prepared {
	return runs.Prepared{Title: what + "?", Lines: []string{"workflow    ace/q-7", "costs       nothing"},
		Yes: "do it",
		Do: func(context.Context) (string, runs.Run, error) {
			s.tell("do %s", what)
			return what + " done", runs.Run{WorkflowID: "ace/q-7~f1", RunID: "r9", TaskID: "q-7~f1"}, nil
		}}
}

func (s *store) Freeze(_ context.Context, w string) (runs.ID, error) {
	s.tell("freeze %s", w)
	return runs.ID{w, "frozen"}, nil
}

func (s *store) Prepare(_ context.Context, of runs.ID, c runs.Change) (runs.Prepared, error) {
	switch c.Verb {
	case "fork":
		at := fmt.Sprint(c.At)
		if c.Step != "" {
			at += " from " + c.Step
		}
		s.tell("fork %v %s %q", of, at, c.Fields)
	case "reset":
		s.tell("reset %v %v %q", of, c.At, c.Reason)
	case "terminate":
		s.tell("terminate %v %q", of, c.Reason)
	case "signal":
		s.tell("signal %v %s %s", of, c.Signal, c.Argument)
	}
	return prepared(s, c.Verb), nil
}

// screen is a console under test.
type screen struct {
	t             testing.TB
	store         *store
	shared        *console.Console
	model         *tui.Model
	screens       []tui.Screen
	width, height int
}

func newScreen(t testing.TB, snap *snapshot, s theme.Styles, width, height int) *screen {
	t.Helper()
	st := newStore(snap)
	return newScreenOf(t, st, console.Options{Controls: st, Actions: st.actions(), Location: time.UTC}, s,
		width, height)
}

// newScreenOf is newScreen with other options. It begins on the list of runs.
func newScreenOf(t testing.TB, st *store, o console.Options, s theme.Styles, width, height int) *screen {
	t.Helper()
	sc := firstScreen(t, st, o, s)
	sc.model.Open("runs")
	st.mu.Lock()
	st.told = slices.DeleteFunc(st.told, func(told string) bool {
		return !strings.HasPrefix(told, "select ")
	})
	st.mu.Unlock()
	sc.resize(width, height)
	return sc
}

// newOverview is newScreen, but begins on the overview, as a user does.
func newOverview(t testing.TB, snap *snapshot, width, height int) *screen {
	t.Helper()
	st := newStore(snap)
	sc := firstScreen(t, st, console.Options{Controls: st, Actions: st.actions(), Location: time.UTC},
		plainLook)
	sc.resize(width, height)
	sc.plain() // rows are arranged as they are drawn
	return sc
}

func firstScreen(t testing.TB, st *store, o console.Options, s theme.Styles) *screen {
	t.Helper()
	c := console.New(o, st.feeds().Run.Detail)
	screens, global := screens(c, o.Actions, st.feeds()), bindings(c)
	m, err := tui.New(tui.Options{Source: st, Screens: screens, Global: global, Styles: s,
		Frame: time.Nanosecond, Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	return &screen{t: t, store: st, shared: c, model: m, screens: screens}
}

// named returns a screen by name.
func (s *screen) named(name string) tui.Screen {
	s.t.Helper()
	for _, sc := range s.screens {
		if sc.Name == name {
			return sc
		}
	}
	s.t.Fatalf("there is no screen %s", name)
	return tui.Screen{}
}

func (s *screen) resize(width, height int) {
	s.width, s.height = width, height
	s.model.Update(tea.WindowSizeMsg{Width: width, Height: height})
}

// show delivers a snapshot as in a running program: through the command that waits for a change.
func (s *screen) show(snap *snapshot) {
	s.t.Helper()
	s.store.set(snap)
	s.model.Update(s.waited())
}

// waited returns the message of the waiting command. Init batches it with the clock, which fires a second
// later, so the snapshot comes first.
func (s *screen) waited() tea.Msg {
	s.t.Helper()
	batch, ok := s.model.Init()().(tea.BatchMsg)
	if !ok {
		s.t.Fatal("Init starts no batch")
	}
	return batch[0]()
}

// press types keys by name and returns the command of the last one.
func (s *screen) press(names ...string) tea.Cmd {
	var cmd tea.Cmd
	for _, n := range names {
		_, cmd = s.model.Update(keyPress(n))
		s.model.View() // as a program does after every message
	}
	return cmd
}

func keyPress(name string) tea.KeyPressMsg {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab,
		"up": tea.KeyUp, "down": tea.KeyDown,
		"home": tea.KeyHome, "end": tea.KeyEnd, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
		"backspace": tea.KeyBackspace}
	if code, ok := special[name]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	if len(name) > 5 && name[:5] == "ctrl+" {
		return tea.KeyPressMsg{Code: rune(name[5]), Mod: tea.ModCtrl}
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

// drawn returns the screen and checks that it has the size of the terminal.
func (s *screen) drawn() string {
	s.t.Helper()
	out := s.model.View().Content
	lines := splitLines(out)
	if len(lines) != s.height {
		s.t.Errorf("frame has %d lines, not %d", len(lines), s.height)
	}
	for i, l := range lines {
		if w := text.Width(l); w != s.width {
			s.t.Errorf("line %d is %d wide, not %d: %q", i, w, s.width, ansi.Strip(l))
		}
	}
	return out
}

func (s *screen) plain() string { return ansi.Strip(s.drawn()) }

func splitLines(s string) []string {
	var lines []string
	for start, i := 0, 0; i <= len(s); i++ {
		if i == len(s) || s[i] == '\n' {
			lines = append(lines, s[start:i])
			start = i + 1
		}
	}
	return lines
}

// ready returns a snapshot of a connected console with these runs.
func ready(rows ...runs.Run) *snapshot {
	return &snapshot{
		At: noon,
		Connection: cluster.Connection{State: cluster.ConnReady, Mode: "embedded", Namespace: "ace-dev",
			Since: noon.Add(-time.Minute)},
		Runs: runs.RunList{Rows: rows, Total: int64(len(rows)), Loaded: noon.Add(-time.Second),
			Interval: 2 * time.Second, ErrAt: -1},
	}
}

// many returns n runs of every kind, newest first.
func many(n int) []runs.Run {
	exits := []ace.Status{ace.Completed, ace.Completed, ace.Completed, ace.Completed, ace.Failed,
		ace.Canceled, ace.TimedOut}
	verdicts := []ace.Verdict{ace.Correct, ace.Correct, ace.Wrong, ace.Unlabeled, ace.Ungraded, ace.Ungraded,
		ace.Ungraded}
	rows := make([]runs.Run, n)
	for i := range rows {
		id := fmt.Sprintf("q-%05d", n-i)
		r := runs.Run{WorkflowID: "ace/" + id, RunID: "run-" + id, Type: ace.TaskWorkflow, TaskID: id,
			Experiment: "finance-7",
			Dataset:    "finance", Model: "builtin", Adapter: "offline", Status: exits[i%len(exits)],
			Verdict: verdicts[i%len(exits)], Phase: ace.PhaseDone,
			Start: noon.Add(-time.Duration(4*i+4) * time.Second)}
		if i < 3 {
			r.Status, r.Verdict, r.Phase = ace.Running, "", ace.Steps()[(i+1)%5]
		} else {
			r.Close = r.Start.Add(time.Duration(800+37*(i%40)) * time.Millisecond)
			r.Summary = &ace.Summary{Skills: 7 + i%4, SkillsOK: 5 + i%3, Added: i % 3, Updated: i % 2,
				Tagged: 2,
				Usage:  ace.Usage{InputTokens: 900, OutputTokens: 120, CostUSD: 0.009 + float64(i%7)/1000}}
		}
		if i == 2 {
			r.Attempt, r.LastError = 4, "connection refused"
		}
		rows[i] = r
	}
	return rows
}

// full returns a snapshot with runs and the detail of the first.
func full(n int) *snapshot {
	s := ready(many(n)...)
	s.Runs.Total = 10_214
	s.Runs.More = true
	s.Runs.Query = `ExperimentId="finance-7"`
	s.Runs.Counts = runs.Counts{Status: map[ace.Status]int64{ace.Running: 3, ace.Completed: 10_202,
		ace.Failed: 9}, Wrong: 398}
	s.Detail = detailOf(s.Runs.Rows[0])
	return s
}

func detailOf(r runs.Run) *histories.Detail {
	yes, label := true, "0.172"
	start := r.Start
	d := &histories.Detail{WorkflowID: r.WorkflowID, RunID: r.RunID, Type: r.Type, Start: start, Events: 42,
		From: runs.FromQuery, Updated: noon}
	d.Phase = ace.PhaseAnswer{Phase: ace.PhaseReflector, Status: ace.Running, Answer: "0.172", Correct: &yes,
		Usage: ace.Usage{InputTokens: 1804, OutputTokens: 211, CostUSD: 0.0123},
		Steps: []ace.StepState{
			{Phase: ace.PhaseGenerator, Status: ace.StatusDone,
				Time: &ace.StepTime{DurationMS: 812, Attempt: 1}},
			{Phase: ace.PhaseSkills, Status: ace.StatusDone,
				Time: &ace.StepTime{DurationMS: 1430, Attempt: 2}},
			{Phase: ace.PhaseReflector, Status: ace.StatusRunning},
			{Phase: ace.PhaseCurator, Status: ace.StatusPending},
			{Phase: ace.PhasePersist, Status: ace.StatusPending},
		}}
	d.Skills = ace.SkillAnswer{Total: 7, Skills: []ace.SkillUsage{
		{Name: "calculate", Calls: 2, OK: 1, Denied: 1, P50MS: 12, P95MS: 80, LastAt: noon.Add(-time.Second)},
		{Name: "lookup", Calls: 5, OK: 4, Failed: 1, P50MS: 2.4, P95MS: 4, LastAt: noon.Add(-2 * time.Second),
			LastError: "no such formula: retrun on equity"},
	}, Recent: []ace.Call{
		{Invocation: ace.Invocation{ID: "1", Name: "lookup",
			Args: json.RawMessage(`{"name":"retrun on equity"}`), Accepted: true, At: start.Add(time.Second),
			DurationMS: 4, Error: "no such formula: retrun on equity"}},
		{Invocation: ace.Invocation{ID: "2", Name: "lookup",
			Args:   json.RawMessage(`{"name":"return on equity"}`),
			Result: json.RawMessage(`"net income / equity"`), Accepted: true, OK: true,
			At: start.Add(2 * time.Second), DurationMS: 2.4}},
		{Invocation: ace.Invocation{ID: "3", Name: "calculate", Args: json.RawMessage(`{"expr":"rm -rf"}`),
			At: start.Add(2 * time.Second)}},
		{Invocation: ace.Invocation{ID: "4", Name: "calculate", Args: json.RawMessage(`{"expr":"17.2/100"}`),
			Result: json.RawMessage(`0.172`), Accepted: true, OK: true, At: start.Add(3 * time.Second),
			DurationMS: 12}},
	}}
	d.Delta = ace.DeltaAnswer{PlaybookBefore: "6fe1c0ffee00112233", PlaybookAfter: "a41bc0ffee00112233",
		Bullets: 42,
		Operations: []ace.Operation{
			{Type: ace.OpAdd, BulletID: "calc-00412",
				Content: "Return on equity: net income divided by shareholders' equity, as a fraction.",
				Outcome: ace.OutcomeAccepted},
			{Type: ace.OpUpdate, BulletID: "calc-00007", Content: "Round to three places only at the end.",
				Outcome: ace.OutcomeAccepted},
			{Type: ace.OpRemove, BulletID: "calc-00031", Outcome: ace.OutcomeAccepted},
			{Type: ace.OpTag, BulletID: "calc-00002", Metadata: map[string]int{"helpful": 1},
				Outcome: ace.OutcomeAccepted},
			{Type: ace.OpAdd, Content: "Return on equity is income by equity.", Outcome: ace.OutcomeRejected,
				Reason: "exact duplicate of calc-00412"},
		}, Insights: "The formula was looked up under a misspelt name first.",
		Rationale:  "One recipe was missing.",
		BulletTags: []ace.BulletTag{{ID: "calc-00002", Tag: "helpful"}}}
	d.Input = ace.TaskInput{TaskID: r.TaskID,
		Prompt: "Compute the return on equity for net income 17.2 and equity 100.", Label: &label,
		Model:    "builtin",
		Provider: "builtin", Adapter: ace.Offline, ExperimentID: "finance-7", DatasetID: "finance",
		PlaybookHash: "6fe1c0ffee00112233"}
	d.Pending = []histories.PendingActivity{{Type: ace.ActivityReflector, State: "scheduled", Attempt: 3,
		LastError: "model: 529 overloaded", Since: noon.Add(-7 * time.Second)}}
	for i := range 30 {
		kind := []string{"phase", "skill", "skill", "delta", "status", "error"}[i%6]
		d.Log = append(d.Log, runs.LogLine{Event: int64(i),
			At: start.Add(time.Duration(i) * 100 * time.Millisecond), Kind: kind,
			Text: fmt.Sprintf("%s line %d", kind, i)})
	}
	d.LogDropped = 12
	return d
}

func (fakeCounts) Count([]string) {}
