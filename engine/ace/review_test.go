package ace_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"acescope/engine/ace"
)

const proposal = `{"accepted":[{"type":"TAG","bullet_id":"b"},{"type":"ADD","content":"x"},{"type":"UPDATE","bullet_id":"b","content":"y"}],` +
	`"rejected":[{"type":"ADD","content":"z","reason":"duplicate"}]}`

// reviewed folds facts after the curator of a run that asks for a review.
func reviewed(review ace.Review, curated string, facts ...ace.Fact) *ace.State {
	s := &ace.State{}
	s.Apply(ace.Started(ace.TaskInput{TaskID: "t", Branch: "b", Protocol: ace.Protocol{Review: &review}}))
	for _, step := range []ace.Phase{ace.PhaseGenerator, ace.PhaseSkills, ace.PhaseReflector} {
		s.Apply(ace.StepCompleted(step, []byte(`{}`)))
	}
	s.Apply(ace.StepCompleted(ace.PhaseCurator, []byte(curated)))
	for _, f := range facts {
		s.Apply(f)
	}
	return s
}

func decide(text string) ace.Fact { return ace.ReviewedFrom([]byte(text)) }

var opened = ace.ReviewOpened(at.Add(time.Minute))

// outcomes returns the outcomes of the operations and the status of the review.
func outcomes(s *ace.State) string {
	words := []string{string(s.Review.Status)}
	for _, op := range s.Delta.Operations {
		words = append(words, string(op.Outcome))
	}
	return strings.Join(words, " ")
}

