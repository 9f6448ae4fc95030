package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"acescope/engine/model/builtin/calc"
	"acescope/engine/playbook"
)

// tool is a tool and what it does.
type tool struct {
	Tool
	run func(ctx context.Context, args json.RawMessage) (any, error)
}

// toolsFor are the tools of a session.
func toolsFor(book *playbook.Playbook, dir string) []tool {
	kit := []tool{lookUp(book), calculate()}
	if dir != "" {
		kit = append(kit, readFile(dir))
	}
	return kit
}

func text(about string) map[string]any {
	return map[string]any{"type": "string", "description": about}
}

func arguments(properties map[string]any, required ...string) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

// decode reads arguments, and says what is wrong with them in words for a model.
func decode(args json.RawMessage, into any) error {
	dec := json.NewDecoder(bytes.NewReader(args))
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("the arguments are not as the tool wants them: %w", err)
	}
	return nil
}

// mostFound is how many bullets look_up gives.
const mostFound = 8

type foundBullet struct {
	ID      string `json:"id"`
	Section string `json:"section"`
	Content string `json:"content"`
	Helpful int    `json:"helpful"`
	Harmful int    `json:"harmful"`
	hits    int
}

type lookUpResult struct {
	Bullets []foundBullet `json:"bullets"`
	Matches int           `json:"matches"`
}

// lookUp finds bullets by words: those that hold the most of them come first.
func lookUp(book *playbook.Playbook) tool {
	return tool{Tool{"look_up", fmt.Sprintf("Finds bullets of the playbook by words or ids. Gives at most %d, those that hold the most of the words first.", mostFound),
		arguments(map[string]any{"words": text("words to look for, or ids of bullets")}, "words")},
		func(_ context.Context, args json.RawMessage) (any, error) {
			var in struct {
				Words string `json:"words"`
			}
			if err := decode(args, &in); err != nil {
				return nil, err
			}
			words := wordsOf(in.Words)
			if len(words) == 0 {
				return nil, errors.New("give words to look for")
			}
			return search(book, words), nil
		}}
}

func search(book *playbook.Playbook, words []string) lookUpResult {
	found := []foundBullet{}
	for _, b := range book.Bullets {
		has := map[string]bool{}
		for _, w := range wordsOf(b.ID + " " + b.Section + " " + b.Content) {
			has[w] = true
		}
		hits := 0
		for _, w := range words {
			if has[w] {
				hits++
			}
		}
		if hits > 0 {
			found = append(found, foundBullet{b.ID, b.Section, b.Content, b.Helpful, b.Harmful, hits})
		}
	}
	slices.SortStableFunc(found, func(a, b foundBullet) int {
		return cmp.Or(b.hits-a.hits, (b.Helpful-b.Harmful)-(a.Helpful-a.Harmful))
	})
	return lookUpResult{found[:min(len(found), mostFound)], len(found)}
}

// wordsOf are the words of a text in lower case, each once, without those of one letter.
func wordsOf(s string) []string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-'
	})
	words = slices.DeleteFunc(words, func(w string) bool { return len(w) < 2 })
	slices.Sort(words)
	return slices.Compact(words)
}

type calculateResult struct {
	Value float64 `json:"value"`
	Text  string  `json:"text"` // without an exponent
}

// calculate evaluates arithmetic.
func calculate() tool {
	values := map[string]any{"type": "object", "description": "values of the names in the expression",
		"additionalProperties": map[string]any{"type": "number"}}
	return tool{Tool{"calculate", "Calculates an arithmetic expression exactly: numbers, names, + - * / ^, parentheses, and the functions " +
		"exp ln sqrt abs N (standard normal distribution), min max sum. No thousands separators and no percent signs.",
		arguments(map[string]any{"expression": text("for example (1 + r/4)^8 * p"), "values": values}, "expression")},
		func(_ context.Context, args json.RawMessage) (any, error) {
			var in struct {
				Expression string             `json:"expression"`
				Values     map[string]float64 `json:"values"`
			}
			if err := decode(args, &in); err != nil {
				return nil, err
			}
			e, err := calc.Parse(strings.ReplaceAll(in.Expression, "**", "^"))
			if err != nil {
				return nil, err
			}
			v, err := e.EvalNamed(in.Values)
			if err != nil {
				return nil, err
			}
			return calculateResult{v, strconv.FormatFloat(v, 'f', -1, 64)}, nil
		}}
}

// maxFile is how much of a file is read, in bytes.
const maxFile = 64 << 10

type fileResult struct {
	Text string `json:"text"`
	Size int64  `json:"size"`
	Cut  bool   `json:"cut,omitempty"`
}

// readFile reads files of one directory. The system keeps it there, whatever path or
// link a model thinks of.
func readFile(dir string) tool {
	return tool{Tool{"read_file", "Reads a text file of the working directory.",
		arguments(map[string]any{"path": text("path below the working directory")}, "path")},
		func(_ context.Context, args json.RawMessage) (any, error) {
			var in struct {
				Path string `json:"path"`
			}
			if err := decode(args, &in); err != nil {
				return nil, err
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				return nil, errors.New("the working directory cannot be opened")
			}
			defer root.Close()
			return readIn(root, in.Path)
		}}
}

func readIn(root *os.Root, path string) (any, error) {
	info, err := root.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file %.200q", path)
	case err != nil:
		return nil, fmt.Errorf("%.200q is not to be read: it lies outside of the working directory, or is locked", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%.200q is no file", path)
	}
	f, err := root.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%.200q cannot be read", path)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, fmt.Errorf("%.200q cannot be read to its end", path)
	}
	for i := 0; i < utf8.UTFMax && len(data) > 0 && info.Size() > maxFile && !utf8.Valid(data); i++ {
		data = data[:len(data)-1] // half a character
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil, fmt.Errorf("%.200q is no text", path)
	}
	return fileResult{string(data), info.Size(), info.Size() > maxFile}, nil
}
