package series

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
)

// Files of a run folder of ace-agent/ace, as its ace/ace.py and logger.py write them.
const (
	configFile     = "run_config.json"
	usageFile      = "bullet_usage_log.jsonl"
	operationsFile = "curator_operations_diff.jsonl"
	snapshotsDir   = "intermediate_playbooks"
	trainFile      = "train_results.json"
	valFile        = "val_results.json"
	onlineFile     = "test_results.json"
	initialFile    = "initial_test_results.json"
	finalTestFile  = "final_test_results.json"
	bestFile       = "best_playbook.txt"
	finalFile      = "final_playbook.txt"
	callsDir       = "detailed_llm_logs"
)

// unread are files of a run folder that have no place in a branch, and why.
var unread = map[string]string{
	"final_results.json":                "repeats the results of the other files",
	"pre_train_post_train_results.json": "answers before and after each task, which no version has",
	"curator_failures.txt":              "failed calls of the curator, which changed nothing",
	callsDir:                            "calls of models",
}

func isRunFolder(dir string) bool {
	for _, name := range []string{configFile, usageFile, snapshotsDir} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// position is a place in training: epoch 1 in an online run. A playbook of the end of an epoch has step last.
type position struct{ epoch, step int }

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.epoch, q.epoch), cmp.Compare(p.step, q.step))
}

// runFolder is a run folder while it is read.
type runFolder struct {
	dir    string
	result *Result
	config struct {
		Mode   string `json:"mode"`
		Task   string `json:"task_name"`
		Config struct {
			Window int `json:"online_eval_frequency"`
		} `json:"config"`
	}
	windowEnd map[int]int // step by window of an online run
	steps     []step
}

// step is a snapshot with its position.
type step struct {
	position
	file snapshotFile
	playbook.Snapshot
}

func readRun(dir, name string) (*Result, error) {
	r := &runFolder{dir: dir, windowEnd: map[int]int{}, result: &Result{Kind: RunFolder}}
	r.result.Series = playbook.Series{
		Branch: name, Start: (&playbook.Playbook{}).WithReferenceSections(),
		Origin: playbook.Origin{Kind: string(RunFolder), Name: name},
	}
	for _, read := range []func() error{r.readConfig, r.readOnline, r.readSnapshots, r.readNamed,
		r.readTraining,
		r.readTests, r.readOperations, r.readUsage} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	if len(r.steps) == 0 {
		return nil, fmt.Errorf("%w %s: the run folder has no playbook, neither in %s nor %s", ErrInput, dir,
			snapshotsDir,
			finalFile)
	}
	r.result.Order = "the epochs and steps in the names"
	r.result.At = r.started()
	for i, s := range r.steps {
		s.Rationale = strings.Join(slices.Concat([]string{"snapshot " + s.File}, scoreTexts(s.Scores)), "; ")
		r.result.Steps = append(r.result.Steps, s.Snapshot)
		r.result.add(s.file, i+1)
	}
	return r.result, r.countUnread()
}

func scoreTexts(scores []playbook.Score) (list []string) {
	for _, s := range scores {
		list = append(list, s.String())
	}
	return list
}

var folderTime = regexp.MustCompile(`^ace_run_(\d{8}_\d{6})_`)

// started returns the time in the name of the folder, or that of the first snapshot.
func (r *runFolder) started() time.Time {
	if m := folderTime.FindStringSubmatch(r.result.Branch); m != nil {
		if at, err := time.ParseInLocation("20060102_150405", m[1], time.Local); err == nil {
			return at
		}
	}
	return r.steps[0].At
}

// object reads a JSON file of the folder into v. It returns false without the file.
func (r *runFolder) object(name string, v any) (bool, error) {
	data, err := readLog(filepath.Join(r.dir, name))
	if err != nil || data == nil {
		return false, err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return false, fmt.Errorf("%w %s: %w", ErrInput, filepath.Join(r.dir, name), err)
	}
	return true, nil
}

