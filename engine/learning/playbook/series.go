package playbook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"acescope/engine/ace"
)

// Origin says where an imported branch was read. File is the file of version 0, if any; Scores are its
// evaluations. Config is the configuration of the run that wrote the files, as its configuration file has it.
type Origin struct {
	Kind   string          `json:"kind"`
	Name   string          `json:"name"`
	File   string          `json:"file,omitempty"`
	Scores []Score         `json:"scores,omitempty"`
	Config json.RawMessage `json:"config,omitempty"`
}

// Imported says where a version was read: its file, the other names of its content such as best, its
// evaluations, and of the tasks since the version before, how often they cited its bullets, and whether the
// first answer of each was correct.
type Imported struct {
	File     string   `json:"file"`
	Names    []string `json:"names,omitempty"`
	Scores   []Score  `json:"scores,omitempty"`
	Cited    []Cited  `json:"cited,omitempty"`
	Verdicts []bool   `json:"verdicts,omitempty"`
}

// Data sets of a [Score] whose items no version learns from.
const (
	DataValidation = "validation"
	DataTest       = "test"
)

// Score is an evaluation that a file states. Total is 0 if the file states an accuracy only. Accuracy need
// not be Correct/Total: a task may be correct in part.
type Score struct {
	Data     string        `json:"data"`
	Accuracy float64       `json:"accuracy"`
	Correct  int           `json:"correct,omitempty"`
	Total    int           `json:"total,omitempty"`
	NoAnswer int           `json:"no_answer,omitempty"`
	Wrong    []WrongAnswer `json:"wrong,omitempty"`
}

func (s Score) String() string {
	text := fmt.Sprintf("%s accuracy %.3f", s.Data, s.Accuracy)
	if s.Total > 0 {
		text += fmt.Sprintf(" (%d of %d correct)", s.Correct, s.Total)
	}
	return text
}

// WrongAnswer is a wrong answer of an evaluation. Item is its place in the data set, from 0.
type WrongAnswer struct {
	Item     int    `json:"item"`
	Answer   string `json:"answer"`
	Expected string `json:"expected"`
}

// Cited counts the tasks that cited a bullet, and those of them that were answered correctly.
type Cited struct {
	BulletID string `json:"bullet_id"`
	Tasks    int    `json:"tasks"`
	Correct  int    `json:"correct"`
}

// ImportedEvidence returns the verdicts on tasks and the evaluations on held-out items that the files of an
// imported branch state, nothing for another branch. A task has the time of the version that learned from it.
func (s *Store) ImportedEvidence(branch string) (known Evidence, err error) {
	about, err := s.Branch(branch)
	if err != nil || about.Origin == nil {
		return known, err
	}
	records, err := s.Page(branch, 1, math.MaxInt)
	if err != nil {
		return known, err
	}
	evaluated := func(hash string, scores []Score) {
		for _, x := range scores {
			if x.Total > 0 && (x.Data == DataValidation || x.Data == DataTest) {
				known.Evaluations = append(known.Evaluations, Evaluation{hash, x.Correct, x.Total})
			}
		}
	}
	evaluated(about.Start, about.Origin.Scores)
	for _, v := range records {
		if v.Imported == nil {
			continue
		}
		for _, correct := range v.Imported.Verdicts {
			known.Outcomes = append(known.Outcomes, Outcome{v.At, correct})
		}
		evaluated(v.Hash, v.Imported.Scores)
	}
	return known, nil
}

// Snapshot is a playbook of a series. Logged are operations that a log states for the time since the snapshot
// before.
type Snapshot struct {
	Imported
	Book      *Playbook
	At        time.Time
	TaskID    string
	Rationale string
	Logged    []ace.Operation
}

// Series is a sequence of snapshots that [Store.Append] makes the versions of a branch. Start is version 0.
type Series struct {
	Branch string
	Origin Origin
	Start  *Playbook
	At     time.Time // of the start
	Steps  []Snapshot
}

// ParseSnapshot is like [Parse], but gives a bullet with a repeated ID the same new ID in each file of a
// series: the second "calc-00001" becomes "calc-00001.2".
func ParseSnapshot(r io.Reader) (*Playbook, Report, error) {
	p, report, err := Parse(r)
	if err != nil || len(report.repeated) == 0 {
		return p, report, err
	}
	used := map[string]bool{}
	for i := range p.Bullets {
		if _, renamed := report.repeated[p.Bullets[i].ID]; !renamed {
			used[p.Bullets[i].ID] = true
		}
	}
	for i := range p.Bullets {
		b := &p.Bullets[i]
		was, renamed := report.repeated[b.ID]
		for n := 2; renamed; n++ {
			if id := fmt.Sprintf("%s.%d", was, n); !validID(id) {
				break
			} else if !used[id] {
				b.ID = id
				used[id] = true
				break
			}
		}
	}
	if report.Format == FormatText || report.Format == FormatPlain {
		p.NextID = 0
		p.NextID = p.nextNumber()
	}
	return p, report, nil
}

