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

	"golang.org/x/sync/errgroup"

	"acescope/engine/ace"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/builtin/calc"
	"acescope/engine/learning/playbook"
)

// Bounds of a session.
const (
	// MaxTurns is the number of requests to the model. In the last turn it has no tools.
	MaxTurns   = 12
	maxCalls   = 32       // calls of one turn that are made
	concurrent = 8        // calls at a time
	maxResult  = 16 << 10 // bytes of a result that the model gets
)

// Skills implements [model.Provider] with a loop of tool calls.
func (p *provider) Skills(ctx context.Context, in ace.SkillsInput, book *playbook.Playbook,
	tools model.Toolbox) (ace.SkillSessionResult, error) {
	book = orEmpty(book)
	s, system, err := p.beginPhase(ctx, ace.PhaseSkills, in.Task, book, tools)
	if err != nil {
		return ace.SkillSessionResult{}, err
	}
	l := &loop{step: s, box: tools, kit: []tool{lookUp(book), calculate()}}
	if p.o.Dir != "" {
		l.kit = append(l.kit, readFile(p.o.Dir))
	}
	l.r = s.request(system, skillsMessage(in))
	for _, t := range l.kit {
		if in.Task.SkillsConfig.Allows(t.Name) {
			l.r.Tools = append(l.r.Tools, t.Tool)
		}
	}
	resp, err := l.run(ctx)
	if err != nil {
		return ace.SkillSessionResult{StepReport: ace.StepReport{Usage: s.used()}}, err
	}
	var out generated
	v, err := s.parse(ctx, l.r, resp, out.parse)
	if err != nil {
		return ace.SkillSessionResult{StepReport: ace.StepReport{Usage: s.used()}}, err
	}
	notes := fit(maxFinal, "final_answer", &out.answer)
	return ace.SkillSessionResult{Answer: out.answer, StepReport: ace.StepReport{Usage: s.used(),
		Parsed: s.report(v, notes)}}, nil
}

// loop is the tool loop of a skills session.
type loop struct {
	*step
	box model.Toolbox
	kit []tool
	r   Request
}

// run alternates requests and tool calls until the model answers without a call.
func (l *loop) run(ctx context.Context) (Response, error) {
	for turn := 1; ; turn++ {
		if turn == MaxTurns {
			l.notes = append(l.notes, fmt.Sprintf("the model used all of its %d turns", MaxTurns))
			last := &l.r.Messages[len(l.r.Messages)-1]
			last.addText("This was your last turn with tools. Do not call any more tools; " +
				"give your answer now.")
		}
		resp, err := l.complete(ctx, l.r)
		if err != nil && len(l.r.Tools) > 0 && turn == 1 && rejectsTools(err) {
			l.notes = append(l.notes, "the model does not accept tools: "+err.Error())
			l.r.Tools = nil
			resp, err = l.complete(ctx, l.r)
		}
		if err != nil {
			return resp, err
		}
		if len(resp.Calls) == 0 || turn >= MaxTurns {
			return resp, nil
		}
		results, err := l.calls(ctx, resp.Calls)
		if err != nil {
			return resp, err
		}
		l.r.Messages = append(l.r.Messages,
			Message{Role: Assistant, Text: resp.Text, Calls: resp.Calls, Native: resp.Native},
			Message{Role: User, Results: results})
	}
}

// rejectsTools reports whether a server refused a request because of its tools.
func rejectsTools(err error) bool {
	return model.KindOf(err) == model.BadRequest && strings.Contains(strings.ToLower(err.Error()), "tool")
}

// calls makes the calls of one turn. Its only error is the context's.
func (l *loop) calls(ctx context.Context, calls []Call) ([]CallResult, error) {
	results := make([]CallResult, len(calls))
	var group errgroup.Group
	group.SetLimit(concurrent)
	for i, c := range calls {
		if i >= maxCalls {
			results[i] = CallResult{c.ID, fmt.Sprintf("not made: at most %d calls per turn", maxCalls), true}
			continue
		}
		group.Go(func() error {
			results[i] = l.call(ctx, c)
			return nil
		})
	}
	_ = group.Wait() // every error is a result
	return results, ctx.Err()
}

// call makes one call. The model gets every error as its result.
func (l *loop) call(ctx context.Context, c Call) CallResult {
	args := c.Args
	if len(strings.TrimSpace(string(args))) == 0 {
		args = json.RawMessage("{}")
	}
	var recorded any = args
	if !json.Valid(args) {
		recorded = string(args)
	}
	result, err := l.box.Call(ctx, c.Name, recorded, func(context.Context) (any, error) {
		i := slices.IndexFunc(l.kit, func(t tool) bool { return t.Name == c.Name })
		switch {
		case i < 0:
			return nil, fmt.Errorf("unknown tool %.60q", c.Name)
		case !json.Valid(args):
			return nil, errors.New("the arguments are not valid JSON")
		}
		return l.kit[i].run(args)
	})
	switch {
	case errors.Is(err, model.ErrDenied):
		return CallResult{c.ID, "denied: this tool may not be used here; continue without it", true}
	case err != nil:
		return CallResult{c.ID, ace.Cut("failed: "+err.Error(), maxResult), true}
	}
	data, err := json.Marshal(result)
	if err != nil {
		return CallResult{c.ID, "failed: cannot encode the result: " + err.Error(), true}
	}
	return CallResult{ID: c.ID, Text: ace.Cut(string(data), maxResult)}
}