func (r *runFolder) readConfig() error {
	var raw json.RawMessage
	found, err := r.object(configFile, &raw)
	if err != nil || !found {
		return err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return err
	}
	r.result.Origin.Config = compact.Bytes()
	_ = json.Unmarshal(raw, &r.config) // fields of other types keep their zero values
	var full struct {
		Config struct {
			Initial string `json:"initial_playbook_path"`
		} `json:"config"`
	}
	if json.Unmarshal(raw, &full) == nil && full.Config.Initial != "" {
		r.result.lose("initial playbook", 1,
			"not in the folder; version 0 is empty, so version 1 adds its bullets")
	}
	return nil
}

// evaluation is the result of evaluate_test_set.
type evaluation struct {
	Accuracy float64 `json:"accuracy"`
	Correct  int     `json:"correct"`
	Total    int     `json:"total"`
	NoAnswer int     `json:"no_answer"`
}

type errorLog struct {
	Errors []struct {
		Index       int  `json:"index"`
		GlobalIndex *int `json:"global_index"`
		Window      int  `json:"window"`
		Prediction  text `json:"prediction"`
		Expected    text `json:"ground_truth"`
	} `json:"errors"`
}

// text is a string, or another JSON value as its text.
type text string

func (t *text) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) != nil {
		s = string(data)
	}
	*t = text(s)
	return nil
}

func scoreOf(data string, e evaluation, log errorLog) playbook.Score {
	s := playbook.Score{Data: data, Accuracy: e.Accuracy, Correct: e.Correct, Total: e.Total,
		NoAnswer: e.NoAnswer}
	for _, w := range log.Errors {
		item := w.Index
		if w.GlobalIndex != nil {
			item = *w.GlobalIndex
		}
		s.Wrong = append(s.Wrong, playbook.WrongAnswer{Item: item, Answer: string(w.Prediction),
			Expected: string(w.Expected)})
	}
	slices.SortStableFunc(s.Wrong, func(a, b playbook.WrongAnswer) int { return cmp.Compare(a.Item, b.Item) })
	return s
}

// readOnline reads where the windows of an online run end.
func (r *runFolder) readOnline() error {
	var train struct {
		Windows []struct {
			Window int `json:"window"`
			Step   int `json:"global_step"`
		} `json:"train_results"`
	}
	_, err := r.object(trainFile, &train)
	for _, w := range train.Windows {
		r.windowEnd[w.Window] = w.Step
	}
	return err
}

var snapshotName = regexp.MustCompile(
	`^(?:epoch_(\d{1,9})_)?(?:step_(\d{1,9})|window_(\d{1,9})_final|final)_playbook\.txt$`)

// positionOf returns the position of an intermediate playbook.
func (r *runFolder) positionOf(name string) (p position, ok bool) {
	m := snapshotName.FindStringSubmatch(name)
	if m == nil {
		return p, false
	}
	number := func(s string) int {
		n, _ := strconv.Atoi(s)
		return n
	}
	p = position{max(number(m[1]), 1), last}
	if m[2] != "" {
		p.step = number(m[2])
	}
	if m[3] != "" {
		p.step = r.windowEnd[number(m[3])]
		if p.step == 0 {
			p.step = number(m[3]) * cmp.Or(r.config.Config.Window, 100)
		}
	}
	return p, true
}

