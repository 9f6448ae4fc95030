package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"acescope/engine/learning/model/llm/llmtest"
)

var (
	taskPattern = regexp.MustCompile(`the (\w+) of (\d+)`)
	rulePattern = regexp.MustCompile(`\[([\w-]+)\] helpful=\d+ harmful=\d+ :: (\w+) of x: (\S+)`)
)

// modelLearner simulates a model that learns: it can answer a task such as "What is the zork of 7?"
// only with a bullet such as "zork of x: 3*x+1". The rules are what its reflector learns from
// a label. Some of its answers need repair.
//
// Its embeddings of all texts are equal.
func modelLearner(rules map[string]string) func(llmtest.Request) llmtest.Reply {
	return func(q llmtest.Request) llmtest.Reply {
		if q.API == "embeddings" {
			return llmtest.Reply{Vectors: slices.Repeat([][]float64{{1, 2}}, len(q.Messages))}
		}
		book := llmtest.Between(q.System, "playbook")
		switch roleOf(q) {
		case "generator":
			name, x := question(q.Last())
			if id, rule := findRule(book, name); id != "" {
				return llmtest.Reply{Text: fmt.Sprintf(
					`{"reasoning": "%s", "bullet_ids": ["%s"], "final_answer": ""}`,
					strings.ReplaceAll(rule, "x", x), id)}
			}
			return llmtest.Reply{Text: "I do not know it.\n```json\n{\"reasoning\": \"No bullet says how.\", \"bullet_ids\": [], \"final_answer\": \"0\"}\n```"}
		case "skills":
			return session(q)
		case "reflector":
			return reflection(q, rules)
		case "judge":
			return judgment(q)
		}
		insights := llmtest.Between(q.Last(), "insights")
		m := regexp.MustCompile(`(\w+) of x: (\S+)`).FindStringSubmatch(insights)
		if m == nil {
			return llmtest.Reply{Text: `{"reasoning": "nothing new", "operations": []}`}
		}
		if id, _ := findRule(book, m[1]); id != "" {
			return llmtest.Reply{Text: `{"reasoning": "known", "operations": []}`}
		}
		return llmtest.Reply{Text: fmt.Sprintf(
			`{"reasoning": "new", "operations": [{"type": "ADD", "section": "Formulas & Calculations", "content": "%s"},
			{"type": "UPDATE", "bullet_id": "calc-99999", "content": "nothing"}, {"type": "ADD", "section": "OTHERS", "content": "Always che`, m[0]), Stop: "length"}
	}
}

func question(text string) (name, x string) {
	if m := taskPattern.FindStringSubmatch(llmtest.Between(text, "task")); m != nil {
		return m[1], m[2]
	}
	return "", ""
}

func findRule(book, name string) (id, rule string) {
	for _, m := range rulePattern.FindAllStringSubmatch(book, -1) {
		if m[2] == name {
			return m[1], m[3]
		}
	}
	return "", ""
}

// session calculates the plan, if there is one.
func session(q llmtest.Request) llmtest.Reply {
	if len(q.Messages) > 1 {
		value := regexp.MustCompile(`"text":"([^"]*)"`).FindStringSubmatch(q.Last())
		if value == nil {
			return llmtest.Reply{Text: `{"final_answer": "0"}`}
		}
		return llmtest.Reply{Text: `{"final_answer": "` + value[1] + `"}`}
	}
	plan := llmtest.Between(q.Last(), "plan")
	if strings.ContainsAny(plan, "*+") {
		return llmtest.Reply{Calls: []llmtest.Call{{"t1", "calculate", `{"expression": "` + plan + `"}`},
			{"t2", "look_up", `{"words": "formula"}`}}}
	}
	return llmtest.Reply{Text: `{"final_answer": "0"}`}
}

func reflection(q llmtest.Request, rules map[string]string) llmtest.Reply {
	name, _ := question(q.Last())
	tags := ""
	if m := rulePattern.FindStringSubmatch(llmtest.Between(q.Last(), "bullets")); m != nil {
		tag := "helpful"
		if strings.Contains(q.Last(), "is WRONG") {
			tag = "harmful"
		}
		tags = fmt.Sprintf(`{"id": "%s", "tag": "%s"}`, m[1], tag)
	}
	insight := "nothing"
	if rule := rules[name]; rule != "" && llmtest.Between(q.Last(), "expected") != "" {
		insight = name + " of x: " + rule
	}
	return llmtest.Reply{Text: fmt.Sprintf(
		`{"reasoning": "looked", "key_insight": "%s", "correct": true, "bullet_tags": [%s]}`, insight, tags)}
}

// judgment accepts a number for the word that is expected. It returns no verdict on other words.
func judgment(q llmtest.Request) llmtest.Reply {
	numbers := map[string]string{"zero": "0", "sixteen": "16", "16": "16"}
	number := numbers[llmtest.Between(q.Last(), "expected")]
	if number == "" {
		return llmtest.Reply{Text: "I cannot tell."}
	}
	return llmtest.Reply{Text: fmt.Sprintf(`{"reason": "a word", "correct": %t}`,
		llmtest.Between(q.Last(), "answer") == number)}
}

// roleOf returns the phase that a request belongs to: generator, skills, reflector or curator; or judge.
// It recognizes the requested form of the answer.
func roleOf(r llmtest.Request) string {
	switch {
	case strings.Contains(r.System, `"operations"`):
		return "curator"
	case strings.Contains(r.System, `"key_insight"`):
		return "reflector"
	case strings.Contains(r.System, `"bullet_ids"`):
		return "generator"
	case strings.Contains(r.System, `"correct"`):
		return "judge"
	}
	return "skills"
}
