package llm_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/ace/calls"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/llm"
	"acescope/engine/learning/model/llm/llmtest"
)

// A session leaves a record of all its requests, from which each can be sent again as it was.
func TestRecordedRequests(t *testing.T) {
	answer := func(q llmtest.Request) llmtest.Reply {
		switch {
		case strings.Contains(q.Last(), "could not be read"):
			return llmtest.Reply{Text: `{"final_answer": "2.5"}`, In: 10, Out: 5}
		case len(q.Messages) == 1:
			return llmtest.Reply{Calls: []llmtest.Call{{ID: "c1", Name: "calculate",
				Args: `{"expression": "5/2"}`}}}
		}
		return llmtest.Reply{Text: "I think it is two and a half."}
	}
	forBothServers(t, llm.Options{}, answer, func(t *testing.T, p model.Provider, s *llmtest.Server) {
		recorder := &calls.Recorder{}
		ctx := calls.WithRecorder(t.Context(), recorder)
		if _, err := p.Skills(ctx, ace.SkillsInput{Prompt: "5/2?", Plan: "Divide."}, samplePlaybook(),
			&box{}); err != nil {
			t.Fatal(err)
		}
		stored := map[string][]byte{}
		put := func(_ context.Context, content []byte, _ string) (ace.Ref, error) {
			sum := sha256.Sum256(content)
			ref := ace.Ref{SHA256: hex.EncodeToString(sum[:])}
			stored[ref.SHA256] = bytes.Clone(content)
			return ref, nil
		}
		log, err := recorder.Store(ctx, put, func(line []byte) []byte { return line })
		if err != nil {
			t.Fatal(err)
		}
		list, err := calls.Read(ctx, func(_ context.Context, r ace.Ref, _ int64) ([]byte, error) {
			return stored[r.SHA256], nil
		}, *log)
		sent := s.Seen()
		if err != nil || len(list) != 3 || len(sent) != 3 {
			t.Fatalf("%d requests sent, %d on record: %v", len(sent), len(list), err)
		}
		if u := list[2].Response.Usage; u.InputTokens != 10 || u.OutputTokens != 5 {
			t.Errorf("usage on record: %+v", u)
		}
		if len(list[0].Response.Raw) == 0 {
			t.Error("the answer of the server is not on record")
		}
		for i, c := range list {
			if _, err := p.(model.Sender).Send(t.Context(), c.Request); err != nil {
				t.Fatal(err)
			}
			again := s.Seen()[len(sent)+i]
			again.Raw, sent[i].Raw = nil, nil
			again.Cached, sent[i].Cached = false, false // the record does not say what servers may cache
			if !reflect.DeepEqual(again, sent[i]) {
				t.Errorf("request %d was\n%+v\nagain\n%+v", i+1, sent[i], again)
			}
		}
	})
}

// A request that failed is on record with its error.
func TestRecordedFailure(t *testing.T) {
	reply := llmtest.Script(llmtest.Reply{Status: 400, Type: "invalid_request_error", Text: "bad request"})
	forBothServers(t, llm.Options{}, reply, func(t *testing.T, p model.Provider, _ *llmtest.Server) {
		recorder := &calls.Recorder{}
		if _, err := p.Generate(calls.WithRecorder(t.Context(), recorder), ace.GeneratorInput{Prompt: "x"},
			nil); err == nil {
			t.Fatal("no error")
		}
		var line []byte
		_, err := recorder.Store(t.Context(), func(_ context.Context, content []byte, _ string) (ace.Ref,
			error) {
			line = bytes.Clone(content)
			return ace.Ref{}, nil
		}, func(line []byte) []byte { return line })
		if err != nil || !bytes.Contains(line, []byte("bad request")) ||
			bytes.Contains(line, []byte(`"response"`)) {
			t.Errorf("%s, %v", line, err)
		}
	})
}

// The temperature reaches both APIs, the seed the one that has it; both are on record as they were sent.
func TestSampling(t *testing.T) {
	reply := llmtest.Script(llmtest.Reply{Text: `{"final_answer": "2.5"}`})
	for _, seeds := range []bool{false, true} {
		forBothServers(t, llm.Options{Seeds: seeds}, reply,
			func(t *testing.T, p model.Provider, s *llmtest.Server) {
				in := ace.GeneratorInput{Prompt: "5/2?"}
				in.Task.Temperature = new(0.25)
				in.Task.Seed = new(int64(7))
				recorder := &calls.Recorder{}
				if _, err := p.Generate(calls.WithRecorder(t.Context(), recorder), in, nil); err != nil {
					t.Fatal(err)
				}
				sent := s.Seen()[0]
				wantSeed := seeds && sent.API == "openai"
				if raw := string(sent.Raw); !strings.Contains(raw, `"temperature":0.25`) ||
					strings.Contains(raw, `"seed":7`) != wantSeed {
					t.Errorf("sent %s", raw)
				}
				var line string
				_, err := recorder.Store(t.Context(), func(_ context.Context, content []byte,
					_ string) (ace.Ref,
					error) {
					line = string(content)
					return ace.Ref{}, nil
				}, func(line []byte) []byte { return line })
				if err != nil || !strings.Contains(line, `"temperature":0.25`) ||
					strings.Contains(line, `"seed":7`) != seeds {
					t.Errorf("on record: %s, %v", line, err)
				}
			})
	}
}

// A request is not sent on a spent budget, and the error says so.
func TestBudgetOfStep(t *testing.T) {
	reply := llmtest.Script(llmtest.Reply{Text: "prose", In: 10, Out: 5}) // which is asked for again
	forBothServers(t, llm.Options{}, reply, func(t *testing.T, p model.Provider, s *llmtest.Server) {
		in := ace.GeneratorInput{Prompt: "5/2?"}
		in.Task.Budget = &ace.Budget{Tokens: 15}
		r, err := p.Generate(t.Context(), in, nil)
		if model.KindOf(err) != model.BudgetSpent || len(s.Seen()) != 1 || r.Usage.Tokens() != 15 {
			t.Errorf("%d requests, %+v, %v", len(s.Seen()), r.Usage, err)
		}
	})
}
