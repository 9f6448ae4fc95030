package ace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Review asks a user to decide on the operations of a task's curator before they are merged. Operations of
// type TAG need no decision: they only count.
type Review struct {
	// TimeoutMS is the time limit in milliseconds; 0 means [DefaultReviewTimeout].
	TimeoutMS int64        `json:"timeout_ms,omitempty"`
	OnTimeout ReviewChoice `json:"on_timeout,omitempty"` // "" means reject
}

// ReviewChoice is what happens to operations without a decision within the time limit.
type ReviewChoice string

// Review choices.
const (
	ChooseReject  ReviewChoice = "reject"
	ChooseApprove ReviewChoice = "approve"
)

// DefaultReviewTimeout and maxReview are the default and the upper bound of [Review.TimeoutMS].
const (
	DefaultReviewTimeout = 24 * time.Hour
	maxReview            = 365 * 24 * time.Hour
)

// Timeout returns the time limit.
func (r *Review) Timeout() time.Duration {
	if r.TimeoutMS <= 0 {
		return DefaultReviewTimeout
	}
	return time.Duration(min(r.TimeoutMS, int64(maxReview/time.Millisecond))) * time.Millisecond
}

// TimeoutChoice returns what happens to the operations after the time limit.
func (r *Review) TimeoutChoice() ReviewChoice {
	if r == nil || r.OnTimeout != ChooseApprove {
		return ChooseReject
	}
	return ChooseApprove
}

// String describes the setting.
func (r *Review) String() string {
	return fmt.Sprintf("operations wait for review (%s after %s)", r.TimeoutChoice(),
		plainDuration(r.Timeout()))
}

// plainDuration formats a duration without zero minutes and seconds.
func plainDuration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// ReviewDecision is the argument of [SignalReview]. It decides on all operations of
// [ReviewState.UnderReview].
type ReviewDecision struct {
	By string `json:"by,omitempty"` // the user who decided
	// Approve decides on the operations that Operations does not name. It may be nil if Operations names all.
	Approve    *bool               `json:"approve,omitempty"`
	Reason     string              `json:"reason,omitempty"` // of Approve
	Operations []OperationDecision `json:"operations,omitempty"`
}

// OperationDecision is the decision on one operation.
type OperationDecision struct {
	Operation int    `json:"operation"` // position in [DeltaAnswer].Operations, from 1
	Approve   bool   `json:"approve"`
	Reason    string `json:"reason,omitempty"`
}

// ReviewStatus is the status of the review of a run's operations.
type ReviewStatus string

// Review statuses. A review is skipped if the worker of the run does not know the setting.
const (
	ReviewWaiting  ReviewStatus = "waiting"
	ReviewDecided  ReviewStatus = "decided"
	ReviewTimedOut ReviewStatus = "timed_out"
	ReviewSkipped  ReviewStatus = "skipped"
)

// ReviewState is the state of the review of a run's operations.
type ReviewState struct {
	Status ReviewStatus `json:"status,omitempty"` // "" if the run needs no review or has not reached it
	By     string       `json:"by,omitempty"`     // the user who decided
	// Ignored counts the signals that had no effect, and LastIgnored gives the reason for the last one.
	Ignored     int    `json:"ignored_signals,omitempty"`
	LastIgnored string `json:"last_ignored,omitempty"`

	until    time.Time   // zero until the time limit runs
	closed   bool        // the merge has begun
	proposed []Operation // as the curator proposed them
}

// String describes the status.
func (r ReviewState) String() string {
	switch r.Status {
	case ReviewDecided:
		return "reviewed by " + cmp.Or(r.By, "a user")
	case ReviewTimedOut:
		return "not reviewed within the time limit"
	case ReviewSkipped:
		return "not reviewed: the worker does not support it"
	}
	return string(r.Status)
}

// Ended reports whether the review is over.
func (r ReviewState) Ended() bool { return r.Status != "" && r.Status != ReviewWaiting }

// ReviewMemo is the memo [MemoReview] of a run that waits for review, so that lists need no history.
type ReviewMemo struct {
	Subject    string    `json:"subject,omitempty"` // what the task is about, in a line
	Operations int       `json:"operations"`
	Until      time.Time `json:"until"`
}

// maxReviewText bounds the texts of a decision that a run keeps, in bytes.
const maxReviewText = 400

// awaitReview begins to wait if the operations need a review.
func (s *State) awaitReview() {
	if s.Phase != PhasePersist || s.Input.Review == nil || s.Input.Branch == "" || s.Reuses(PhasePersist) {
		return
	}
	if len(ReviewableOperations(s.Delta.Operations)) == 0 {
		return
	}
	s.Review.Status = ReviewWaiting
	s.Review.proposed = s.Delta.Operations
	s.Delta.Operations = notMerged(s.Delta.Operations, OutcomeProposed)
	s.setStatus(PhasePersist, StatusPending)
}

// endReview sets the outcomes of a review, after which the merge is next. Nil outcomes do not end the review.
func (s *State) endReview(outcomes []Operation) {
	if outcomes != nil {
		s.Delta.Operations = outcomes
		s.enter(s.Phase)
	}
}

// WaitsForReview reports whether the run waits for a decision.
func (s *State) WaitsForReview() bool { return s.Review.Status == ReviewWaiting && s.ClosedAs == "" }

