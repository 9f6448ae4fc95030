package operation

import (
	crand "crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"acescope/engine/temporal/history"
)

// MaxNotes bounds the notes of one operation.
const MaxNotes = 64

// maxNoteValue bounds the bytes of a value in a note. For a larger value, a note has the size and the digest.
const maxNoteValue = 1 << 10

// Note is an event in the workflow's logic between two operations.
type Note struct {
	Event   EventType         `json:"event"` // time_accessed, variable_set or version_decision
	Key     string            `json:"key"`   // ID of the access, name of the variable, or ID of the change
	Time    time.Time         `json:"time,omitzero"`
	Value   json.RawMessage   `json:"value,omitempty"`
	Digest  string            `json:"digest,omitempty"` // of an omitted value
	Size    int               `json:"size,omitempty"`
	Version *workflow.Version `json:"version,omitempty"`
	Min     *workflow.Version `json:"min_version,omitempty"`
	Max     *workflow.Version `json:"max_version,omitempty"`
}

func (r *Runner) note(n Note) {
	if len(r.s.notes) >= MaxNotes {
		r.s.dropped++
		return
	}
	r.s.notes = append(r.s.notes, n)
}

// Note records a value for readers of the history, at a place in the workflow's logic. Like all notes, it is
// part of the input of the next operation, or of a marker if there are too many notes.
func (r *Runner) Note(ctx workflow.Context, place string, value any) error {
	data, err := encode(value)
	if err != nil {
		return permanent(TypeBadOperation, "note at %q: %v", place, err)
	}
	if len(r.s.notes) >= MaxNotes {
		r.Flush(ctx)
	}
	r.note(Note{Event: StepChanged, Key: place, Time: workflow.Now(ctx).UTC(), Value: data})
	return nil
}

func (r *Runner) takeNotes() ([]Note, int) {
	notes, dropped := r.s.notes, r.s.dropped
	r.s.notes = nil
	r.s.dropped = 0
	return notes, dropped
}

// flushed is the content of the marker of [Runner.Flush].
type flushed struct {
	Event   EventType `json:"event"`
	Notes   []Note    `json:"notes"`
	Dropped int       `json:"notes_dropped,omitempty"`
}

// Flush records the notes since the last operation in a marker. Call it at the end of an
// annotated workflow. Like [Random], a call may only be added or removed with
// [Runner.Version].
func (r *Runner) Flush(ctx workflow.Context) {
	notes, dropped := r.takeNotes()
	workflow.SideEffect(ctx, func(workflow.Context) any { return flushed{eventNotes, notes, dropped} })
}

// Now returns the workflow's time, which is the same in every replay. It adds no event.
func (r *Runner) Now(ctx workflow.Context) time.Time {
	now := workflow.Now(ctx).UTC()
	if r.s.annotated {
		id, _ := r.nextID(prefixTime, "now")
		if recorded, ok := r.s.reuse[id]; ok {
			_ = json.Unmarshal(recorded, &now)
		}
		r.note(Note{Event: TimeAccessed, Key: id, Time: now})
	}
	return now
}

// drawn is the content of the marker of [Random].
type drawn struct {
	Event EventType       `json:"event"`
	Key   string          `json:"key"`
	Seed  string          `json:"seed"` // hexadecimal
	Value json.RawMessage `json:"value"`
}

// Random draws a value, records it with its seed, and returns the same value in every replay.
// Its key is the name and the place of the call. Replaying code that draws another key here
// fails the workflow task.
func Random[T any](ctx workflow.Context, r *Runner, name string, draw func(*rand.Rand) T) T {
	id, _ := r.nextID(prefixRandom, name)
	if recorded, ok := r.s.reuse[id]; ok {
		return decodeRandom[T](id, recorded)
	}
	encoded := workflow.SideEffect(ctx, func(workflow.Context) any {
		seed := r.s.seedFor(id)
		value, err := encode(draw(rand.New(rand.NewPCG(seed, seed))))
		if err != nil {
			panic(fmt.Sprintf("random value %s cannot be recorded: %v", id, err))
		}
		return drawn{RandomGenerated, id, strconv.FormatUint(seed, 16), value}
	})
	var d drawn
	if err := encoded.Get(&d); err != nil {
		panic(fmt.Sprintf("random value %s: the recorded value cannot be read: %v", id, err))
	}
	if d.Key != id {
		panic(fmt.Sprintf("nondeterministic workflow: the history has the random value %q where the code draws %q", d.Key, id))
	}
	return decodeRandom[T](id, d.Value)
}

