package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"acescope/engine/ace"
	"acescope/engine/run"
)

// External is a program of somebody else's that executes runs: it is given an invocation on
// standard input, and writes a result to standard output.
type External struct {
	Type string // what its runs demand: the name of the directory that it lies in
	Path string // absolute
}

// NewExternal is the executor at a path. Its type is the name of its directory.
func NewExternal(path string) (External, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return External{}, err
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return External{}, fmt.Errorf("executor %s: there is no such program", path)
	case err != nil:
		return External{}, fmt.Errorf("executor %s: %s", path, plain(err))
	case info.IsDir():
		return External{}, fmt.Errorf("executor %s: it is a directory; name the program in it", path)
	}
	x := External{Type: filepath.Base(filepath.Dir(abs)), Path: abs}
	if !run.ValidName(x.Type) {
		return x, fmt.Errorf("executor %s: its type would be %q, after its directory, which is no name", path, x.Type)
	}
	return x, nil
}

// maxAnswer bounds the result that an external executor writes, in bytes.
const maxAnswer = 4 << 20

// answer is what an external executor says, by the names of the document.
type answer struct {
	Status   run.Status      `json:"status"`
	Reason   run.Reason      `json:"reason"`
	Error    string          `json:"error"`
	Output   json.RawMessage `json:"output"`
	Stdout   string          `json:"stdout"`
	Stderr   string          `json:"stderr"`
	ExitCode *int            `json:"exit_code"`
	Signal   string          `json:"signal"`
	Duration float64         `json:"duration_seconds"`
	Usage    ace.Usage       `json:"usage"`
}

// RunExternal has an external executor execute a job. Its own standard error is the log.
func (e *Executor) RunExternal(ctx context.Context, x External, j Job, in Invocation) run.Result {
	if in.Mode == Execute {
		if err := e.check(j); err != nil {
			return failed(j, run.BadParameters, err.Error())
		}
	}
	payload, err := in.MarshalJSON()
	if err != nil {
		return failed(j, run.Internal, "the invocation cannot be written: "+err.Error())
	}
	l := &launch{argv: []string{x.Path}, dir: j.ProjectDir, stdin: append(payload, '\n')}
	if l.env, err = environ(j, nil); err != nil {
		return failed(j, run.NotStarted, err.Error())
	}
	r, o := e.run(ctx, j, l)
	defer o.close()
	said, trouble := answer{}, error(nil)
	if r.Status == run.Completed || r.Reason == run.ExitCode {
		said, trouble = readAnswer(o.out)
	}
	e.keepOutputs(ctx, &r, o)
	switch {
	case r.Status == run.Completed && trouble != nil:
		r.Status, r.Reason, r.Error = run.Failed, run.Internal, fmt.Sprintf("the executor %s wrote no result: %v", x.Type, trouble)
	case trouble == nil && said.Status != "":
		e.take(ctx, &r, said)
	}
	return r
}

// readAnswer reads the result that an external executor wrote, and nothing beside it.
func readAnswer(c *capture) (a answer, err error) {
	if c.err != nil || c.size > c.kept || c.kept > maxAnswer {
		return a, fmt.Errorf("it is longer than %d bytes, or could not be kept", maxAnswer)
	}
	data, err := io.ReadAll(io.NewSectionReader(c.f, 0, c.kept))
	if err != nil {
		return a, err
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return a, errors.New("standard output is empty")
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return answer{}, errors.New(jsonTrouble(err))
	}
	if !a.Status.Over() {
		return answer{}, fmt.Errorf("status %q is none of completed, failed and stopped", clip(string(a.Status)))
	}
	return a, nil
}

// take makes the answer the result. A program that says it has completed, and then fails, has
// failed.
func (e *Executor) take(ctx context.Context, r *run.Result, a answer) {
	code, duration := r.ExitCode, r.DurationSeconds
	if a.Status != run.Completed || r.Status == run.Completed {
		r.Status, r.Reason, r.Error = a.Status, reasonOf(a), headTail(a.Error)
		r.ExitCode, r.Signal = a.ExitCode, clip(a.Signal)
		if r.ExitCode == nil && a.Status == run.Completed {
			r.ExitCode = code
		}
	}
	if r.DurationSeconds = a.Duration; r.DurationSeconds <= 0 {
		r.DurationSeconds = duration
	}
	r.Usage = a.Usage
	r.Stdout, r.Stderr = headTail(a.Stdout), headTail(a.Stderr)
	r.OutputIs = outputNone
	if value := compact(a.Output); len(value) > 0 && string(value) != "null" {
		r.OutputIs, r.Output = outputJSON, value
		if value[0] == '"' {
			r.OutputIs = outputText
		}
		if len(value) > run.MaxOutput {
			e.takeLong(ctx, r, value)
		}
	}
}

// takeLong makes an output an artifact.
func (e *Executor) takeLong(ctx context.Context, r *run.Result, value json.RawMessage) {
	r.Output = nil
	err := errors.New("there is no place for it")
	if e.o.Artifacts != nil {
		var ref ace.Ref
		if ref, err = e.o.Artifacts.PutBytes(context.WithoutCancel(ctx), value, "application/json"); err == nil {
			r.OutputRef = &ref
		}
	}
	if err != nil {
		lost(r, "its output could not be kept", err)
	}
}

// reasonOf is why an answer says it failed.
func reasonOf(a answer) run.Reason {
	switch {
	case a.Status != run.Failed:
		return ""
	case a.Reason != "":
		return run.Reason(clip(string(a.Reason)))
	case a.ExitCode != nil && *a.ExitCode != 0:
		return run.ExitCode
	}
	return run.AgentFailed
}
