package llm

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
)

var oneBullet = &playbook.Playbook{Bullets: []playbook.Bullet{{ID: "calc-00001", Section: "FORMULAS",
	Content: "x"}}, NextID: 2}

func TestWrittenGenerator(t *testing.T) {
	for name, c := range map[string]struct {
		text, plan, answer, program string
		how                         ace.ParseKind
		note                        string
	}{
		"clean": {`{"plan": "p", "answer": "42", "program": {"a": 1.50}, "bullet_ids": ["calc-00001"]}`,
			"p", "42", `{"a": 1.50}`, ace.ParseClean, ""},
		"a number":  {`{"answer": 42.10}`, "", "42.10", "", ace.ParseClean, ""},
		"logged":    {"starting up\n{\"plan\": \"p\"}\ndone\n", "p", "", "", ace.ParseExtracted, ""},
		"fenced":    {"```json\n{\"plan\": \"p\"}\n```", "p", "", "", ace.ParseExtracted, ""},
		"repaired":  {`{'plan': 'p', 'answer': '7',}`, "p", "7", "", ace.ParseRepaired, "not valid JSON"},
		"odd names": {`{"Plan": "p", "finalAnswer": 3}`, "p", "3", "", ace.ParseClean, ""},
		"strange": {`{"plan": "p", "bullet_ids": ["calc-00009"]}`, "p", "", "", ace.ParseClean,
			`bullet "calc-00009" not found`},
	} {
		r, err := (Written{"x", c.text}).Generator(oneBullet, ace.TaskContext{})
		if err != nil || r.Plan != c.plan || r.Answer != c.answer || string(r.Program) != c.program ||
			r.Parsed.Parse != c.how ||
			!strings.Contains(r.Parsed.Note, c.note) || r.TrajectoryID == "" || r.Usage == nil {
			t.Errorf("%s: %+v, %+v, %v", name, r, r.Parsed, err)
		}
	}
	for name, text := range map[string]string{"empty": "", "no object": "hello",
		"nothing known": `{"level": "info"}`, "cut off": `{"plan": "p", "answer": "4`,
		"too large": `{"plan": "p", "program": "` + strings.Repeat("x", ace.InlineBytes) + `"}`} {
		_, err := (Written{"x", text}).Generator(oneBullet, ace.TaskContext{})
		if !errors.Is(err, model.ErrPermanent) || model.KindOf(err) != model.BadAnswer ||
			!strings.HasPrefix(err.Error(), "x: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWrittenUsage(t *testing.T) {
	r, err := (Written{"x", `{"plan": "p", "usage": {"input_tokens": 7, "output_tokens": "2", "cache_read_tokens": 1, "cost_usd": 0.25}}`}).Generator(nil, ace.TaskContext{})
	if err != nil || *r.Usage != (ace.Usage{InputTokens: 7, OutputTokens: 2, CacheReadTokens: 1,
		CostUSD: 0.25}) || r.PromptTokens != 8 || r.CompletionTokens != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = (Written{"x", `{"plan": "p", "prompt_tokens": 5, "completion_tokens": -3, "usage": null}`}).Generator(nil, ace.TaskContext{})
	if err != nil || r.PromptTokens != 5 || r.CompletionTokens != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestWrittenSkills(t *testing.T) {
	r, err := (Written{"x", `{"answer": 3, "invocations": [{"name": "look_up", "args": {"w": 1}, "result": [2], "duration_ms": 1.5, "at": "2026-11-21T09:30:00Z"},
		{"name": "rm", "accepted": false}, {"name": "get", "error": "boom"}, {"name": "put", "ok": false}, {"args": 1}]}`}).Skills()
	if err != nil || r.Answer != "3" || len(r.Invocations) != 4 ||
		!strings.Contains(r.Parsed.Note, "invocation 5 has no name") {
		t.Fatalf("%+v, %+v, %v", r, r.Parsed, err)
	}
	var said []string
	for _, inv := range r.Invocations {
		s := inv.Name
		if inv.Accepted {
			s += " accepted"
		}
		if inv.OK {
			s += " ok"
		}
		said = append(said, s)
	}
	if got := strings.Join(said, ", "); got != "look_up accepted ok, rm, get accepted, put accepted" ||
		string(r.Invocations[0].Args) != `{"w": 1}` || r.Invocations[0].DurationMS != 1.5 ||
		r.Invocations[0].At.IsZero() {
		t.Errorf("%s; %+v", got, r.Invocations[0])
	}
	if r, err := (Written{"x", "{}"}).Skills(); err != nil || r.Answer != "" {
		t.Errorf("an empty session: %+v, %v", r, err)
	}
}

func TestWrittenReflector(t *testing.T) {
	label := "42"
	for name, c := range map[string]struct {
		text    string
		label   *string
		correct string
	}{
		"its own word":    {`{"insights": "i", "correct": false}`, &label, "false"},
		"by the label":    {`{"insights": "i"}`, &label, "true"},
		"no verdict":      {`{"insights": "i"}`, nil, "null"},
		"without label":   {`{"insights": "i", "correct": true}`, nil, "true"},
		"null is no word": {`{"insights": "i", "correct": null}`, &label, "true"},
	} {
		r, err := (Written{"x", c.text}).Reflector(nil, ace.ReflectorInput{Answer: "42.0", Label: c.label})
		said, _ := json.Marshal(r.Correct)
		if err != nil || r.Insights != "i" || string(said) != c.correct {
			t.Errorf("%s: %+v %s, %v", name, r, said, err)
		}
	}
	r, err := (Written{"x", `{"bullet_tags": [{"id": "calc-00001", "tag": "Helpful"}, {"id": "calc-00002", "tag": "helpful"}, {"id": "calc-00001", "tag": "good"}], "findings": {"n": 1}}`}).Reflector(oneBullet, ace.ReflectorInput{})
	if err != nil || len(r.BulletTags) != 1 ||
		r.BulletTags[0] != (ace.BulletTag{ID: "calc-00001", Tag: "helpful"}) ||
		string(r.Findings) != `{"n": 1}` || r.Parsed.Note == "" {
		t.Errorf("%+v, %+v, %v", r, r.Parsed, err)
	}
}

func TestWrittenCurator(t *testing.T) {
	r, err := (Written{"x", `{"rationale": "why", "follow_up_actions": ["ask, more"], "accepted": [
		{"type": "add", "section": "FORMULAS", "content": "new", "metadata": {"helpful": 1}, "reason": "it is good"},
		{"type": "TAG", "bullet_id": "calc-00001", "metadata": {"harmful": 1}},
		{"type": "ADD", "section": "FORMULAS", "content": "x"}, {"type": "REMOVE", "bullet_id": "none"}, 7],
		"rejected": [{"type": "ADD", "content": "bad", "reason": "too vague"}, {"type": "ADD", "content": "same", "fate": "ignored"}]}`}).Curator(oneBullet)
	if err != nil || r.Rationale != "why" || len(r.FollowUpActions) != 1 || len(r.Accepted) != 2 ||
		len(r.Rejected) != 5 {
		t.Fatalf("%+v, %v", r, err)
	}
	if a := r.Accepted[0]; a.Metadata["helpful"] != 1 || a.Reason != "it is good" || a.BulletID != "" {
		t.Errorf("%+v", a)
	}
	var fates []string
	for _, op := range r.Rejected {
		fates = append(fates, string(op.Outcome)+": "+op.Reason)
	}
	want := []string{"rejected: exact duplicate of calc-00001",
		`rejected: bullet "none" not found: it never existed or was removed meanwhile`,
		"unparsable: the operation is not an object", "rejected: too vague", "ignored: "}
	if got := strings.Join(fates, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s", got)
	}
	if _, err := (Written{"x", `{"accepted": [{"type": "ADD", "con`}).Curator(oneBullet); err == nil {
		t.Error("a truncated delta was accepted")
	}
}
