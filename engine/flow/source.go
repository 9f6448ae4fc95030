package flow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Digest returns the SHA-256 of the canonical JSON of the source, in lower-case hexadecimal.
func (s Source) Digest() string {
	data, _ := json.Marshal(s) // sorts the files
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Load reads a flow and the files that it includes from a directory. The error is [Problems] or says which
// file cannot be read.
func Load(dir fs.FS, main string) (Source, error) {
	src := Source{Main: main, Files: map[string]string{}}
	l := loader{dir: dir, files: src.Files}
	if err := l.load(main, Position{}); err != nil {
		return Source{}, err
	}
	return src, nil
}

type loader struct {
	dir   fs.FS
	files map[string]string
	size  int
}

func (l *loader) load(name string, from Position) error {
	if _, ok := l.files[name]; ok {
		return nil
	}
	data, err := l.read(name)
	if err != nil {
		if from.File == "" {
			if errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return Problems{Position{name, 1, 1}.problem(err.Error(), "")}
		}
		return Problems{from.problem(err.Error(),
			"paths are relative to the directory of the main file and stay in it")}
	}
	l.files[name] = data
	if !isFlow(name) {
		return nil
	}
	var doc yaml.Node
	if yaml.Unmarshal([]byte(data), &doc) != nil {
		return nil // Parse says why
	}
	for _, n := range includes(&doc) {
		included, err := join(name, n.Value)
		at := Position{name, n.Line, n.Column}
		if err != nil {
			return Problems{at.problem(err.Error(), "")}
		}
		if err := l.load(included, at); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) read(name string) (string, error) {
	info, err := fs.Stat(l.dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", noFile{name}
	}
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return "", fmt.Errorf("%s cannot be read: %w", name, err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a file", name)
	}
	if l.size += int(min(info.Size(), MaxSource+1)); l.size > MaxSource {
		return "", fmt.Errorf(
			"the flow has more than %d KB; every run carries its file, so pass data as inputs",
			MaxSource>>10)
	}
	data, err := fs.ReadFile(l.dir, name)
	return string(data), err
}

// noFile is the error of a file that does not exist.
type noFile struct{ name string }

func (e noFile) Error() string { return fmt.Sprintf("file %s not found", e.name) }
func (e noFile) Unwrap() error { return fs.ErrNotExist }

func isFlow(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// includes finds the nodes with paths of other files: "flow: FILE.yaml" of steps and "file: PATH" of prompts.
func includes(n *yaml.Node) (list []*yaml.Node) {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i].Value, n.Content[i+1]
			switch {
			case value.Kind != yaml.ScalarNode:
				if key == "prompt" || key == "system" {
					list = append(list, promptFile(value)...)
				}
			case key == "flow" && isFlow(value.Value):
				list = append(list, value)
			}
		}
	}
	for _, c := range n.Content {
		list = append(list, includes(c)...)
	}
	return list
}

func promptFile(n *yaml.Node) []*yaml.Node {
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Value == "file" {
		return n.Content[1:]
	}
	return nil
}

// join returns the path of an included file in the directory of the main file.
func join(from, name string) (string, error) {
	joined := path.Join(path.Dir(from), name)
	if path.IsAbs(name) || strings.Contains(name, "\\") || !fs.ValidPath(joined) || joined == "." {
		return "", fmt.Errorf("the path %q leaves the directory of the flow", shorten(name))
	}
	return joined, nil
}

// include reads the path of an included file, which the source must have.
func (b *builder) include(n *yaml.Node) string {
	name, err := join(b.file, b.constant(n))
	if err != nil {
		b.fail(n, err.Error(), "move the file into the directory of the main file")
		return ""
	}
	if _, ok := b.source.Files[name]; !ok {
		b.fail(n, fmt.Sprintf("the file %s is not part of the flow", name), "sub-flows end in .yaml")
		return ""
	}
	return name
}

// subFlow parses an included flow. It rejects cycles.
func (b *builder) subFlow(name string, n *yaml.Node) *Flow {
	for i, open := range b.open {
		if open == name {
			b.fail(n, "the flow includes itself: "+strings.Join(append(b.open[i:], name), " → "),
				"use repeat")
			return nil
		}
	}
	if len(b.open) >= MaxDepth {
		b.fail(n, fmt.Sprintf("sub-flows are nested more than %d levels deep", MaxDepth), "")
		return nil
	}
	return b.flow(name)
}

// Names lists the paths of the files.
func (s Source) Names() []string { return sortedKeys(s.Files) }
