package transcript

import (
	"cmp"
	"context"
	"io/fs"
	"path/filepath"
	"strings"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/price"
)

// codex reads the rollouts of Codex: sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl below $CODEX_HOME, and
// archived_sessions. The source is codex-rs/rollout (recorder.rs, policy.rs) and codex-rs/protocol of
// github.com/openai/codex, checked with versions 0.63, 0.98 and 0.169.
type codex struct{}

const (
	codexPrefix  = "rollout-"
	codexArchive = "archived_sessions"
	idLength     = 36 // of a UUID
)

func (codex) Agent() agentcli.CLI { return agentcli.Codex }

func (codex) Root(getenv func(string) string) string {
	return cmp.Or(getenv("CODEX_HOME"), inHome(".codex"))
}

func (codex) Dir(root string) string { return filepath.Join(root, "sessions") }

func (codex) Owns(path string) bool {
	return strings.HasPrefix(filepath.Base(path), codexPrefix) && strings.HasSuffix(path, Ext)
}

func (f codex) List(ctx context.Context, root string) ([]Entry, error) {
	var l lister
	listed := map[string]bool{} // by name: archiving moves a file, which may then be found in both directories
	for _, dir := range []string{f.Dir(root), filepath.Join(root, codexArchive)} {
		l.walk(ctx, dir, func(path string, e fs.DirEntry) {
			if f.Owns(path) && !listed[e.Name()] {
				listed[e.Name()] = true
				l.add(path, f.entry)
			}
		})
	}
	return l.entries, l.err
}

func (f codex) Stat(_ context.Context, path string) ([]Entry, error) { return statFile(path, f.entry) }

func (f codex) entry(path string) (Entry, bool) {
	name := strings.TrimSuffix(filepath.Base(path), Ext)
	id := name[max(0, len(name)-idLength):]
	return Entry{Session: id, Project: string(f.Agent())}, f.Owns(path) && agentcli.ValidSessionID(id)
}

func (codex) Open(path string) LineReader { return NewReader(path) }

func (codex) Fold(prices *price.Prices) Folder { return &codexFold{tally: newTally(prices)} }

func (codex) Events() func(raw []byte) []agentcli.Event { return new(codexEvents).events }
