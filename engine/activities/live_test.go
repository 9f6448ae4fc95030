package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"acescope/engine/ace"
	"acescope/engine/internal/redact"
	"acescope/engine/learning/model"
	"acescope/engine/store/artifact"
)

func TestLiveFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), artifact.LogName{WorkflowID: "ace/../x", RunID: "r",
		Activity: "run_generator", Attempt: 2}.Path())
	l := &liveFile{path: path, name: "run_generator", attempt: 2,
		secrets: redact.New(redact.Secret{Kind: "K", Value: "very-secret-value"}).Stream()}
	l.add("first ")
	for _, part := range []string{"very-se", "cret-v", "alue"} {
		l.add(part)
		l.mu.Lock()
		l.write("") // as the timer does
		l.mu.Unlock()
	}
	l.close()
	l.add("too late")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for raw := range bytes.Lines(data) {
		var line liveLine
		if err := json.Unmarshal(raw, &line); err != nil || line.Attempt != 2 {
			t.Errorf("%s, %v", raw, err)
		}
		text += line.Text
	}
	if text != "first [redacted:K]" {
		t.Errorf("%q in %s", text, data)
	}
	if filepath.Base(filepath.Dir(filepath.Dir(path))) != "ace%2F..%2Fx" {
		t.Errorf("unexpected path %s", path)
	}
}

func TestLiveFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.jsonl")
	l := &liveFile{path: path, secrets: redact.New().Stream()}
	for range 3 {
		l.add(strings.Repeat("x", liveBytes/2+1))
	}
	l.close()
	data, err := os.ReadFile(path)
	if err != nil || len(data) > liveBytes+1000 || strings.Count(string(data), "left out") != 1 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	broken := &liveFile{path: filepath.Join(path, "below a file"), secrets: redact.New().Stream()}
	broken.add("x")
	broken.close()
}

func TestStepError(t *testing.T) {
	store, err := artifact.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := recordings{inputs: &inputs{artifacts: store, secrets: redact.New()}}
	for name, c := range map[string]struct {
		err   error
		kind  string
		final bool
		next  time.Duration
	}{
		"rate limit": {&model.Error{Kind: model.RateLimited, Message: "m", RetryAfter: 42 * time.Second},
			"RateLimited", false, 42 * time.Second},
		"rate limit only": {&model.Error{Kind: model.RateLimited, Message: "m"}, "RateLimited", false,
			15 * time.Second},
		"network": {&model.Error{Kind: model.Network, Message: "m"}, "Network", false,
			5 * time.Second},
		"no key":  {&model.Error{Kind: model.NoKey, Message: "m"}, "NoKey", false, time.Second},
		"refusal": {&model.Error{Kind: model.Refused, Message: "m"}, "Refused", true, 0},
		"answer": {&model.Error{Kind: model.BadAnswer, Message: "m", Raw: "what it said"},
			"BadAnswer", true, 0},
		"other": {model.ErrPermanent, "Permanent", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var s testsuite.WorkflowTestSuite
			e := s.NewTestActivityEnvironment()
			step := func(ctx context.Context) error { return a.stepError(ctx, c.err, nil) }
			e.RegisterActivity(step)
			_, err := e.ExecuteActivity(step)
			var app *temporal.ApplicationError
			if !errors.As(err, &app) || app.Type() != c.kind || app.NonRetryable() != c.final ||
				app.NextRetryDelay() != c.next {
				t.Fatalf("%v", err)
			}
			if c.kind == "BadAnswer" {
				var ref ace.Ref
				if err := app.Details(&ref); err != nil {
					t.Fatal(err)
				}
				if got, err := store.Get(t.Context(), ref, 100); err != nil ||
					string(got) != "what it said" || !strings.Contains(app.Message(), ref.SHA256) {
					t.Errorf("%q, %v", got, err)
				}
			}
		})
	}
	for attempt, want := range map[int32]time.Duration{1: 5 * time.Second, 2: 10 * time.Second,
		40: time.Minute} {
		if got := retryDelay(&model.Error{Kind: model.Overloaded}, attempt); got != want {
			t.Errorf("attempt %d waits %s, want %s", attempt, got, want)
		}
	}
}
