package runs

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/learning/model"
)

// deduplicateFlags say which bullets are near-duplicates.
type deduplicateFlags struct {
	by         string // PROVIDER/MODEL, byWords or configured; "" for none
	similarity float64
}

// Values of --deduplicate.
const (
	byWords    = "words"
	configured = "configured" // the embeddings of the configuration, else words
)

func (d *deduplicateFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&d.by, "deduplicate", "",
		"merge near-duplicates of the playbook, and reject new ones, by their words or by the embeddings of "+
			"`PROVIDER/MODEL` (default: of embedding_model in the configuration, otherwise words)")
	fs.Lookup("deduplicate").NoOptDefVal = configured
	fs.Float64Var(&d.similarity, "similarity", ace.DefaultSimilarity,
		"with --deduplicate: least similarity of near-duplicates, above 0, at most 1")
}

func (d *deduplicateFlags) check() error {
	provider, name, ok := strings.Cut(d.by, "/")
	switch {
	case d.by == "":
		return nil
	case !(d.similarity > 0 && d.similarity <= 1):
		return cli.UsageError("--similarity %g: must be above 0, at most 1", d.similarity)
	case d.by != byWords && d.by != configured && (!ok || provider == "" || name == ""):
		return cli.UsageError("--deduplicate=%s: must be %s or PROVIDER/MODEL", d.by, byWords)
	}
	return nil
}

// resolve replaces [configured]. It returns a usage error if a provider has no embeddings. Workers of a
// cluster may have what this process lacks.
func (d *deduplicateFlags) resolve(a *cli.App) error {
	known := a.Providers()
	if d.by == configured {
		d.by = byWords
		for _, p := range known {
			if name, _ := embeddingModel(p); name != "" {
				d.by = p.Name() + "/" + name
				break
			}
		}
	}
	name, _, embeddings := strings.Cut(d.by, "/")
	if !embeddings {
		return nil
	}
	i := slices.IndexFunc(known, func(p model.Provider) bool { return p.Name() == name })
	if i < 0 {
		return cli.UsageError("--deduplicate=%s: provider %q not found", d.by, name)
	}
	if _, ok := embeddingModel(known[i]); !ok {
		return cli.UsageError("--deduplicate=%s: %s has no embeddings", d.by, name)
	}
	if c, ok := known[i].(model.Checker); ok && c.Ready() != nil && a.Cluster() == nil {
		return cli.UsageError("--deduplicate=%s: %s", d.by, strings.TrimPrefix(c.Ready().Error(), name+": "))
	}
	return nil
}

func embeddingModel(p model.Provider) (name string, ok bool) {
	if e, isEmbedder := p.(model.Embedder); isEmbedder {
		return e.EmbeddingModel()
	}
	return "", false
}

// setting returns the setting of an experiment, or nil.
func (d *deduplicateFlags) setting() *ace.Deduplication {
	if d.by == "" {
		return nil
	}
	s := &ace.Deduplication{Similarity: d.similarity}
	if provider, name, ok := strings.Cut(d.by, "/"); ok {
		s.Provider = provider
		s.Model = name
	}
	return s
}
