package operation

import (
	crand "crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"go.temporal.io/sdk/workflow"
)

// MaxNotes is how many notes travel with one operation.
const MaxNotes = 64

// maxNoteValue is how many bytes of a variable's value a note has; of larger ones it has
// the size and digest.
const maxNoteValue = 1 << 10

// Note is something that happened in the workflow's logic between two operations.
type Note struct {
	Event   EventType         `json:"event"` // time_accessed, variable_set or version_decision
	Key     string            `json:"key"`   // id of the access, name of the variable, id of the change
	Time    time.Time         `json:"time,omitzero"`
	Value   json.RawMessage   `json:"value,omitempty"`
	Digest  string            `json:"digest,omitempty"` // of a value that is left out
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

func (r *Runner) takeNotes() ([]Note, int) {
	notes, dropped := r.s.notes, r.s.dropped
	r.s.notes, r.s.dropped = nil, 0
	return notes, dropped
}

// flushed is the content of the marker that Flush leaves.
type flushed struct {
	Event   EventType `json:"event"`
	Notes   []Note    `json:"notes"`
	Dropped int       `json:"notes_dropped,omitempty"`
}

// Flush records what was noted since the last operation, in a marker of its own. Call it
// at the end of an annotated workflow. A call of it, as one of [Random], may be added and
// removed behind a [Runner.Version] only.
func (r *Runner) Flush(ctx workflow.Context) {
	notes, dropped := r.takeNotes()
	workflow.SideEffect(ctx, func(workflow.Context) any { return flushed{eventNotes, notes, dropped} })
}

// Now is the time of the workflow's logic: that of the event that set it going, the same
// in every replay. It needs no event of its own.
func (r *Runner) Now(ctx workflow.Context) time.Time {
	now := workflow.Now(ctx).UTC()
	if r.s.annotated {
		id, _ := r.mint(prefixTime, "now")
		r.note(Note{Event: TimeAccessed, Key: id, Time: now})
	}
	return now
}

// drawn is the content of the marker that Random leaves.
type drawn struct {
	Event EventType       `json:"event"`
	Key   string          `json:"key"`
	Seed  string          `json:"seed"` // hexadecimal
	Value json.RawMessage `json:"value"`
}

// Random draws a value once, records it with its seed, and gives the same in every replay.
// The name and the place of the call are its key: replaying code that draws something else
// here fails its workflow task rather than going on with another's value.
func Random[T any](ctx workflow.Context, r *Runner, name string, draw func(*rand.Rand) T) T {
	id, _ := r.mint(prefixRandom, name)
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
		panic(fmt.Sprintf("random value %s: what is recorded cannot be read: %v", id, err))
	}
	if d.Key != id {
		panic(fmt.Sprintf("nondeterministic workflow: the history has the random value %q where the code draws %q", d.Key, id))
	}
	var value T
	if err := json.Unmarshal(d.Value, &value); err != nil {
		panic(fmt.Sprintf("random value %s: what is recorded does not fit %T: %v", id, value, err))
	}
	return value
}

// seedFor is called outside of the workflow's logic: its outcome is recorded.
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

// UUID is a random UUID (version 4), for [Random].
func UUID(r *rand.Rand) string {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], r.Uint64())
	binary.LittleEndian.PutUint64(b[8:], r.Uint64())
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Set assigns a variable. Variables are the workflow's own state: replaying sets them
// again, so that they need no events; [Annotated] tells readers of them.
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
			n.Value, n.Digest, n.Size = nil, digest(data), len(data)
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
		return permanent(TypeBadOperation, "variable %q: %d bytes, at most %d are kept", name, len(value), MaxInline)
	case !have && len(r.s.variables) >= MaxVariables:
		return permanent(TypeBadOperation, "variable %q: there are %d already", name, MaxVariables)
	}
	r.s.variables[name] = value
	return nil
}

// Get reads a variable into a pointer; false where it was never set.
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

// Variables lists the names of the variables in alphabetical order.
func (r *Runner) Variables() []string { return sortedNames(r.s.variables) }

func sortedNames(m map[string]json.RawMessage) []string {
	names := make([]string, 0, len(m))
	//workflowcheck:ignore
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Original is the version of code as it was before a change.
const Original = workflow.DefaultVersion

// Version says which version of a change this run is to follow: high where the run comes
// here for the first time, and then always the same; [Original] where it came here before
// the change was made. low is the oldest version that the code still has a branch for.
//
// A range that makes no sense, and a recorded version outside of it, are mistakes of the
// code: they fail the workflow task, which Temporal tries again until the code is mended,
// and lose no run.
func (r *Runner) Version(ctx workflow.Context, change string, low, high workflow.Version) workflow.Version {
	if change == "" || low > high || low < Original {
		panic(fmt.Sprintf("version of change %q: the range %d to %d makes no sense: it begins at operation.Original (%d) or later and ends no earlier", change, low, high, Original))
	}
	v := workflow.GetVersion(ctx, change, low, high)
	if !r.s.decided[change] {
		r.s.decided[change] = true
		r.note(Note{Event: VersionDecision, Key: change, Version: &v, Min: &low, Max: &high})
	}
	return v
}
