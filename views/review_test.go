package views

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/sources/detail"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/sources/sessions"
	"acescope/theme"
)

// waitingForReview returns a recorded run that waits for the review of four operations.
func waitingForReview(t testing.TB) *snapshot {
	t.Helper()
	events := historyIn(t, "../engine/workflows/testdata/review-rejected.json")
	end := slices.IndexFunc(events, func(e *historypb.HistoryEvent) bool {
		return e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName() == ace.SignalReview
	})
	d, err := detail.ReadEvents(events[:end])
	if err != nil {
		t.Fatal(err)
	}
	d.Start, d.Until, d.ReviewUntil = noon.Add(-time.Minute), noon, noon.Add(5*time.Minute+time.Second)
	d.Delta.Insights = "The ratio was inverted."
	d.Delta.Operations = []ace.Operation{
		{Type: ace.OpTag, BulletID: "f-1", Metadata: map[string]int{"harmful": 1},
			Outcome: ace.OutcomeAccepted},
		{Type: ace.OpAdd, Section: "FORMULAS", Content: "Divide assets by liabilities.",
			Outcome: ace.OutcomeAccepted,
			Reason:  "the answer was inverted"},
		{Type: ace.OpUpdate, BulletID: "f-1", Content: "Round to two decimals.",
			Outcome: ace.OutcomeAccepted},
		{Type: ace.OpRemove, BulletID: "f-2", Outcome: ace.OutcomeAccepted},
		{Type: ace.OpAdd, Content: "Divide.", Outcome: ace.OutcomeRejected, Reason: "duplicate"},
	}
	d.OldBullets = map[string]histories.OldBullet{"f-1": {Content: "Round to one decimal."},
		"f-2": {Content: "Guess."}}
	r := runs.Run{WorkflowID: d.WorkflowID, RunID: d.RunID, Type: d.Type, TaskID: d.Input.TaskID,
		Phase:  ace.PhaseReview,
		Status: ace.Running, Start: d.Start,
		Review: &ace.ReviewMemo{Subject: "Current \x1b[31mratio", Operations: 3, Until: d.ReviewUntil}}
	snap := ready(r)
	snap.Detail = d
	snap.Approvals = &sessions.Approvals{Runs: []runs.Run{r}}
	return snap
}

func TestReview(t *testing.T) {
	for name, keys := range map[string][]string{
		"overview": nil,
		"run":      {"enter", "j", "j", "space"},
		"decide":   {"enter", "j", "j", "space", "w"},
	} {
		for _, size := range [][2]int{{80, 24}, {120, 40}} {
			t.Run(fmt.Sprintf("%s-%d", name, size[0]), func(t *testing.T) {
				sc := newOverview(t, waitingForReview(t), size[0], size[1])
				sc.press(keys...)
				golden.RequireEqual(t, sc.plain())
			})
		}
	}
	sc := newScreen(t, waitingForReview(t), theme.New(true, true), 120, 40)
	sc.has("waits for review, 5m left, then r")
}

// A decision applies to the run and the operations that the dialog shows.
func TestDecideReview(t *testing.T) {
	for name, c := range map[string]struct{ keys, want, note string }{
		"approve all": {"w y", `{"approve":true}`, "approved 3"},
		"reject one": {"j space w y", `{"approve":true,"operations":[{"operation":2,"approve":false}]}`,
			"approved 2, rejected 1"},
		"reason": {"j space w c n o enter",
			`{"approve":true,"operations":[{"operation":2,"approve":false,"reason":"no"}]}`,
			"approved 2, rejected 1"},
		"changed one's mind": {"j space space w y", `{"approve":true}`, "approved 3"},
		"reject all": {"w d enter", `{"approve":true,"operations":[{"operation":2,"approve":false},` +
			`{"operation":3,"approve":false},{"operation":4,"approve":false}]}`, "rejected 3"},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScreen(t, waitingForReview(t), plainLook, 100, 30)
			sc.press("2")
			sc.run(sc.press(strings.Fields(c.keys)...))
			if want := "review ace/review-rejected " + c.want; !slices.Contains(sc.store.heard(), want) {
				t.Errorf("%q, want %s", sc.store.heard(), want)
			}
			sc.has(c.note)
		})
	}
	snap := waitingForReview(t)
	snap.Detail.ReviewUntil = time.Time{}
	sc := newScreen(t, snap, plainLook, 100, 30)
	sc.press("2", "w")
	sc.has("no worker has continued the run yet")
}

// Texts of operations cannot control the terminal, and every size is drawn.
func TestReviewEverySize(t *testing.T) {
	t.Parallel()
	evil := "\x1b[2J\x1b]0;owned\a\u202egnp.exe\u2066\r\n\tgreen " + strings.Repeat("wide 漢字 ", 40)
	snap := waitingForReview(t)
	for i := range snap.Detail.Delta.Operations {
		op := &snap.Detail.Delta.Operations[i]
		op.Content, op.BulletID, op.Reason, op.Section = evil, evil, evil, evil
	}
	snap.Detail.OldBullets = map[string]histories.OldBullet{evil: {Content: evil}}
	snap.Detail.Delta.Insights = evil
	snap.Approvals.Runs[0].Review.Subject = evil
	for _, keys := range [][]string{{"H"}, {"2", "j"}, {"2", "j", "tab"}, {"2", "w"}} {
		sc := newScreen(t, snap, plainLook, 80, 24)
		sc.press(keys...)
		for w := 40; w <= 220; w += 36 {
			for _, h := range []int{10, 24, 50} {
				sc.resize(w, h)
				sc.plain()
			}
		}
	}
}