// ReviewUntil returns the end of the time limit, or zero if the run does not wait or the time limit has not
// begun. Decisions before its beginning are ignored.
func (s *State) ReviewUntil() time.Time {
	if !s.WaitsForReview() {
		return time.Time{}
	}
	return s.Review.until
}

// ReviewMemo returns the memo of a run that waits for review until a time.
func (s *State) ReviewMemo(until time.Time) ReviewMemo {
	return ReviewMemo{Subject: OneLine(cmp.Or(s.Input.Subject, s.Input.Prompt), maxSentence),
		Operations: len(s.Review.UnderReview()), Until: until}
}

// UnderReview returns the positions, from 1, of the operations that wait for a decision.
func (r *ReviewState) UnderReview() []int {
	if r.Status != ReviewWaiting {
		return nil
	}
	return ReviewableOperations(r.proposed)
}

// ReviewableOperations returns the positions, from 1, of the operations that a review decides on. During the
// review, their outcome is proposed; with workers of earlier versions it is accepted.
func ReviewableOperations(ops []Operation) (positions []int) {
	for i, op := range ops {
		if (op.Outcome == OutcomeProposed || op.Outcome == OutcomeAccepted) && op.Type != OpTag {
			positions = append(positions, i+1)
		}
	}
	return positions
}

// decide returns the outcomes of a decision, or nil if the run ignores it. A decision after the time limit
// counts until the merge begins: a workflow cannot tell which of the two came first.
func (r *ReviewState) decide(d *ReviewDecision, unreadable string) []Operation {
	why := unreadable
	if why == "" {
		why = r.Refuses(d)
	}
	if why != "" {
		r.Ignored++
		r.LastIgnored = Cut(why, maxReviewText)
		return nil
	}
	r.Status = ReviewDecided
	r.By = Cut(d.By, maxReviewText)
	by := "rejected in review"
	if r.By != "" {
		by += " by " + r.By
	}
	return r.reject(func(n int) string {
		one := d.on(n)
		switch {
		case one.Approve:
			return ""
		case one.Reason != "":
			return by + ": " + Cut(one.Reason, maxReviewText)
		}
		return by
	})
}

// timeOut ends a review without a decision, and returns the outcomes, or nil if the review is over.
func (r *ReviewState) timeOut(setting *Review) []Operation {
	if r.Status != ReviewWaiting || r.closed {
		return nil
	}
	r.Status = ReviewTimedOut
	return r.reject(func(int) string {
		if setting.TimeoutChoice() == ChooseApprove {
			return ""
		}
		return "not reviewed within " + plainDuration(setting.Timeout())
	})
}

// reject returns the proposed operations. Operation n, from 1, is rejected if why(n) returns a reason.
func (r *ReviewState) reject(why func(n int) string) []Operation {
	outcomes := slices.Clone(r.proposed)
	for _, n := range ReviewableOperations(r.proposed) {
		if reason := why(n); reason != "" {
			outcomes[n-1].Outcome = OutcomeRejected
			outcomes[n-1].Reason = reason
		}
	}
	return outcomes
}

// on returns the decision on an operation.
func (d *ReviewDecision) on(n int) OperationDecision {
	for _, one := range d.Operations {
		if one.Operation == n {
			return one
		}
	}
	return OperationDecision{Operation: n, Approve: d.Approve != nil && *d.Approve, Reason: d.Reason}
}

// Refuses returns why the run ignores a decision, or "".
func (r *ReviewState) Refuses(d *ReviewDecision) string {
	switch {
	case r.Status == ReviewDecided:
		return "the operations were already decided on"
	case r.Status == "" || r.closed || r.until.IsZero():
		return "the run does not wait for a review"
	}
	open := ReviewableOperations(r.proposed)
	named := map[int]bool{}
	for _, one := range d.Operations {
		switch {
		case !slices.Contains(open, one.Operation):
			return fmt.Sprintf("operation %d does not wait for a review", one.Operation)
		case named[one.Operation]:
			return fmt.Sprintf("operation %d is decided on twice", one.Operation)
		}
		named[one.Operation] = true
	}
	if d.Approve == nil {
		for _, n := range open {
			if !named[n] {
				return fmt.Sprintf("operation %d is not decided on", n)
			}
		}
	}
	return ""
}

// closeReview begins the merge, after which no decision counts.
func (s *State) closeReview() {
	if s.Review.Status == "" {
		return
	}
	if s.Review.Status == ReviewWaiting {
		s.Review.Status = ReviewSkipped
		s.Delta.Operations = s.Review.proposed
	}
	s.Review.closed = true
}

// ReviewOpened returns the fact that the time limit of a review has begun.
func ReviewOpened(until time.Time) Fact { return Fact{Kind: FactReviewOpened, Until: until} }

// ReviewedFrom decodes the argument of [SignalReview]. An unreadable one is ignored, so that a sender cannot
// break a run.
func ReviewedFrom(data []byte) Fact {
	var d ReviewDecision
	if err := json.Unmarshal(data, &d); err != nil {
		return Fact{Kind: FactReviewed, Unread: []string{"the decision cannot be read: " + err.Error()}}
	}
	return Fact{Kind: FactReviewed, Decision: &d}
}

// ReviewTimeout returns the fact that the time limit of a review has ended.
func ReviewTimeout() Fact { return Fact{Kind: FactReviewTimeout} }

// ReviewClosed returns the fact that the merge begins. Readers of a history see that its activity is
// scheduled.
func ReviewClosed() Fact { return Fact{Kind: FactReviewClosed} }
