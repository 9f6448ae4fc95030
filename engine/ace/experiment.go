package ace

// ExperimentInput is the input of [ExperimentWorkflow]. Dataset and Eval are
// artifacts of JSON lines {context, target}; Window is how many tasks an online
// experiment measures before it learns from them.
type ExperimentInput struct {
	ExperimentID string            `json:"experiment_id"`
	DatasetID    string            `json:"dataset_id"`
	Dataset      Ref               `json:"dataset"`
	Tasks        int               `json:"tasks"`
	EvalID       string            `json:"eval_id,omitempty"`
	Eval         *Ref              `json:"eval,omitempty"`
	EvalTasks    int               `json:"eval_tasks,omitempty"`
	Adapter      Adapter           `json:"adapter"`
	Provider     string            `json:"provider"`
	Model        string            `json:"model"`
	Steps        map[string]string `json:"steps,omitempty"`
	SkillsConfig SkillsConfig      `json:"skills_config"`
	PlaybookHash string            `json:"playbook_hash"`
	Epochs       int               `json:"epochs"`
	Parallel     int               `json:"parallel"`
	Window       int               `json:"window,omitempty"`
	PaceMS       int64             `json:"pace_ms,omitempty"`
	// Progress is set when the workflow continues as new.
	Progress *ExperimentProgress `json:"progress,omitempty"`
}

// EpochResult counts the tasks of one epoch as they were answered, before the
// playbook learnt from them. Curve holds the same for each Bucket tasks of the data set,
// in its order.
type EpochResult struct {
	Epoch     int          `json:"epoch"`
	Tasks     int          `json:"tasks"`
	Correct   int          `json:"correct"`
	Wrong     int          `json:"wrong"`
	Failed    int          `json:"failed"`
	Accuracy  float64      `json:"accuracy"`
	Unlabeled int          `json:"unlabeled,omitempty"`
	Bucket    int          `json:"bucket,omitempty"`
	Curve     []CurvePoint `json:"curve,omitempty"`
}

// CurvePoint is how a bucket of tasks was answered.
type CurvePoint struct {
	Tasks   int `json:"tasks"`
	Correct int `json:"correct"`
}

// MaxWrong bounds [EvalResult.Wrong].
const MaxWrong = 1000

// EvalResult is the accuracy on the second data set; Epoch 0 is before the first.
type EvalResult struct {
	Epoch    int     `json:"epoch"`
	Tasks    int     `json:"tasks"`
	Correct  int     `json:"correct"`
	Accuracy float64 `json:"accuracy"`
	Playbook string  `json:"playbook"`
	Wrong    []int   `json:"wrong,omitempty"` // 0-based indexes of wrongly answered tasks, at most MaxWrong
	Usage    Usage   `json:"usage"`
}

// ExperimentProgress is how far an experiment has come; the answer of
// [QueryExperiment] and the workflow's result.
type ExperimentProgress struct {
	ExperimentID string        `json:"experiment_id"`
	TotalEpochs  int           `json:"total_epochs"`
	TotalTasks   int           `json:"total_tasks"` // of one epoch
	Epoch        int           `json:"epoch"`       // the one under way, or the last; 1-based
	Epochs       []EpochResult `json:"epochs"`
	Eval         []EvalResult  `json:"eval"`
	Before       string        `json:"playbook_before"`
	After        string        `json:"playbook_after"`
	Bullets      int           `json:"bullets"`
	Usage        Usage         `json:"usage"`
	Accepted     int           `json:"operations_accepted"`
	Rejected     int           `json:"operations_rejected"`
	Summary      Summary       `json:"summary"` // of all its tasks together
	ExitStatus   ExitStatus    `json:"exit_status"`
	Stage        string        `json:"stage"` // learning, evaluating or done
	Runs         int           `json:"runs"`  // how many Temporal runs the experiment has taken, by continue-as-new
}

// Stages of an experiment.
const (
	StageLearning   = "learning"
	StageEvaluating = "evaluating"
	StageDone       = "done"
)

// LoadTasksInput is the input of [ActivityLoadTasks]: at most Count tasks from From,
// 0-based; fewer where they would not fit into a payload, but at least one.
type LoadTasksInput struct {
	Dataset Ref `json:"dataset"`
	From    int `json:"from"`
	Count   int `json:"count"`
}

// Task is one problem of a data set.
type Task struct {
	Index     int     `json:"index"`
	Prompt    string  `json:"prompt,omitempty"`
	PromptRef *Ref    `json:"prompt_ref,omitempty"`
	Label     *string `json:"label,omitempty"`
}

// EvaluateInput is the input of [ActivityEvaluate]: answer Count tasks from From and
// compare, without learning. Steps says who serves a step that Task.Provider does not.
type EvaluateInput struct {
	Task    TaskContext       `json:"task"`
	Steps   map[string]string `json:"steps,omitempty"`
	Dataset Ref               `json:"dataset"`
	From    int               `json:"from"`
	Count   int               `json:"count"`
}

// ProviderOf is who serves a step of the measurement.
func (in EvaluateInput) ProviderOf(step Phase) string {
	if p := in.Steps[string(step)]; p != "" {
		return p
	}
	return in.Task.Provider
}

// EvaluateResult is what [ActivityEvaluate] returns. Wrong lists the 0-based indexes of
// the tasks that were answered wrongly.
type EvaluateResult struct {
	Tasks   int   `json:"tasks"`
	Correct int   `json:"correct"`
	Wrong   []int `json:"wrong,omitempty"`
	Usage   Usage `json:"usage"`
}

// HeadInput is the input of [ActivityHead], which names the newest version of a
// branch; a branch that does not exist is made to start at Initial.
type HeadInput struct {
	Branch  string `json:"branch"`
	Initial string `json:"initial"`
}

// HeadResult is what [ActivityHead] returns.
type HeadResult struct {
	PlaybookHash string `json:"playbook_hash"`
	Bullets      int    `json:"bullets"`
}