// RandomKey returns the key of the first random value of a name in the main path of a workflow.
func RandomKey(name string) string { return idOf(prefixRandom, name, "", 1) }

// ParseRandomKey returns the name of a random value and the branch that draws it.
func ParseRandomKey(key string) (name, branch string, ok bool) {
	rest, ok := strings.CutPrefix(key, prefixRandom+".")
	if !ok {
		return "", "", false
	}
	name, branch, _, ok = history.ParseOperationID(prefixOperation + "." + rest)
	return name, branch, ok
}

func decodeRandom[T any](id string, data json.RawMessage) (value T) {
	if err := json.Unmarshal(data, &value); err != nil {
		panic(fmt.Sprintf("random value %s: the recorded value does not fit %T: %v", id, value, err))
	}
	return value
}

// seedFor returns the seed for an ID. It may be random because its result is recorded.
func (s *state) seedFor(id string) uint64 {
	var b [8]byte
	if s.seed == nil {
		_, _ = crand.Read(b[:]) //workflowcheck:ignore
		return binary.LittleEndian.Uint64(b[:])
	}
	binary.LittleEndian.PutUint64(b[:], *s.seed)
	n, _ := strconv.ParseUint(digest(append(b[:], id...))[:16], 16, 64)
	return n
}

// UUID returns a random UUID (version 4), for [Random].
func UUID(r *rand.Rand) string {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], r.Uint64())
	binary.LittleEndian.PutUint64(b[8:], r.Uint64())
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Set assigns a variable. Variables are workflow state that a replay restores, so they need no
// events. [Annotated] records them for readers.
func (r *Runner) Set(name string, value any) error {
	data, err := encode(value)
	if err != nil {
		return permanent(TypeBadOperation, "variable %q: %v", name, err)
	}
	if err := r.assign(name, data); err != nil {
		return err
	}
	if r.s.annotated {
		n := Note{Event: VariableSet, Key: name, Value: data}
		if len(data) > maxNoteValue {
			n.Value = nil
			n.Digest = digest(data)
			n.Size = len(data)
		}
		r.note(n)
	}
	return nil
}

func (r *Runner) assign(name string, value json.RawMessage) error {
	_, have := r.s.variables[name]
	switch {
	case name == "":
		return permanent(TypeBadOperation, "a variable needs a name")
	case len(value) > MaxInline:
		return permanent(TypeBadOperation, "variable %q: %d bytes exceed the limit of %d", name, len(value),
			MaxInline)
	case !have && len(r.s.variables) >= MaxVariables:
		return permanent(TypeBadOperation, "variable %q: the limit of %d variables is reached", name,
			MaxVariables)
	}
	r.s.variables[name] = value
	return nil
}

// Get decodes a variable into a pointer. It returns false if the variable was never set.
func (r *Runner) Get(name string, into any) (bool, error) {
	data, ok := r.s.variables[name]
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return true, permanent(TypeBadResult, "variable %q does not fit %T: %v", name, into, err)
	}
	return true, nil
}

func sortedNames(m map[string]json.RawMessage) []string {
	return slices.Sorted(maps.Keys(m)) //workflowcheck:ignore
}

// Version returns the version of a change that this run follows: high if the run gets here for the first
// time, from then on the same version, and [workflow.DefaultVersion] if the run got here before the change.
// low is the oldest version that the code still supports.
//
// An invalid range, or a recorded version outside it, fails the workflow task, which Temporal
// retries until the code is fixed.
func (r *Runner) Version(ctx workflow.Context, change string, low, high workflow.Version) workflow.Version {
	if change == "" || low > high || low < workflow.DefaultVersion {
		panic(fmt.Sprintf("version of change %q: invalid range %d to %d: it must begin at workflow.DefaultVersion (%d) or later",
			change, low, high, workflow.DefaultVersion))
	}
	v := workflow.GetVersion(ctx, change, low, high)
	if !r.s.decided[change] {
		r.s.decided[change] = true
		r.note(Note{Event: VersionDecision, Key: change, Version: &v, Min: &low, Max: &high})
	}
	return v
}