// tool is a tool definition and the function that executes it.
type tool struct {
	Tool
	run func(args json.RawMessage) (any, error)
}

func text(about string) map[string]any {
	return map[string]any{"type": "string", "description": about}
}

func arguments(properties map[string]any, required ...string) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

// newTool returns a tool that decodes its arguments. The model reads the errors.
func newTool[Args any](t Tool, run func(Args) (any, error)) tool {
	return tool{t, func(data json.RawMessage) (any, error) {
		var args Args
		if err := json.Unmarshal(data, &args); err != nil {
			return nil, fmt.Errorf("invalid arguments: %w", err)
		}
		return run(args)
	}}
}

// mostFound is the number of bullets that look_up returns.
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

type lookUpArgs struct {
	Words string `json:"words"`
}

// lookUp finds bullets by words, those with the most matching words first.
func lookUp(book *playbook.Playbook) tool {
	about := fmt.Sprintf("Finds bullets of the playbook by words or ids. "+
		"Returns at most %d, those with the most of the words first.", mostFound)
	schema := arguments(map[string]any{"words": text("words to look for, or ids of bullets")}, "words")
	return newTool(Tool{"look_up", about, schema}, func(args lookUpArgs) (any, error) {
		words := wordsOf(args.Words)
		if len(words) == 0 {
			return nil, errors.New("give words to look for")
		}
		return search(book, words), nil
	})
}

func search(book *playbook.Playbook, words []string) lookUpResult {
	found := []foundBullet{}
	for _, b := range book.Bullets {
		has := wordsOf(b.ID + " " + b.Section + " " + b.Content)
		hits := 0
		for _, w := range words {
			if slices.Contains(has, w) {
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

// wordsOf returns the distinct words of a text in lower case, without words of one letter.
func wordsOf(s string) []string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-'
	})
	words = slices.DeleteFunc(words, func(w string) bool { return len(w) < 2 })
	slices.Sort(words)
	return slices.Compact(words)
}

type calculateArgs struct {
	Expression string             `json:"expression"`
	Values     map[string]float64 `json:"values"`
}

type calculateResult struct {
	Value float64 `json:"value"`
	Text  string  `json:"text"` // without an exponent
}

func calculate() tool {
	const about = "Calculates an arithmetic expression exactly: numbers, names, + - * / ^, parentheses, and the functions " +
		"exp ln sqrt abs N (standard normal distribution), min max sum. No thousands separators and no percent signs."
	schema := arguments(map[string]any{
		"expression": text("for example (1 + r/4)^8 * p"),
		"values": map[string]any{"type": "object", "description": "values of the names in the expression",
			"additionalProperties": map[string]any{"type": "number"}},
	}, "expression")
	return newTool(Tool{"calculate", about, schema}, func(args calculateArgs) (any, error) {
		e, err := calc.Parse(strings.ReplaceAll(args.Expression, "**", "^"))
		if err != nil {
			return nil, err
		}
		v, err := e.EvalNamed(args.Values)
		if err != nil {
			return nil, err
		}
		return calculateResult{v, strconv.FormatFloat(v, 'f', -1, 64)}, nil
	})
}

// maxFile is the number of bytes of a file that read_file returns.
const maxFile = 64 << 10

type fileResult struct {
	Text string `json:"text"`
	Size int64  `json:"size"`
	Cut  bool   `json:"cut,omitempty"`
}

type readFileArgs struct {
	Path string `json:"path"`
}

// readFile reads files of one directory. [os.Root] prevents access outside of it.
func readFile(dir string) tool {
	schema := arguments(map[string]any{"path": text("path below the working directory")}, "path")
	t := Tool{"read_file", "Reads a text file of the working directory.", schema}
	return newTool(t, func(args readFileArgs) (any, error) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, errors.New("cannot open the working directory")
		}
		defer root.Close()
		return readIn(root, args.Path)
	})
}

func readIn(root *os.Root, path string) (any, error) {
	info, err := root.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("file %.200q not found", path)
	case err != nil:
		return nil, fmt.Errorf("cannot access %.200q: it is outside of the working directory or not readable",
			path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%.200q is not a regular file", path)
	}
	f, err := root.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read %.200q", path)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, fmt.Errorf("cannot read %.200q to its end", path)
	}
	for i := 0; i < utf8.UTFMax && len(data) > 0 && info.Size() > maxFile && !utf8.Valid(data); i++ {
		data = data[:len(data)-1] // part of a character
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil, fmt.Errorf("%.200q is not a text file", path)
	}
	return fileResult{string(data), info.Size(), info.Size() > maxFile}, nil
}