// versions returns the records of a series and their playbooks, without the start.
func (x *Series) versions() ([]Version, []*Playbook) {
	versions := make([]Version, len(x.Steps))
	books := make([]*Playbook, len(x.Steps))
	before, parent, at := x.Start, x.Start.Hash(), x.At
	for i := range x.Steps {
		s := &x.Steps[i]
		if s.At.After(at) {
			at = s.At
		}
		v := Version{
			Source: Source{Hash: s.Book.Hash(), At: at.UTC(), TaskID: s.TaskID,
				Rationale: strings.ToValidUTF8(ace.Head(s.Rationale, maxRationale), "�")},
			Parent: parent, DeltaID: fmt.Sprintf("import %d", i+1), Bullets: len(s.Book.Bullets),
			Operations: matchLogged(operationsBetween(before, s.Book), s.Logged), Imported: &s.Imported,
		}
		v.count()
		versions[i], books[i] = v, s.Book
		before, parent = s.Book, v.Hash
	}
	return versions, books
}

// Summary counts the operations of all versions of a series by kind, and the logged operations that changed
// nothing.
func (x *Series) Summary() (t Totals) {
	versions, _ := x.versions()
	for i := range versions {
		v := &versions[i]
		t.Merges++
		t.Added += v.Added
		t.Updated += v.Updated
		t.Removed += v.Removed
		t.Tagged += v.Tagged
		t.Refused += len(v.Operations) - v.Added - v.Updated - v.Removed - v.Tagged
	}
	return t
}

// operationsBetween returns operations that lead from one snapshot to the next. A bullet with another ID is
// removed and added; one in another section or with other extra fields is updated, which Reason states, as it
// does for counters that decreased.
func operationsBetween(a, b *Playbook) (ops []ace.Operation) {
	d := Diff(a, b)
	add := func(t ace.OperationType, b *Bullet, content string, counts tally, reason string) {
		ops = append(ops, ace.Operation{Type: t, Section: b.Section, Content: content, BulletID: b.ID,
			Metadata: counts.metadata(), Outcome: ace.OutcomeAccepted, Reason: reason})
	}
	for i := range d.Removed {
		add(ace.OpRemove, &d.Removed[i], d.Removed[i].Content, tally{}, "")
	}
	for i := range d.Changed {
		c := &d.Changed[i]
		if c.From != "" {
			add(ace.OpRemove, &c.Before, c.Before.Content, tally{}, "renamed to "+c.ID)
			add(ace.OpAdd, &c.After, c.After.Content, c.After.counts(), "was "+c.From)
			continue
		}
		var reasons []string
		if c.Moved {
			reasons = append(reasons, "moved from "+c.Before.Section)
		}
		if c.Extra {
			reasons = append(reasons, "other extra fields")
		}
		if c.Content || len(reasons) > 0 {
			add(ace.OpUpdate, &c.After, c.After.Content, tally{}, strings.Join(reasons, ", "))
		}
		if c.Counts {
			grown, fell := growth(c.Before.counts(), c.After.counts())
			add(ace.OpTag, &c.After, "", grown, fell)
		}
	}
	for i := range d.Added {
		add(ace.OpAdd, &d.Added[i], d.Added[i].Content, d.Added[i].counts(), "")
	}
	return ops
}

// growth returns the increase of counters, and a text about those that decreased.
func growth(a, b tally) (grown tally, fell string) {
	grown = tally{max(b.helpful-a.helpful, 0), max(b.harmful-a.harmful, 0), max(b.neutral-a.neutral, 0)}
	if b.helpful < a.helpful || b.harmful < a.harmful || b.neutral < a.neutral {
		fell = fmt.Sprintf("counters decreased: helpful %d to %d, harmful %d to %d, neutral %d to %d",
			a.helpful, b.helpful, a.harmful, b.harmful, a.neutral, b.neutral)
	}
	return grown, fell
}