func (r *runFolder) readSnapshots() error {
	entries, err := os.ReadDir(filepath.Join(r.dir, snapshotsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > MaxFiles {
		return fmt.Errorf("%w: %d files in %s, at most %d are allowed", ErrInput, len(entries), snapshotsDir,
			MaxFiles)
	}
	for _, e := range entries {
		p, ok := r.positionOf(e.Name())
		if !ok {
			r.result.lose(snapshotsDir+"/"+e.Name(), 1, "its name states no epoch, step or window")
			continue
		}
		f, err := readSnapshot(filepath.Join(r.dir, snapshotsDir, e.Name()))
		if err != nil {
			return err
		}
		r.insert(p, f)
	}
	return nil
}

// insert adds a snapshot at its position, after those of the same position.
func (r *runFolder) insert(p position, f snapshotFile) *step {
	s := step{p, f, playbook.Snapshot{Imported: playbook.Imported{File: f.name}, Book: f.book, At: f.at,
		TaskID: strings.TrimSuffix(stem(f.name), "_playbook")}}
	i := slices.IndexFunc(r.steps, func(other step) bool { return other.compare(p) > 0 })
	if i < 0 {
		i = len(r.steps)
	}
	r.steps = slices.Insert(r.steps, i, s)
	return &r.steps[i]
}

// readNamed finds the versions of the final and the best playbook. If no snapshot has their content, they are
// versions of their own: the best after the step with the best validation, the final last.
func (r *runFolder) readNamed() error {
	for _, n := range []struct{ file, name string }{{finalFile, "final"}, {bestFile, "best"}} {
		f, err := readSnapshot(filepath.Join(r.dir, n.file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		hash := f.book.Hash()
		at := position{last, last}
		if n.name == "best" {
			if hash == r.result.Start.Hash() {
				r.result.lose(n.file, 1, "the best playbook is the empty one, version 0")
				continue
			}
			if at, err = r.bestPosition(); err != nil {
				return err
			}
		}
		s := r.sameContent(hash, n.name == "final")
		if s == nil {
			s = r.insert(at, f)
		}
		s.Names = append(s.Names, n.name)
	}
	return nil
}

// sameContent returns the first or last snapshot with a content, or nil.
func (r *runFolder) sameContent(hash string, fromEnd bool) (found *step) {
	for i := range r.steps {
		if r.steps[i].Book.Hash() == hash && (found == nil || fromEnd) {
			found = &r.steps[i]
		}
	}
	return found
}

// trainResult is an evaluation during offline training.
type trainResult struct {
	Epoch int `json:"epoch"`
	Step  int `json:"step"`
	Train struct {
		Before *float64 `json:"pre_train_accuracy"`
		After  *float64 `json:"post_train_accuracy"`
	} `json:"train_result"`
	Validation evaluation `json:"val_result"`
}

func (r *runFolder) trainResults() ([]trainResult, error) {
	var train struct {
		Results []trainResult `json:"results"`
	}
	_, err := r.object(trainFile, &train)
	return train.Results, err
}

// bestPosition returns the first position with the highest validation accuracy.
func (r *runFolder) bestPosition() (position, error) {
	results, err := r.trainResults()
	at, best := position{1, 0}, 0.0
	for _, t := range results {
		if t.Validation.Accuracy > best {
			best, at = t.Validation.Accuracy, position{t.Epoch, t.Step}
		}
	}
	return at, err
}

// at returns the last snapshot of exactly a position, or nil.
func (r *runFolder) at(p position) (found *step) {
	for i := range r.steps {
		if r.steps[i].position == p {
			found = &r.steps[i]
		}
	}
	return found
}

// readTraining reads the evaluations on the validation set.
func (r *runFolder) readTraining() error {
	results, err := r.trainResults()
	if err != nil {
		return err
	}
	var logs []struct {
		Epoch int      `json:"epoch"`
		Step  int      `json:"step"`
		Log   errorLog `json:"error_log"`
	}
	if _, err := r.object(valFile, &logs); err != nil {
		return err
	}
	wrong := map[position]errorLog{}
	for _, l := range logs {
		wrong[position{l.Epoch, l.Step}] = l.Log
	}
	without := 0
	for _, t := range results {
		p := position{t.Epoch, t.Step}
		s := r.at(p)
		if s == nil {
			without++
			continue
		}
		if t.Validation.Total > 0 {
			s.Scores = append(s.Scores, scoreOf(playbook.DataValidation, t.Validation, wrong[p]))
		}
		for _, x := range []struct {
			name string
			of   *float64
		}{{"training before learning", t.Train.Before}, {"training after learning", t.Train.After}} {
			if x.of != nil {
				s.Scores = append(s.Scores, playbook.Score{Data: x.name, Accuracy: *x.of})
			}
		}
	}
	r.result.lose(trainFile, without,
		"evaluations of a step without a snapshot; the run saved more rarely than it evaluated")
	return nil
}

// readTests reads the evaluations on the test set: before training, with the best playbook, and in windows.
func (r *runFolder) readTests() error {
	for _, name := range []string{initialFile, finalTestFile} {
		var test struct {
			Results evaluation `json:"test_results"`
			Log     errorLog   `json:"error_log"`
		}
		found, err := r.object(name, &test)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		score := scoreOf(playbook.DataTest, test.Results, test.Log)
		i := slices.IndexFunc(r.steps, func(s step) bool { return slices.Contains(s.Names, "best") })
		if name == initialFile || i < 0 {
			r.result.Origin.Scores = append(r.result.Origin.Scores, score)
		} else {
			r.steps[i].Scores = append(r.steps[i].Scores, score)
		}
	}
	var online struct {
		Results struct {
			Windows []struct {
				Window   int     `json:"window"`
				Accuracy float64 `json:"window_accuracy"`
				Correct  int     `json:"window_correct"`
				Total    int     `json:"window_total"`
			} `json:"window_results"`
		} `json:"test_results"`
		Log errorLog `json:"test_error_log"`
	}
	if _, err := r.object(onlineFile, &online); err != nil {
		return err
	}
	without := 0
	for _, w := range online.Results.Windows {
		log := errorLog{}
		for _, e := range online.Log.Errors {
			if e.Window == w.Window {
				log.Errors = append(log.Errors, e)
			}
		}
		score := scoreOf(fmt.Sprintf("window %d", w.Window), evaluation{w.Accuracy, w.Correct, w.Total, 0},
			log)
		// A window is tested with the playbook of the end of the window before.
		before := r.at(position{1, r.windowEnd[w.Window-1]})
		switch {
		case w.Window == 1:
			r.result.Origin.Scores = append(r.result.Origin.Scores, score)
		case before != nil:
			before.Scores = append(before.Scores, score)
		default:
			without++
		}
	}
	r.result.lose(onlineFile, without, "results of windows without a snapshot before them")
	return nil
}

// next returns the first snapshot that may contain what happened at a position, or nil.
func (r *runFolder) next(p position) *step {
	for i := range r.steps {
		if r.steps[i].compare(p) >= 0 {
			return &r.steps[i]
		}
	}
	return nil
}

var callID = regexp.MustCompile(`^(?:train_e_(\d{1,9})|online_train)_s_(\d{1,9})$`)

// logged is a line of the log of the curator's operations.
type logged struct {
	Time      string   `json:"timestamp"`
	Type      string   `json:"operation_type"`
	Reason    text     `json:"reason"`
	Section   text     `json:"section"`
	Content   text     `json:"content"`
	BulletID  text     `json:"bullet_id"`
	Merged    text     `json:"merged_content"`
	Call      string   `json:"call_id"`
	SourceIDs []source `json:"source_bullets"`
}

type source struct {
	ID text `json:"bullet_id"`
}

func (l *logged) operation() (op ace.Operation, p position, ok bool) {
	m := callID.FindStringSubmatch(l.Call)
	if m == nil || l.Type == "" {
		return op, p, false
	}
	epoch, _ := strconv.Atoi(m[1])
	stepNumber, _ := strconv.Atoi(m[2])
	op = ace.Operation{Type: ace.OperationType(l.Type), Section: string(l.Section),
		Content: string(cmp.Or(l.Content, l.Merged)), BulletID: string(l.BulletID),
		Reason: strings.TrimSuffix(l.Call+": "+string(l.Reason), ": ")}
	for _, s := range l.SourceIDs {
		op.SourceIDs = append(op.SourceIDs, string(s.ID))
	}
	if op.Type != ace.OpAdd {
		op.Outcome = ace.OutcomeIgnored
		op.Reason = "ace-agent/ace applies ADD only; " + op.Reason
	}
	return op, position{max(epoch, 1), stepNumber}, true
}

func (r *runFolder) readOperations() error {
	data, err := readLog(filepath.Join(r.dir, operationsFile))
	if err != nil {
		return err
	}
	bad, late := 0, 0
	for line := range bytes.Lines(data) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var l logged
		op, p, ok := ace.Operation{}, position{}, json.Unmarshal(line, &l) == nil
		if ok {
			op, p, ok = l.operation()
		}
		if !ok {
			bad++
			continue
		}
		s := r.next(p)
		if s == nil {
			late++
			continue
		}
		s.Logged = append(s.Logged, op)
		s.seen(l.Time)
	}
	r.result.lose(operationsFile, bad, "lines that are no operation of a known call")
	r.result.lose(operationsFile, late, "operations after the last snapshot")
	return nil
}

// seen sets the time of a snapshot to that of a log line. The time of a file is less exact: the file may have
// been copied.
func (s *step) seen(timestamp string) {
	at, err := time.ParseInLocation("2006-01-02T15:04:05.999999", timestamp, time.Local)
	if err == nil && (at.After(s.At) || s.At.Equal(s.file.at)) {
		s.At = at
	}
}

// usage is a line of the log of cited bullets.
type usage struct {
	Time      string `json:"timestamp"`
	Epoch     int    `json:"epoch"`
	Step      int    `json:"step"`
	BulletIDs []text `json:"bullet_ids_used"`
	Correct   *bool  `json:"is_correct"`
}

// readUsage counts the tasks that cited each bullet, and reads the verdicts on the first answers. A correct
// task is logged twice.
func (r *runFolder) readUsage() error {
	data, err := readLog(filepath.Join(r.dir, usageFile))
	if err != nil {
		return err
	}
	bad, late, again := 0, 0, 0
	done := map[position]bool{}
	counts := map[*step]map[string]*playbook.Cited{}
	for line := range bytes.Lines(data) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var u usage
		if json.Unmarshal(line, &u) != nil || u.Step < 1 {
			bad++
			continue
		}
		p := position{max(u.Epoch, 1), u.Step}
		s := r.next(p)
		switch {
		case done[p]:
			again++
			continue
		case s == nil:
			late++
			continue
		}
		done[p] = true
		s.seen(u.Time)
		if u.Correct != nil {
			s.Verdicts = append(s.Verdicts, *u.Correct)
		}
		if counts[s] == nil {
			counts[s] = map[string]*playbook.Cited{}
		}
		slices.Sort(u.BulletIDs)
		for _, id := range slices.Compact(u.BulletIDs) {
			c := counts[s][string(id)]
			if c == nil {
				c = &playbook.Cited{BulletID: string(id)}
				counts[s][c.BulletID] = c
			}
			c.Tasks++
			if u.Correct != nil && *u.Correct {
				c.Correct++
			}
		}
	}
	for s, byID := range counts {
		for _, id := range slices.Sorted(maps.Keys(byID)) {
			s.Cited = append(s.Cited, *byID[id])
		}
	}
	r.result.lose(usageFile, bad, "lines that are no usage of a step")
	r.result.lose(usageFile, late, "tasks after the last snapshot")
	r.result.lose(usageFile, again,
		"second lines of a task, which repeat its bullets; their reflection is not kept")
	return nil
}

// countUnread records the files that are not imported, and their number.
func (r *runFolder) countUnread() error {
	entries, err := os.ReadDir(r.dir)
	read := []string{configFile, usageFile, operationsFile, snapshotsDir, trainFile, valFile, onlineFile,
		initialFile,
		finalTestFile, bestFile, finalFile}
	for _, e := range entries {
		if slices.Contains(read, e.Name()) {
			continue
		}
		count := 1
		if files, err := os.ReadDir(filepath.Join(r.dir, e.Name())); err == nil {
			count = len(files)
		}
		r.result.lose(e.Name(), count, cmp.Or(unread[e.Name()], "not a file of a run folder"))
	}
	return err
}