func TestReviewDecides(t *testing.T) {
	for _, c := range []struct {
		name, want string
		facts      []ace.Fact
	}{
		{"all approved", "decided accepted accepted accepted rejected",
			[]ace.Fact{decide(`{"approve":true}`)}},
		{"all rejected", "decided accepted rejected rejected rejected",
			[]ace.Fact{decide(`{"approve":false}`)}},
		{"one rejected", "decided accepted rejected accepted rejected",
			[]ace.Fact{decide(`{"approve":true,"operations":[{"operation":2,"approve":false}]}`)}},
		{"each named", "decided accepted accepted rejected rejected",
			[]ace.Fact{decide(`{"operations":[{"operation":2,"approve":true},{"operation":3}]}`)}},
		{"the first decision counts", "decided accepted rejected rejected rejected",
			[]ace.Fact{decide(`{"approve":false}`), decide(`{"approve":true}`)}},
		{"no decision", "timed_out accepted rejected rejected rejected", []ace.Fact{ace.ReviewTimeout()}},
		{"a decision before the merge outranks the time limit", "decided accepted accepted accepted rejected",
			[]ace.Fact{ace.ReviewTimeout(), decide(`{"approve":true}`)}},
		{"a decision after the merge has begun", "timed_out accepted rejected rejected rejected",
			[]ace.Fact{ace.ReviewTimeout(), ace.ReviewClosed(), decide(`{"approve":true}`)}},
		{"the time limit ends after a decision", "decided accepted accepted accepted rejected",
			[]ace.Fact{decide(`{"approve":true}`), ace.ReviewTimeout()}},
		{"a cancellation changes no operation", "waiting proposed proposed proposed rejected",
			[]ace.Fact{ace.CancelRequested()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := reviewed(ace.Review{}, proposal, append([]ace.Fact{opened}, c.facts...)...)
			if got := outcomes(s); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	s := reviewed(ace.Review{OnTimeout: ace.ChooseApprove}, proposal, opened, ace.ReviewTimeout())
	if got := outcomes(s); got != "timed_out accepted accepted accepted rejected" {
		t.Error("approved after the time limit:", got)
	}
}

// TestReviewIgnores checks that decisions without effect are counted and named, and change nothing.
func TestReviewIgnores(t *testing.T) {
	for text, why := range map[string]string{
		`not JSON`:                         "cannot be read",
		`{"operations":{}}`:                "cannot be read",
		``:                                 "cannot be read",
		`{}`:                               "operation 2 is not decided on",
		`{"operations":[{"operation":2}]}`: "operation 3 is not decided on",
		`{"approve":true,"operations":[{"operation":1}]}`:                 "operation 1 does not wait",
		`{"approve":true,"operations":[{"operation":4}]}`:                 "operation 4 does not wait",
		`{"approve":true,"operations":[{"operation":-1}]}`:                "operation -1 does not wait",
		`{"approve":true,"operations":[{"operation":2},{"operation":2}]}`: "operation 2 is decided on twice",
	} {
		s := reviewed(ace.Review{}, proposal, opened, decide(text))
		if !s.WaitsForReview() || s.Review.Ignored != 1 || !strings.Contains(s.Review.LastIgnored, why) {
			t.Errorf("%s: %+v", text, s.CurrentPhase().Review)
		}
	}
	early := reviewed(ace.Review{}, proposal, decide(`{"approve":true}`), opened)
	if !early.WaitsForReview() || early.Review.LastIgnored != "the run does not wait for a review" {
		t.Errorf("before the time limit runs: %+v", early.CurrentPhase().Review)
	}
	huge := reviewed(ace.Review{}, proposal, opened,
		decide(`{"by":"`+strings.Repeat("x", 1<<20)+`","approve":false,"reason":"`+strings.Repeat("y", 1<<20)+
			`"}`))
	if data, err := json.Marshal([]any{huge.CurrentPhase(), huge.PlaybookDelta()}); err != nil ||
		len(data) > 10_000 {
		t.Errorf("a long decision is kept whole: %d bytes, %v", len(data), err)
	}
}

func TestReviewReasons(t *testing.T) {
	s := reviewed(ace.Review{}, proposal, opened,
		decide(`{"by":"ann","approve":true,"operations":[{"operation":2,"reason":"too specific"}]}`))
	if got := s.Delta.Operations[1].Reason; got != "rejected in review by ann: too specific" {
		t.Error(got)
	}
	if got := s.Delta.Operations[3].Reason; got != "duplicate" {
		t.Error("the curator's own reason:", got)
	}
	s = reviewed(ace.Review{TimeoutMS: 90 * 60_000}, proposal, opened, ace.ReviewTimeout())
	if got := s.Delta.Operations[1].Reason; got != "not reviewed within 1h30m" {
		t.Error(got)
	}
}

// TestReviewNotNeeded checks which runs do not wait.
func TestReviewNotNeeded(t *testing.T) {
	in := ace.TaskInput{TaskID: "t", Branch: "b"}
	ask := in
	ask.Review = &ace.Review{}
	recorded := ask
	recorded.Branch = ""
	for name, c := range map[string]struct {
		in      ace.TaskInput
		curated string
	}{
		"not asked for":         {in, proposal},
		"only counters":         {ask, `{"accepted":[{"type":"TAG","bullet_id":"b"}]}`},
		"nothing proposed":      {ask, `{}`},
		"only recorded":         {recorded, proposal},
		"rejected by a curator": {ask, `{"rejected":[{"type":"ADD"}]}`},
	} {
		s := &ace.State{}
		s.Apply(ace.Started(c.in))
		s.Apply(ace.StepCompleted(ace.PhaseCurator, []byte(c.curated)))
		if s.Review.Status != "" {
			t.Errorf("%s: %s", name, s.Review.Status)
		}
	}
}

// TestReviewSkippedByWorker folds the history of a worker that does not know reviews.
func TestReviewSkippedByWorker(t *testing.T) {
	s := reviewed(ace.Review{}, proposal, ace.StepScheduled(ace.PhasePersist))
	if got := outcomes(s); got != "skipped accepted accepted accepted rejected" {
		t.Error(got)
	}
	closed := reviewed(ace.Review{}, proposal, opened, ace.Closed(ace.Terminated, nil))
	if closed.WaitsForReview() || !closed.ReviewUntil().IsZero() {
		t.Error("a closed run waits for review")
	}
}

// TestReviewKeepsClones checks that a decision does not change copies of the state.
func TestReviewKeepsClones(t *testing.T) {
	s := reviewed(ace.Review{}, proposal, opened)
	before := s.Clone()
	s.Apply(decide(`{"approve":false}`))
	if got := outcomes(before); got != "waiting proposed proposed proposed rejected" {
		t.Error(got)
	}
	merged := ace.StepCompleted(ace.PhasePersist,
		[]byte(`{"operations":[{"type":"TAG","bullet_id":"b","fate":"accepted"}]}`))
	s.Apply(merged)
	if got := outcomes(s); got != "decided accepted rejected rejected rejected" {
		t.Error("after the merge:", got)
	}
}
