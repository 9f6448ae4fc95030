package transcript

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// opencodeStore is the directory of the JSON files that versions before the database wrote:
// session/PROJECT/ID.json, message/SESSION/ID.json and part/MESSAGE/ID.json.
const opencodeStore = "storage"

// maxStored bounds the files of a session that are read.
const maxStored = 200_000

// isStored reports whether a path is that of a session's file.
func isStored(path string) bool {
	return strings.HasSuffix(path, jsonExt) &&
		filepath.Base(filepath.Dir(filepath.Dir(path))) == "session"
}

func storedEntry(path string) (Entry, bool) {
	id := strings.TrimSuffix(filepath.Base(path), jsonExt)
	return Entry{Session: id, Project: storeOf(path)}, isStored(path)
}

// storeOf returns the directory of the files, given the path of a session's.
func storeOf(path string) string { return filepath.Dir(filepath.Dir(filepath.Dir(path))) }

// stored returns the sessions in files.
func (l *lister) stored(ctx context.Context, root string) []Entry {
	store := lister{err: l.err}
	for _, project := range store.dirs(filepath.Join(root, opencodeStore, "session")) {
		if ctx.Err() != nil {
			break
		}
		for _, e := range store.read(project) {
			if path := filepath.Join(project, e.Name()); strings.HasPrefix(e.Name(), opencodeSession) {
				store.add(path, storedEntry)
			}
		}
	}
	l.err = store.err
	return store.entries
}

// storedReader reads the files of a session as the lines of a [databaseReader].
type storedReader struct{ wholeReader }

func (r *storedReader) Read(
	ctx context.Context, _ int64, restart func(), fn func(raw []byte, at int64),
) (Progress, error) {
	w := rowWriter{fn: fn, p: Progress{Restarted: r.begin(restart)}}
	id := strings.TrimSuffix(filepath.Base(r.path), jsonExt)
	err := w.file("session", id, r.path)
	files, store := 0, storeOf(r.path)
	for _, message := range names(filepath.Join(store, "message", id)) {
		if files++; err != nil || files > maxStored {
			break
		}
		if ctx.Err() != nil {
			return w.p, ctx.Err()
		}
		if err = w.file("message", message,
			filepath.Join(store, "message", id, message+jsonExt)); err != nil {
			break
		}
		for _, part := range names(filepath.Join(store, "part", message)) {
			if files++; err == nil && files <= maxStored {
				err = w.file("part", part, filepath.Join(store, "part", message, part+jsonExt))
			}
		}
	}
	w.p.Size = w.p.Offset
	return w.p, err
}

// names returns the sorted names of the JSON files in a directory. IDs sort by time.
func names(dir string) (out []string) {
	var l lister
	for _, e := range l.read(dir) {
		if name, ok := strings.CutSuffix(e.Name(), jsonExt); ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// file writes a file as a row.
func (w *rowWriter) file(kind, id, path string) error {
	file, info, err := openRegular(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if info.Size() > MaxLine {
		w.put(kind, id, nil)
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxLine))
	if err != nil {
		return err
	}
	w.put(kind, id, data)
	return nil
}