// matchLogged gives the reasons of logged ADD operations to the computed ones with the same content, in
// order, and appends the other logged operations, which changed nothing.
func matchLogged(ops, logged []ace.Operation) []ace.Operation {
	byContent := map[string][]int{}
	for i := range ops {
		if ops[i].Type == ace.OpAdd {
			key := folded(ops[i].Content)
			byContent[key] = append(byContent[key], i)
		}
	}
	for _, op := range logged {
		key := folded(cleanContent(op.Content))
		at := byContent[key]
		if op.Type == ace.OpAdd && op.Outcome == "" && len(at) > 0 {
			ops[at[0]].Reason = cmp.Or(ops[at[0]].Reason, op.Reason)
			byContent[key] = at[1:]
			continue
		}
		outcome := op.Outcome
		if outcome == "" {
			outcome, op.Reason = ace.OutcomeRejected, "not in the next snapshot; "+op.Reason
		}
		ops = append(ops, rejected(op, outcome, op.Reason))
	}
	return ops
}

// Missing returns the number of versions that [Store.Append] would add, and whether the branch is new. The
// error is [ErrDiffers] if the branch has other versions.
func (s *Store) Missing(ctx context.Context, x *Series) (added int, isNew bool, err error) {
	if err := s.Sync(ctx, x.Branch); err != nil {
		return 0, false, err
	}
	log, err := s.logs.of(x.Branch)
	if err != nil && !errors.Is(err, ErrNoBranch) {
		return 0, false, err
	}
	return x.missing(log)
}

// missing compares a series with the log of its branch, nil for a new one.
func (x *Series) missing(log *branchLog) (added int, isNew bool, err error) {
	if log == nil {
		return len(x.Steps), true, nil
	}
	differs := log.header.Start != x.Start.Hash()
	for i := range min(len(log.entries), len(x.Steps)) {
		differs = differs || log.entries[i].hash != x.Steps[i].Book.Hash()
	}
	if differs {
		return 0, false, fmt.Errorf("%w: %q", ErrDiffers, x.Branch)
	}
	return max(len(x.Steps)-len(log.entries), 0), false, nil
}

// Append makes a series the versions of a branch, which is new or has the first of them. It returns the
// number of versions that it added, and whether the branch is new. The versions of a new branch in a
// directory appear at once.
func (s *Store) Append(ctx context.Context, x *Series) (added int, isNew bool, err error) {
	versions, books := x.versions()
	for _, book := range append([]*Playbook{x.Start}, books...) {
		if err := book.check(); err != nil {
			return 0, false, err
		}
	}
	unlock, err := s.logs.lock(ctx, x.Branch)
	if err != nil {
		return 0, false, err
	}
	defer unlock()
	log, err := s.current(ctx, x.Branch)
	if err != nil && !errors.Is(err, ErrNoBranch) {
		return 0, false, err
	}
	added, isNew, err = x.missing(log)
	if err != nil || added == 0 && !isNew {
		return 0, isNew, err
	}
	lines := make([][]byte, 0, added+1)
	if isNew {
		header := logHeader{logFormat, x.Branch, x.Start.Hash(), x.At.UTC(), &x.Origin}
		line, err := encodeLine(header)
		if err != nil {
			return 0, false, err
		}
		lines = append(lines, line)
		books = append([]*Playbook{x.Start}, books...)
	}
	for _, v := range versions[len(versions)-added:] {
		line, err := encodeLine(v)
		if err != nil {
			return 0, false, err
		}
		if len(line) > maxEntry {
			return 0, false, fmt.Errorf("%s: its record has %d bytes, at most %d are allowed",
				v.Imported.File, len(line),
				maxEntry)
		}
		lines = append(lines, line)
	}
	for _, book := range books[len(books)-len(lines):] {
		if _, err := s.Put(ctx, book); err != nil {
			return 0, false, err
		}
	}
	if err := s.appendLines(ctx, x.Branch, log, lines); err != nil {
		return 0, false, err
	}
	_, err = s.current(ctx, x.Branch)
	return added, isNew, err
}

// appendLines adds lines to the log of a branch, or makes a new one if log is nil.
func (s *Store) appendLines(ctx context.Context, name string, log *branchLog, lines [][]byte) error {
	if s.shared == nil {
		if log != nil {
			return appendLine(log.path, log.size, bytes.Join(lines, nil))
		}
		path, err := s.logs.file(name, logSuffix)
		if err != nil {
			return err
		}
		return s.logs.write(path, bytes.Join(lines, nil), true)
	}
	first := 0
	if log != nil {
		first = len(log.entries) + 1
	}
	for i, line := range lines {
		if err := s.shared.addEntry(ctx, name, first+i, line); err != nil {
			return err
		}
	}
	return nil
}

// Named returns the number of the newest version of an imported branch that has a name such as best, -1
// without one.
func (s *Store) Named(branch, name string) (int, error) {
	versions, err := s.Page(branch, 1, math.MaxInt)
	for _, v := range slices.Backward(versions) {
		if v.Imported != nil && slices.Contains(v.Imported.Names, name) {
			return v.Seq, nil
		}
	}
	return -1, err
}
