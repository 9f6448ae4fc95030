package fork_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/fork"
	"acescope/engine/temporal/replay/replaytest"
)

func original(t *testing.T, name string) *fork.Original {
	t.Helper()
	o, err := fork.Read("", "", replaytest.Recorded(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// At every event of a run a fork reuses the recorded results, or the point is rejected because
// nothing is left to rerun.
func TestEveryEvent(t *testing.T) {
	for _, name := range []string{"right", "retried", "failed", "cancelled", "live", "fork", "fork-large"} {
		o := original(t, name)
		taken := 0
		for n := int64(1); n <= o.Last(); n++ {
			p, err := o.Plan(fork.Point{Event: n}, fork.Changes{})
			if errors.Is(err, fork.ErrPoint) && strings.Contains(err.Error(), "every step is done") {
				continue
			}
			if err != nil {
				t.Fatalf("%s, event %d: %v", name, n, err)
			}
			if len(p.Reused) < taken || len(p.Reused)+len(p.Rerun) != 5 || p.Rerun[0].Phase != p.Phase {
				t.Errorf("%s, event %d: takes %v, executes %v", name, n, p.Reused, p.Rerun)
			}
			taken = len(p.Reused)
			var s ace.State
			s.Apply(ace.Started(p.Input))
			if s.Phase != p.Phase || s.Failure != nil || len(p.Input.Fork.Steps) != taken {
				t.Errorf("%s, event %d: the fork begins in %s with %d results, not in %s with %d: %v", name,
					n, s.Phase, len(p.Input.Fork.Steps), p.Phase, taken, s.Failure)
			}
		}
	}
}

func TestPoints(t *testing.T) {
	right, failed := original(t, "right"), original(t, "failed")
	for name, c := range map[string]struct {
		of   *fork.Original
		at   fork.Point
		want string
	}{
		"before":      {right, fork.Point{Event: -1}, "event -1 not found"},
		"behind":      {right, fork.Point{Event: 999}, "the history has events 1 to 38"},
		"unknown":     {right, fork.Point{Phase: "cooking"}, "not found; phases are"},
		"done":        {right, fork.Point{Phase: ace.PhaseDone}, "not found; phases are"},
		"not reached": {failed, fork.Point{Phase: ace.PhaseCurator}, "generator has no recorded result"},
	} {
		if _, err := c.of.Plan(c.at, fork.Changes{}); !errors.Is(err, fork.ErrPoint) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := fork.Read("", "", replaytest.Recorded(t, "experiment")); !errors.Is(err, fork.ErrForeign) ||
		!strings.Contains(err.Error(), ace.ExperimentWorkflow) {
		t.Errorf("an experiment: %v", err)
	}
	if _, err := fork.Read("", "", nil); !errors.Is(err, fork.ErrForeign) {
		t.Errorf("nothing: %v", err)
	}
}

func text(s string) *string { return &s }

// The estimate of a fork covers the original's usage of the steps to rerun only.
func TestEstimate(t *testing.T) {
	o := original(t, "right")
	p, err := o.Plan(fork.Point{Phase: ace.PhaseGenerator}, fork.Changes{})
	if err != nil || !p.Costs() || p.Estimate.CostUSD != 0.001 ||
		!reflect.DeepEqual(p.Unknown, []ace.Phase{"skills", "reflector", "curator"}) {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = o.Plan(fork.Point{Phase: ace.PhaseReflector}, fork.Changes{Provider: text(ace.Builtin)})
	if err != nil || p.Costs() || p.Estimate != (ace.Usage{}) ||
		p.Changed["provider"] != (ace.ForkChange{From: "scripted", To: "builtin"}) {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = o.Plan(fork.Point{Phase: ace.PhasePersist}, fork.Changes{})
	if err != nil || p.Costs() || !p.Same() || !p.OwnBranch || p.Input.ExperimentID != "fork/right" {
		t.Errorf("%+v, %v", p, err)
	}
}

// A changed prompt reruns its phase and the later ones, and is refused where its phase is not rerun.
func TestPhasePrompts(t *testing.T) {
	o := original(t, "right")
	brief := &ace.PhasePrompt{Name: "brief", Version: 2}
	both := map[ace.Phase]*ace.PhasePrompt{ace.PhaseCurator: nil, ace.PhaseReflector: brief}
	p, err := o.Plan(fork.Point{}, fork.Changes{Prompts: both})
	if err != nil || p.Phase != ace.PhaseReflector ||
		!reflect.DeepEqual(p.Reused, []ace.Phase{"generator", "skills"}) ||
		p.Rerun[0].Prompt.Name != "brief" {
		t.Fatalf("%+v, %v", p, err)
	}
	want := map[string]ace.ForkChange{"prompts.reflector": {From: "default", To: "brief@2"}}
	if !reflect.DeepEqual(p.Changed, want) || p.Input.Prompts.String() != "reflector brief@2" ||
		o.Input.Prompts != nil {
		t.Errorf("changed %v, prompts %v, original %v", p.Changed, p.Input.Prompts, o.Input.Prompts)
	}
	again := *o
	again.Input = p.Input
	p, err = again.Plan(fork.Point{Phase: ace.PhaseGenerator},
		fork.Changes{Prompts: map[ace.Phase]*ace.PhasePrompt{ace.PhaseReflector: nil}})
	if err != nil || p.Input.Prompts != nil || p.Changed["prompts.reflector"].To != "default" ||
		again.Input.Prompts == nil {
		t.Errorf("back to the default: %v, %v, %v", p.Input.Prompts, p.Changed, err)
	}
	if _, err := o.Plan(fork.Point{Phase: ace.PhaseCurator}, fork.Changes{Prompts: both}); !errors.Is(err,
		fork.ErrNoChange) || !strings.Contains(err.Error(), "reuses the result of the reflector") {
		t.Errorf("too late: %v", err)
	}
}

// A fork waits for the review of its operations only if it merges into a branch that the user names.
func TestReview(t *testing.T) {
	o := original(t, "review-approved")
	if o.Input.Review == nil {
		t.Fatal("the original asks for no review")
	}
	for _, c := range []struct {
		branch *string
		want   bool
	}{{nil, false}, {text("shared"), true}} {
		p, err := o.Plan(fork.Point{Phase: ace.PhaseCurator}, fork.Changes{Branch: c.branch})
		if err != nil || (p.Input.Review != nil) != c.want {
			t.Errorf("review %v, want %v; %v", p.Input.Review, c.want, err)
		}
	}
}

func TestSet(t *testing.T) {
	o := original(t, "right")
	for _, c := range []struct {
		set  string
		get  func(ace.TaskInput) any
		want any
	}{
		{"label=7", func(in ace.TaskInput) any { return *in.Label }, "7"},
		{`label="7"`, func(in ace.TaskInput) any { return *in.Label }, "7"},
		{"label=null", func(in ace.TaskInput) any { return in.Label == nil }, true},
		{"adapter=online", func(in ace.TaskInput) any { return in.Adapter }, ace.Online},
		{"dataset_id=d", func(in ace.TaskInput) any { return in.DatasetID }, "d"},
		{"experiment_id=e", func(in ace.TaskInput) any { return in.ExperimentID }, "e"},
		{"epoch=3", func(in ace.TaskInput) any { return in.Epoch }, 3},
		{"index=4", func(in ace.TaskInput) any { return in.Index }, 4},
		{"pace_ms=50", func(in ace.TaskInput) any { return in.PaceMS }, int64(50)},
		{"skills_config.allowed_tools=a, b", func(in ace.TaskInput) any {
			return in.SkillsConfig.AllowedTools
		}, []string{"a", "b"}},
		{`skills_config.allowed_tools=["c"]`, func(in ace.TaskInput) any {
			return in.SkillsConfig.AllowedTools
		}, []string{"c"}},
		{"skills_config.permission_mode=ask", func(in ace.TaskInput) any {
			return in.SkillsConfig.PermissionMode
		}, "ask"},
		{"steps.curator=builtin", func(in ace.TaskInput) any { return in.ProviderOf(ace.PhaseCurator) },
			"builtin"},
	} {
		s, err := fork.ParseSetting(c.set)
		if err != nil {
			t.Fatal(err)
		}
		p, err := o.Plan(fork.Point{Phase: ace.PhaseSkills}, fork.Changes{Set: []fork.Setting{s}})
		if err != nil || !reflect.DeepEqual(c.get(p.Input), c.want) || len(p.Changed) != 1 {
			t.Errorf("%s: %+v, changed %v, %v", c.set, p.Input, p.Changed, err)
		}
	}
	if o.Input.Steps != nil || *o.Input.Label != "42" {
		t.Error("the original's input was changed")
	}
	for _, bad := range []string{"label", "model=x", "task_id=x", "steps.persist=x", "skills_config=x",
		"=x"} {
		if _, err := fork.ParseSetting(bad); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	for _, bad := range []string{"adapter=x", "epoch=-1", "pace_ms=fast", `label="x`,
		"skills_config.allowed_tools=[1]"} {
		s, _ := fork.ParseSetting(bad)
		if _, err := o.Plan(fork.Point{Phase: ace.PhaseSkills},
			fork.Changes{Set: []fork.Setting{s}}); !errors.Is(err, fork.ErrNoChange) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// A reset keeps everything up to the point, and is at the end of a workflow task.
func TestResetAt(t *testing.T) {
	all := replaytest.Recorded(t, "right")
	for n := int64(1); n <= int64(len(all)); n++ {
		r, err := fork.ResetAt(all, fork.Point{Event: n})
		if err != nil || r.Event <= n && r.Event != lastTask(all) || r.Kept != r.Event-1 ||
			r.Kept+r.Lost != int64(len(all)) {
			t.Errorf("event %d: %+v, %v", n, r, err)
		}
	}
	var at []string
	for _, p := range ace.Steps() {
		r, err := fork.ResetAt(all, fork.Point{Phase: p})
		if err != nil || all[r.Event-1].GetWorkflowTaskCompletedEventAttributes() == nil {
			t.Errorf("%s: %+v, %v", p, r, err)
		}
		at = append(at, fmt.Sprint(r.Event))
	}
	if len(at) != 5 || at[0] != "4" {
		t.Errorf("phases begin at %v", at)
	}
	for _, bad := range []fork.Point{{Event: 0}, {Event: 999}, {Phase: "cooking"}} {
		if _, err := fork.ResetAt(all, bad); !errors.Is(err, fork.ErrPoint) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := fork.ResetAt(all[:2], fork.Point{Event: 1}); !errors.Is(err, fork.ErrPoint) {
		t.Errorf("before any task ended: %v", err)
	}
}

func lastTask(all []*historypb.HistoryEvent) (id int64) {
	for _, e := range all {
		if e.GetWorkflowTaskCompletedEventAttributes() != nil {
			id = e.GetEventId()
		}
	}
	return id
}

// A fork of a run with several answers reuses those before its point, and begins in the same phase after as
// many passes.
func TestEveryEventOfRounds(t *testing.T) {
	o := original(t, "rounds")
	taken := 0
	for n := int64(1); n <= o.Last(); n++ {
		p, err := o.Plan(fork.Point{Event: n}, fork.Changes{})
		if errors.Is(err, fork.ErrPoint) && strings.Contains(err.Error(), "every step is done") {
			continue
		}
		if err != nil {
			t.Fatalf("event %d: %v", n, err)
		}
		results := len(p.Input.Fork.Steps)
		for _, steps := range p.Input.Fork.Passes {
			results += len(steps)
		}
		var s ace.State
		s.Apply(ace.Started(p.Input))
		if s.Phase != p.Phase || s.Failure != nil || results < taken ||
			len(s.Passes) < len(p.Input.Fork.Passes) {
			t.Errorf("event %d: the fork begins in %s after %d passes with %d results, not in %s", n, s.Phase,
				len(s.Passes), results, p.Phase)
		}
		taken = results
	}
	// the first answer, three rounds, curator and persist, and most of the answer afterwards
	if taken != 3+3*3+2+2 {
		t.Errorf("%d results are reused at the end", taken)
	}
	p, err := o.Plan(fork.Point{Phase: ace.PhaseCurator}, fork.Changes{})
	if err != nil || len(p.Input.Fork.Passes) != 3 || len(p.Input.Fork.Passes[2]) != 3 {
		t.Fatalf("%+v, %v", p.Input.Fork.Passes, err)
	}
}
