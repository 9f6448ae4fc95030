package transcript

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/price"
)

// gemini reads the chats of Gemini CLI: tmp/PROJECT/chats/session-TIME-ID.jsonl below ~/.gemini, and those of
// subagents in chats/SESSION/ID.jsonl. Versions up to 0.30 or so write one JSON document,
// session-TIME-ID.json, instead. The source is packages/core/src/services/chatRecordingService.ts of
// github.com/google-gemini/gemini-cli, checked with versions 0.20 and 0.61.
type gemini struct{}

const (
	geminiPrefix   = "session-"
	geminiChats    = "chats"
	geminiRootFile = ".project_root" // the file with the path of a project
)

func (gemini) Agent() agentcli.CLI { return agentcli.Gemini }

func (gemini) Root(getenv func(string) string) string {
	if home := getenv("GEMINI_CLI_HOME"); home != "" {
		return filepath.Join(home, ".gemini")
	}
	return inHome(".gemini")
}

func (gemini) Dir(root string) string { return filepath.Join(root, "tmp") }

func (f gemini) Owns(path string) bool {
	_, ok := f.entry(path)
	return ok
}

func (f gemini) List(ctx context.Context, root string) ([]Entry, error) {
	var all lister
	for _, project := range all.dirs(f.Dir(root)) {
		l := lister{err: all.err}
		l.walk(ctx, filepath.Join(project, geminiChats), func(path string, _ fs.DirEntry) {
			if !f.migrated(path) {
				l.add(path, f.entry)
			}
		})
		dir := ""
		if len(l.entries) > 0 {
			dir = firstLine(filepath.Join(project, geminiRootFile))
		}
		for _, e := range l.entries {
			e.WorkDir = dir
			all.entries = append(all.entries, e)
		}
		all.err = l.err
	}
	return all.entries, all.err
}

// migrated reports whether a newer version of the CLI has continued a document as lines. The document remains
// beside the lines.
func (gemini) migrated(path string) bool {
	if !strings.HasSuffix(path, jsonExt) {
		return false
	}
	_, err := os.Stat(path + "l")
	return err == nil
}

// firstLine returns the first line of a small file, or "".
func firstLine(path string) string {
	file, _, err := openRegular(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	data, _ := io.ReadAll(io.LimitReader(file, maxPath)) // on an error, use the part that was read
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line)
}

func (f gemini) Stat(_ context.Context, path string) ([]Entry, error) { return statFile(path, f.entry) }

// entry names a chat. The name of a session's own chat has only a part of its ID.
func (f gemini) entry(path string) (e Entry, ok bool) {
	name, isLines := strings.CutSuffix(filepath.Base(path), Ext)
	if !isLines {
		name, ok = strings.CutSuffix(name, jsonExt)
	}
	dir := filepath.Dir(path)
	e.Project = filepath.Dir(filepath.Dir(path))
	switch {
	case strings.HasPrefix(name, geminiPrefix) && (ok || isLines):
		return e, true
	case isLines && filepath.Base(filepath.Dir(dir)) == geminiChats:
		return Entry{Session: filepath.Base(dir), Agent: name, Project: filepath.Dir(filepath.Dir(dir))}, true
	}
	return e, false
}

func (gemini) Open(path string) LineReader {
	if strings.HasSuffix(path, jsonExt) {
		return &documentReader{wholeReader{path: path}}
	}
	return NewReader(path)
}

func (gemini) Fold(prices *price.Prices) Folder { return &geminiFold{tally: newTally(prices)} }

func (gemini) Events() func(raw []byte) []agentcli.Event { return new(geminiEvents).events }

// maxDocument is the longest chat that is read as one document, in bytes.
const maxDocument = 256 << 20

// documentReader reads a chat that is one document as the lines that newer versions of the CLI write: its
// members without the messages, then each message. Every read starts again.
type documentReader struct{ wholeReader }

func (r *documentReader) Read(
	ctx context.Context, _ int64, restart func(), fn func(raw []byte, at int64),
) (p Progress, err error) {
	file, info, err := openRegular(r.path)
	if err != nil {
		return p, err
	}
	defer file.Close()
	if info.Size() > maxDocument {
		return p, fmt.Errorf("%s: larger than %d MB", r.path, maxDocument>>20)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxDocument))
	if err != nil {
		return p, err
	}
	p = Progress{Offset: int64(len(data)), Size: info.Size(), Restarted: r.begin(restart)}
	var chat object
	if !chat.parse(data) {
		return p, errors.New(r.path + ": not a complete JSON object; the agent may be writing it")
	}
	fn(chat.without("messages"), 0)
	scan(chat.get("messages"), '[', func(_, message []byte) {
		switch {
		case ctx.Err() != nil:
		case len(message) > MaxLine:
			p.Oversized++
		default:
			fn(message, int64(cap(data)-cap(message)))
		}
	})
	return p, ctx.Err()
}
