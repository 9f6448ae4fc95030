package observe

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/agents/observe/spool"
)

// TestPoison checks that records above the server's limit are delivered shortened, that refused ones
// are in quarantine, and that neither blocks the others. The refused ones can be delivered again.
func TestPoison(t *testing.T) {
	h, dir := newFakeServer(), filepath.Join(t.TempDir(), "spool")
	h.poison = "poison"
	lines := hooks(t)
	appendHooks(t, dir, lines[:2]...)
	call := func(id, name, key, value string) string {
		return string(mustJSON(map[string]string{"session_id": "5e551011-0000-4000-8000-000000000001",
			"hook_event_name": name, "tool_name": "Bash", "tool_use_id": id, key: value}))
	}
	large := strings.Repeat("x", 3<<20)
	appendHooks(t, dir, call("large", "PreToolUse", "tool_input", "i"),
		call("large", "PostToolUseFailure", "error", large),
		call("poison", "PreToolUse", "tool_input", "p"))
	b := &recorder{emit: func(o Observation) {
		if err := spool.Append(dir, spool.Event, mustJSON(o)); err != nil {
			t.Error(err)
		}
	}}
	b.Start(ace.TaskInput{TaskID: "t", Prompt: large})
	b.Step("t", ace.PhaseGenerator, ace.GeneratorResult{Plan: large}, nil)
	b.Step("t", ace.PhaseSkills, ace.SkillSessionResult{Invocations: []ace.Invocation{{ID: "i", Name: "look",
		OK:     true,
		Result: mustJSON(large)}}}, nil)
	b.Finish("t", ace.Finish{Answer: large}, nil)
	b.ToolEvent("elsewhere", ace.ToolEvent{Kind: ace.KindMessage, Name: "poison"})
	appendHooks(t, dir, lines[2:]...)
	end := forward(t, h, dir, nil)
	var status Status
	var err error
	h.until(t, "all records are delivered or in quarantine", func() bool {
		status, err = ReadStatus(dir)
		return err == nil && status.Waiting == 0 && status.Quarantined > 1
	})
	end(false)
	if r := h.newest(hookRun); r == nil || !r.state.Finished() {
		t.Error("the run of the hooks is open")
	}
	if s := &h.newest("ace/t").state; s.Reported != ace.Completed || s.SkillUsage().Total != 1 ||
		s.Input.PromptRef == nil {
		t.Errorf("%+v", s.CurrentPhase())
	}
	// The end of the session reports the poisoned call once more.
	if err != nil || status.Waiting != 0 || status.Failure != "" || status.Quarantined != 3 ||
		!strings.HasPrefix(status.Reason, "Blob data size") ||
		!strings.Contains(status.Advice(), "extra-again") {
		t.Fatalf("%+v, %v", status, err)
	}

	h.poison = ""
	if err := os.Rename(status.File, filepath.Join(dir, "extra-again")); err != nil {
		t.Fatal(err)
	}
	forward(t, h, dir, nil)
	h.until(t, "the refused event starts its run", func() bool {
		return h.newest("ace/elsewhere") != nil
	})
}

// TestFit checks that no part of an observation is large.
func TestFit(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	event := ace.ToolEvent{EventID: large, CallID: large, Kind: ace.KindToolResult, Name: large,
		Args:   mustJSON(large),
		Result: mustJSON(large), Error: large, SessionID: large, Source: large}
	for _, kind := range []ace.EventKind{ace.KindToolResult, ace.KindStep, ace.KindFinish,
		ace.EventKind(large)} {
		event.Kind = kind
		in := ace.TaskInput{TaskID: "t", Prompt: large}
		o := fit(Observation{TaskID: "t", Start: "s", Input: &in, Event: event}, nil)
		if n := len(mustJSON(o)); n > 256<<10 {
			t.Errorf("%.20s: %d bytes", kind, n)
		}
		if kind == ace.KindStep && !strings.HasPrefix(o.Event.Error,
			"its result has 1048578 bytes, more than 65536") {
			t.Errorf("a step whose result was left out: %.60s", o.Event.Error)
		}
		if !json.Valid(o.Event.Args) || in.Prompt != large {
			t.Errorf("%.20s: %s", kind, o.Event.Args)
		}
	}
}

// TestExtraFiles checks that the single records that hooks of earlier versions wrote are delivered.
func TestExtraFiles(t *testing.T) {
	h, dir := newFakeServer(), filepath.Join(t.TempDir(), "spool")
	lines := hooks(t)
	for i, line := range lines {
		appendHooks(t, dir, line)
		if err := os.Rename(filepath.Join(dir, spool.Active),
			filepath.Join(dir, "extra-"+string(rune('a'+i)))); err != nil {
			t.Fatal(err)
		}
	}
	forward(t, h, dir, nil)
	h.until(t, "the run ends and the records are removed", func() bool {
		left, _ := filepath.Glob(filepath.Join(dir, spool.ExtraPrefix+"*"))
		_, err := os.Stat(filepath.Join(dir, spool.Active))
		r := h.newest(hookRun)
		return r != nil && r.state.Finished() && len(left) == 0 && err != nil
	})
}

// TestDeliveredRecordsAreRemoved checks that the spool does not keep what was delivered, which may
// contain secrets.
func TestDeliveredRecordsAreRemoved(t *testing.T) {
	h, dir := newFakeServer(), filepath.Join(t.TempDir(), "spool")
	forward(t, h, dir, nil)
	appendHooks(t, dir, hooks(t)...)
	h.until(t, "the run ends and its records are removed", func() bool {
		for _, name := range []string{"active", "*.old"} {
			if files, _ := filepath.Glob(filepath.Join(dir, name)); len(files) > 0 {
				return false
			}
		}
		return h.newest(hookRun) != nil && h.newest(hookRun).state.Finished()
	})
}

// TestFullOfNothing checks that a spool full of NUL bytes, which a crash of the machine may leave, is
// emptied, although no line of it ends.
func TestFullOfNothing(t *testing.T) {
	h, dir := newFakeServer(), t.TempDir()
	active := filepath.Join(dir, spool.Active)
	if err := os.WriteFile(active, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(active, spool.MaxBytes); err != nil {
		t.Fatal(err)
	}
	if err := spool.Append(dir, spool.Hook, []byte("{}")); !errors.Is(err, spool.ErrFull) {
		t.Fatal(err)
	}
	forward(t, h, dir, nil)
	h.until(t, "the spool is empty", func() bool {
		status, err := ReadStatus(dir)
		return err == nil && status.Bytes < 1<<20
	})
	appendHooks(t, dir, hooks(t)...)
	h.until(t, "the run ends", func() bool { r := h.newest(hookRun); return r != nil && r.state.Finished() })
}
