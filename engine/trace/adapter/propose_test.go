package adapter

import (
	"strings"
	"testing"
)

// The proposals for a worker of no framework, tried on the run that they were proposed for, read all of it.
func TestProposal(t *testing.T) {
	ask := func(dialogue, reply string) step {
		return step{"ThinkAboutTicket", "", `{"llm": {"engine_name": "gpt-5"}, "ticket": 7, "dialogue": [` +
			dialogue + `]}`, `{"reply": "` + reply + `", "metrics": {"tokens": {"sent": 1200, "cached": 1000,
			"generated": 45}}}`}
	}
	hi := `{"role": "user", "content": "Hi"}`
	all := events(ask(hi, "Wait."), step{"RunTool", "", `{"tool": "look_up", "args": {"q": 1}}`, `"found"`},
		step{"SaveTicket", "", `{"ticket": 7}`, `{"saved": true}`},
		ask(hi+`, {"role": "assistant", "content": "Wait."}, {"role": "user", "content": "Well?"}`, "Done."))
	var proposed []Adapter
	studies := Studies(all)
	for _, s := range studies {
		if s.Chats+s.Tools > 0 {
			t.Errorf("understood before: %+v", s)
		}
		if s.Proposal != nil {
			proposed = append(proposed, *s.Proposal)
			if lines := strings.Count(s.Proposal.TOML(), "\n"); lines > 10 {
				t.Errorf("%d lines", lines)
			}
		}
	}
	if len(proposed) != 2 || studies[2].Proposal != nil {
		t.Fatalf("%+v", studies)
	}
	text := proposed[0].TOML() + proposed[1].TOML()
	pasted, err := parse([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	With(pasted, func() {
		got := fold(all)
		want := `chat ok /gpt-5 tokens 1245 Wait.
execute_tool ok look_up {"q": 1} in activity
chat ok /gpt-5 tokens 1245 Done.`
		if outline(got) != want || got.Sum.Input != 400 || got.Calls[2].Asked[0].Text != "Well?" {
			t.Errorf("%s\nwant\n%s\nwith\n%s", outline(got), want, text)
		}
	})
	// Outside, they do not count.
	if got := fold(all); !got.Empty() {
		t.Errorf("%s", outline(got))
	}
}

// Hostile payloads are proposed as text that TOML reads back, whatever their keys are.
func FuzzProposal(f *testing.F) {
	for _, seed := range []string{`{"us.age\n\"*": {"input_tokens": 1, "output_tokens": 2}}`, `{"a": [[`, `"x`,
		`{"reply": "\u001b[31m", "tokens": {"in": 1, "out": 2}}`, `{"\ud800": {"output_tokens": 5}}`} {
		f.Add("Ask\x1b", seed)
	}
	f.Fuzz(func(t *testing.T, activity, result string) {
		for _, s := range Studies(events(step{activity, "", result, result + " "})) {
			if s.Proposal == nil {
				continue
			}
			if _, err := parse([]byte(s.Proposal.TOML())); err != nil {
				t.Errorf("%v in %q", err, s.Proposal.TOML())
			}
		}
	})
}
