package llm_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/ace/calls"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/anthropic"
	"acescope/engine/learning/model/llm"
	"acescope/engine/learning/model/llm/llmtest"
	"acescope/engine/learning/model/openai"
)

// Many texts take several requests. Their vectors come in order and with the length 1, and each request is
// recorded.
func TestEmbed(t *testing.T) {
	s := llmtest.New(func(q llmtest.Request) (a llmtest.Reply) {
		a.In = len(q.Messages)
		for _, m := range q.Messages {
			a.Vectors = append(a.Vectors, []float64{3 * float64(len(m.Text)), 4 * float64(len(m.Text))})
		}
		return a
	})
	defer s.Close()
	server := llm.Server{Name: "local", BaseURL: s.URL + "/v1"}
	p := llm.New(openai.New(server), llm.Options{Name: "local", Embeddings: "e-1"})
	e := p.(model.Embedder)
	if name, ok := e.EmbeddingModel(); !ok || name != "e-1" {
		t.Error(name, ok)
	}
	texts := make([]string, 600)
	for i := range texts {
		texts[i] = strings.Repeat("x", i+1)
	}
	recorder := &calls.Recorder{}
	vectors, used, err := e.Embed(calls.WithRecorder(t.Context(), recorder), ace.TaskContext{Model: "e-2"},
		texts)
	if err != nil || len(vectors) != 600 || used.InputTokens != 600 || len(s.Seen()) != 3 ||
		s.Seen()[0].Model != "e-2" {
		t.Fatal(len(vectors), used, err)
	}
	for i, v := range vectors {
		if math.Abs(v[0]-0.6) > 1e-12 || math.Abs(v[1]-0.8) > 1e-12 {
			t.Fatal(i, v)
		}
	}
	if u := recorder.Usage(); u == nil || u.InputTokens != 600 {
		t.Errorf("recorded %+v", u)
	}
	again := ace.ModelRequest{Model: "e-2", Embeddings: true}
	if _, err := p.(model.Sender).Send(t.Context(), again); model.KindOf(err) != model.BadRequest {
		t.Error(err)
	}
	if _, ok := llm.New(anthropic.New(llm.Server{}), llm.Options{}).(model.Embedder).EmbeddingModel(); ok {
		t.Error("Anthropic's API has no embeddings")
	}
}

func TestEmbedFails(t *testing.T) {
	for text, reply := range map[string]llmtest.Reply{
		`local: http://127.0.0.1:0/v1 has no model "e-1" (404): no e-1`: {Status: 404,
			Type: "model_not_found", Text: "no e-1"},
		"embeddings: vector 2 has no positive length":            {Vectors: [][]float64{{1, 0}, {0, 0}}},
		"embeddings: vectors have different dimensions: 2 and 1": {Vectors: [][]float64{{1, 0}, {1}}},
		"embeddings: vectors have different dimensions: 2 and 0": {Vectors: [][]float64{{1, 0}}},
		"local: http://127.0.0.1:0/v1 sent invalid events": {Vectors: [][]float64{{1, 0}, {1, 0},
			{1, 0}}},
	} {
		s := llmtest.New(llmtest.Script(reply))
		defer s.Close()
		p := llm.New(openai.New(llm.Server{Name: "local", BaseURL: s.URL + "/v1"}),
			llm.Options{Name: "local"})
		_, _, err := p.(model.Embedder).Embed(t.Context(), ace.TaskContext{Model: "e-1"}, []string{"a", "b"})
		got := strings.ReplaceAll(fmt.Sprint(err), strings.TrimPrefix(s.URL, "http://"), "127.0.0.1:0")
		if !strings.HasPrefix(got, text) || model.KindOf(err) == "" {
			t.Errorf("got  %s\nwant %s", got, text)
		}
	}
}
