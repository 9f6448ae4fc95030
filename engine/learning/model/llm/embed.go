package llm

import (
	"context"

	"gonum.org/v1/gonum/floats"

	"acescope/engine/ace"
	"acescope/engine/learning/model"
)

// maxEmbedded is the number of texts in a request. OpenAI allows 2,048 texts and 300,000 tokens; texts have
// at most [playbook.MaxContent] bytes.
const maxEmbedded = 256

// EmbeddingModel implements [model.Embedder].
func (p *provider) EmbeddingModel() (name string, ok bool) {
	_, ok = p.completer.(Embedder)
	return p.o.Embeddings, ok
}

// Embed implements [model.Embedder].
func (p *provider) Embed(ctx context.Context, at ace.TaskContext, texts []string) ([][]float64, *ace.Usage,
	error) {
	s, err := p.begin(ctx, at, nil)
	if err != nil {
		return nil, nil, err
	}
	vectors := make([][]float64, 0, len(texts))
	for begin := 0; begin < len(texts); begin += maxEmbedded {
		r := Request{Model: s.model, Step: s.shared, Vectors: true}
		for _, t := range texts[begin:min(begin+maxEmbedded, len(texts))] {
			r.Messages = append(r.Messages, Message{Role: User, Text: t})
		}
		resp, err := s.complete(ctx, r)
		if err == nil {
			err = normalize(resp.Vectors, len(r.Messages))
		}
		if err != nil {
			return nil, s.used(), err
		}
		vectors = append(vectors, resp.Vectors...)
	}
	return vectors, s.used(), nil
}

// normalize gives vectors the length 1. It returns an error unless it gets n vectors of the same number of
// dimensions.
func normalize(vectors [][]float64, n int) error {
	bad := func(format string, args ...any) error {
		return model.Errorf(model.BadAnswer, "embeddings: "+format, args...)
	}
	if len(vectors) != n {
		return bad("the number of vectors is %d, not %d", len(vectors), n)
	}
	for i, v := range vectors {
		length := floats.Norm(v, 2)
		switch {
		case len(v) != len(vectors[0]):
			return bad("vectors have different dimensions: %d and %d", len(vectors[0]), len(v))
		case !(length > 0):
			return bad("vector %d has no positive length", i+1)
		}
		floats.Scale(1/length, v)
	}
	return nil
}
